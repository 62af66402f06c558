// SPDX-License-Identifier: Apache-2.0
#include "client/cli/previews/png.h"

#include "core/status.h"
#include "png.h"

namespace leat::cli {

FieldRows RowsOf(const Field& field) {
  return {field.name, field.dtype, field.shape, field.data};
}

absl::StatusOr<std::string> EncodePng(const RgbImage& picture) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(picture.width);
  image.height = static_cast<png_uint_32>(picture.height);
  image.format = PNG_FORMAT_RGB;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::string bytes(size, '\0');
  if (png_image_write_to_memory(&image, bytes.data(), &size, 0,
                                picture.rgb.data(), 0, nullptr) == 0) {
    return Internal("PNG of {} x {} pixels: {}", picture.width, picture.height,
                    image.message);
  }
  bytes.resize(size);
  return bytes;
}

}  // namespace leat::cli
