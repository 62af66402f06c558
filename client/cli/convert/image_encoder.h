// SPDX-License-Identifier: Apache-2.0
//
// Encodes gray pixels as an image file.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace leat::cli {

struct GrayImage {
  uint32_t width = 0;
  uint32_t height = 0;
  const uint8_t* pixels = nullptr;  // rows from the top, dense
};

// kInternal: the library's reason.
absl::StatusOr<std::string> EncodeGrayPng(const GrayImage& image);
// `quality`: 1 to 100. kInvalidArgument: over 65,500 pixels a side.
absl::StatusOr<std::string> EncodeGrayJpeg(const GrayImage& image, int quality);

// Returns the extension for the type that the first bytes of `file` show:
// "jpg", "png", "webp", "bmp", "tiff", "jp2" or "j2k"; "": none of these.
std::string ImageExtension(const std::string& file);

}  // namespace leat::cli
