// SPDX-License-Identifier: Apache-2.0
//
// ImageSize and the size that a resize gives: shared by the shape inference and
// the kernels, in integers, so that both always agree.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace leat {

struct ImageSize {
  int64_t height = 0;
  int64_t width = 0;
  friend bool operator==(const ImageSize&, const ImageSize&) = default;
};

enum class ResizeMode : uint8_t {
  kStretch,     // exactly the size asked for
  kNotSmaller,  // aspect kept; both sides at least what was asked for
  kNotLarger,   // aspect kept; both sides at most what was asked for
};

// "stretch", "not_smaller", "not_larger".
std::optional<ResizeMode> ParseResizeMode(std::string_view name);

// The size of `in` resized to `want`. A side that follows from the aspect is
// rounded to the nearest integer, halves up, and at least 1.
// REQUIRES: all sides in [1, 2^20].
ImageSize ResizedSize(ImageSize in, ImageSize want, ResizeMode mode);

}  // namespace leat
