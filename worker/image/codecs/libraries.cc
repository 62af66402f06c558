// SPDX-License-Identifier: Apache-2.0
#include "worker/image/codecs/libraries.h"

#include <cstdio>
// jpeglib.h needs cstdio's FILE.
#include <jpeglib.h>
#include <openjpeg.h>
#include <png.h>
#include <tiffio.h>
#include <webp/decode.h>

#include <string_view>

#include "fmt/format.h"

namespace leat::worker {
namespace {

#define LEAT_TEXT(...) #__VA_ARGS__
#define LEAT_TEXT_OF(macro) LEAT_TEXT(macro)
// The library has no call that returns its version; this is the one of the
// headers that it was built with.
#ifdef LIBJPEG_TURBO_VERSION
constexpr std::string_view kJpegLibrary =
    "libjpeg-turbo " LEAT_TEXT_OF(LIBJPEG_TURBO_VERSION);
#else
constexpr std::string_view kJpegLibrary =
    "libjpeg " LEAT_TEXT_OF(JPEG_LIB_VERSION);
#endif
#undef LEAT_TEXT_OF
#undef LEAT_TEXT

std::string TiffVersion() {
  // "LIBTIFF, Version 4.5.0\nCopyright …"
  const std::string_view text = TIFFGetVersion();
  const std::string_view line = text.substr(0, text.find('\n'));
  const size_t last = line.rfind(' ');
  return std::string(last == line.npos ? line : line.substr(last + 1));
}

}  // namespace

std::string DecoderLibraries() {
  const int webp = WebPGetDecoderVersion();
  return fmt::format("{}, libpng {}, libtiff {}, libwebp {}.{}.{}, OpenJPEG {}",
                     kJpegLibrary, png_get_libpng_ver(nullptr), TiffVersion(),
                     webp >> 16, webp >> 8 & 0xff, webp & 0xff, opj_version());
}

}  // namespace leat::worker
