// SPDX-License-Identifier: Apache-2.0
#include "core/image_size.h"

#include <algorithm>

namespace leat {

std::optional<ResizeMode> ParseResizeMode(std::string_view name) {
  if (name == "stretch") return ResizeMode::kStretch;
  if (name == "not_smaller") return ResizeMode::kNotSmaller;
  if (name == "not_larger") return ResizeMode::kNotLarger;
  return std::nullopt;
}

ImageSize ResizedSize(ImageSize in, ImageSize want, ResizeMode mode) {
  if (mode == ResizeMode::kStretch) return want;
  // want.height / in.height against want.width / in.width, without division.
  const int64_t by_height = want.height * in.width;
  const int64_t by_width = want.width * in.height;
  const bool height_rules = mode == ResizeMode::kNotSmaller
                                ? by_height >= by_width
                                : by_height <= by_width;
  const auto scaled = [](int64_t side, int64_t to, int64_t from) {
    return std::max<int64_t>(1, (2 * side * to + from) / (2 * from));
  };
  if (height_rules)
    return {want.height, scaled(in.width, want.height, in.height)};
  return {scaled(in.height, want.width, in.width), want.width};
}

}  // namespace leat
