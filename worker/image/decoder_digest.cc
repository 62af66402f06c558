// SPDX-License-Identifier: Apache-2.0
#include "worker/image/decoder_digest.h"

#include <cstdio>
// jpeglib.h needs cstdio's FILE.
#include <jpeglib.h>
#include <openjpeg.h>
#include <png.h>
#include <tiffio.h>
#include <webp/decode.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "core/pipeline/operators.h"
#include "core/status.h"
#include "fmt/format.h"
#include "worker/image/row_program.h"

namespace leat::worker {
namespace {

constexpr int64_t kSeed = 1;

#define LEAT_TEXT(...) #__VA_ARGS__
#define LEAT_TEXT_OF(macro) LEAT_TEXT(macro)
// The library has no call that says it: of the headers that it was built with.
#ifdef LIBJPEG_TURBO_VERSION
constexpr std::string_view kJpegLibrary =
    "libjpeg-turbo " LEAT_TEXT_OF(LIBJPEG_TURBO_VERSION);
#else
constexpr std::string_view kJpegLibrary =
    "libjpeg " LEAT_TEXT_OF(JPEG_LIB_VERSION);
#endif
#undef LEAT_TEXT_OF
#undef LEAT_TEXT

// What a program makes of an image of any size.
struct DigestView {
  const char* op;
  int64_t height, width;
};
constexpr DigestView kViews[] = {
    {"crop", 9, 11},      // pixels as they are decoded, of a window
    {"resize", 60, 70},   // all pixels have a part in it
    {"resize", 12, 13}};  // several make one

absl::StatusOr<std::unique_ptr<RowProgram>> ProgramOf(const DigestView& view,
                                                      BatchSchema* schema) {
  Graph graph;
  graph.nodes = {
      {"readers.image_folder", {}, {{"path", Value(std::string("/"))}}},
      {"decode", {{0, 0}}, {}},
      {view.op,
       {{1, 0}},
       {{"size", Value(std::vector<int64_t>{view.height, view.width})}}}};
  graph.outputs = {{"image", {2, 0}}};
  ASSIGN_OR_RETURN(const CheckedGraph checked, Check(graph));
  *schema = checked.schema;
  return RowProgram::Compile(checked, kSeed);
}

std::string TiffVersion() {
  // "LIBTIFF, Version 4.5.0\nCopyright …"
  const std::string_view text = TIFFGetVersion();
  const std::string_view line = text.substr(0, text.find('\n'));
  const size_t last = line.rfind(' ');
  return std::string(last == line.npos ? line : line.substr(last + 1));
}

}  // namespace

absl::StatusOr<Digest> DecoderDigest(std::span<const std::string> images) {
  Scratch scratch{ImageLimits()};
  Sha256 hash;
  const int32_t label = 0;
  for (const DigestView& view : kViews) {
    BatchSchema schema;
    ASSIGN_OR_RETURN(const std::unique_ptr<RowProgram> program,
                     ProgramOf(view, &schema));
    std::vector<std::byte> pixels(schema.fields[0].row_bytes);
    const std::span<std::byte> output(pixels);
    for (const std::string& image : images) {
      const StoredField fields[] = {
          {std::as_bytes(std::span(image)), {}},
          {std::as_bytes(std::span(&label, size_t{1})), {}}};
      const absl::Status status =
          program->Run({.fields = fields}, scratch, std::span(&output, 1));
      hash.UpdateU64(static_cast<uint64_t>(status.code()));
      if (status.ok()) hash.Update(std::span<const std::byte>(pixels));
      scratch.EndRow();
    }
  }
  return hash.Finish();
}

std::string DecoderLibraries() {
  const int webp = WebPGetDecoderVersion();
  return fmt::format("{}, libpng {}, libtiff {}, libwebp {}.{}.{}, OpenJPEG {}",
                     kJpegLibrary, png_get_libpng_ver(nullptr), TiffVersion(),
                     webp >> 16, webp >> 8 & 0xff, webp & 0xff, opj_version());
}

}  // namespace leat::worker
