// SPDX-License-Identifier: Apache-2.0
//
// ImageFormats: the formats of image files that a worker decodes (--formats).
//
// JPEG is always among them. An image of a format that is switched off is a
// fault of the worker and never a bad sample: another worker may decode it, so
// if a policy replaced it here, the bytes of a batch would depend on which
// worker computes it.
//
// A value of the worker's configuration: set once, read by all decode threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace leat::worker {

enum class ImageFormat : uint8_t { kJpeg, kPng, kWebp, kBmp, kTiff, kJpeg2000 };
inline constexpr size_t kImageFormats = 6;

// The name that --formats takes: "tiff", "jpeg2000".
std::string_view Name(ImageFormat format);

class ImageFormats {
 public:
  constexpr ImageFormats() = default;  // all

  // "jpeg,png,tiff". kInvalidArgument: an unknown name, or jpeg is missing.
  static absl::StatusOr<ImageFormats> Parse(std::string_view text);

  constexpr bool has(ImageFormat format) const {
    return (bits_ >> static_cast<int>(format) & 1) != 0;
  }
  // Returns a text that Parse accepts, in the order of ImageFormat.
  std::string ToString() const;

 private:
  uint32_t bits_ = 0x3f;
};

}  // namespace leat::worker
