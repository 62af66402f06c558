// SPDX-License-Identifier: Apache-2.0
#include "client/cli/convert/image_encoder.h"

#include <jpeglib.h>
#include <png.h>

#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "core/status.h"

namespace leat::cli {
namespace {

// The library calls this instead of exit().
struct JpegFailure {
  jpeg_error_mgr manager;  // first: the library knows only this
  std::jmp_buf escape;
  char reason[JMSG_LENGTH_MAX];
};

void OnJpegError(j_common_ptr info) {
  auto* const failure = reinterpret_cast<JpegFailure*>(info->err);
  info->err->format_message(info, failure->reason);
  std::longjmp(failure->escape, 1);
}

// No object with a destructor may live here: longjmp would skip it.
bool Compress(const GrayImage& image, int quality, JpegFailure* failure,
              unsigned char** bytes, unsigned long* size) {
  jpeg_compress_struct info;
  info.err = jpeg_std_error(&failure->manager);
  failure->manager.error_exit = OnJpegError;
  if (setjmp(failure->escape) != 0) {
    jpeg_destroy_compress(&info);
    return false;
  }
  jpeg_create_compress(&info);
  jpeg_mem_dest(&info, bytes, size);
  info.image_width = image.width;
  info.image_height = image.height;
  info.input_components = 1;
  info.in_color_space = JCS_GRAYSCALE;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, quality, TRUE);
  info.dct_method = JDCT_ISLOW;
  jpeg_start_compress(&info, TRUE);
  while (info.next_scanline < info.image_height) {
    JSAMPROW row = const_cast<JSAMPROW>(
        image.pixels + size_t{info.next_scanline} * image.width);
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  return true;
}

}  // namespace

absl::StatusOr<std::string> EncodeGrayPng(const GrayImage& image) {
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  png.width = image.width;
  png.height = image.height;
  png.format = PNG_FORMAT_GRAY;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(png);
  std::string bytes(size, '\0');
  if (png_image_write_to_memory(&png, bytes.data(), &size, 0, image.pixels, 0,
                                nullptr) == 0) {
    return Internal("PNG of {} x {} pixels: {}", image.width, image.height,
                    png.message);
  }
  bytes.resize(size);
  return bytes;
}

absl::StatusOr<std::string> EncodeGrayJpeg(const GrayImage& image,
                                           int quality) {
  if (image.width > JPEG_MAX_DIMENSION || image.height > JPEG_MAX_DIMENSION) {
    return InvalidArgument("{} x {} pixels: a JPEG has at most {} a side",
                           image.width, image.height, JPEG_MAX_DIMENSION);
  }
  JpegFailure failure{};
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  const bool good = Compress(image, quality, &failure, &bytes, &size);
  std::string file;
  if (good) file.assign(reinterpret_cast<const char*>(bytes), size);
  std::free(bytes);
  if (good) return file;
  return Internal("JPEG of {} x {} pixels: {}", image.width, image.height,
                  failure.reason);
}

std::string ImageExtension(const std::string& file) {
  using namespace std::string_view_literals;
  const std::string_view bytes = file;
  if (bytes.starts_with("\xff\xd8\xff"sv)) return "jpg";
  if (bytes.starts_with("\x89PNG\r\n\x1a\n"sv)) return "png";
  if (bytes.starts_with("RIFF"sv) && bytes.size() >= 12 &&
      bytes.substr(8, 4) == "WEBP"sv)
    return "webp";
  if (bytes.starts_with("BM"sv)) return "bmp";
  for (const std::string_view magic :
       {"II*\0"sv, "MM\0*"sv, "II+\0"sv, "MM\0+"sv}) {
    if (bytes.starts_with(magic)) return "tiff";
  }
  if (bytes.starts_with("\0\0\0\x0cjP  \r\n\x87\n"sv)) return "jp2";
  if (bytes.starts_with("\xff\x4f\xff\x51"sv)) return "j2k";
  return "";
}

}  // namespace leat::cli
