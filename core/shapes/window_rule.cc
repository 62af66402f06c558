// SPDX-License-Identifier: Apache-2.0
#include "core/shapes/window_rule.h"

#include <cmath>

#include "core/pipeline/operator_table.h"
#include "core/status.h"

namespace leat {
namespace {

// Written so that a NaN is rejected.
absl::Status WantUpTo(const char* name, double value, double most) {
  if (value >= 0 && value <= most) return absl::OkStatus();
  return InvalidArgument("argument \"{}\" is {}, want a number 0 to {}", name,
                         value, most);
}

}  // namespace

WindowRule WindowRule::Of(const Node& node) {
  return {ArgOf<bool>(node, "normalized_anchor"),
          ArgOf<bool>(node, "normalized_shape")};
}

int64_t WindowRule::Fixed(double extent) const {
  return normalized_shape ? -1 : std::llround(extent);
}

absl::StatusOr<WindowParts> WindowRule::At(ImageSize image, double y, double x,
                                           double height, double width) const {
  const double most_anchor = normalized_anchor ? 1 : kMaxSide;
  const double most_shape = normalized_shape ? 1 : kMaxSide;
  RETURN_IF_ERROR(WantUpTo("y", y, most_anchor));
  RETURN_IF_ERROR(WantUpTo("x", x, most_anchor));
  RETURN_IF_ERROR(WantUpTo("height", height, most_shape));
  RETURN_IF_ERROR(WantUpTo("width", width, most_shape));
  const auto part = [&](int64_t side, double anchor, double extent) {
    SliceRule rule;
    rule.relative = normalized_anchor;
    rule.length = normalized_shape ? SliceRule::Length::kRelShape
                                   : SliceRule::Length::kShape;
    rule.extent = normalized_shape ? extent : std::round(extent);
    return rule.Of(side, anchor);
  };
  const WindowParts parts{part(image.height, y, height),
                          part(image.width, x, width)};
  if (parts[0].size() < 1 || parts[1].size() < 1 || parts[0].begin < 0 ||
      parts[1].begin < 0 || parts[0].end > image.height ||
      parts[1].end > image.width)
    return InvalidArgument(
        "window of the rows {} to {} and the columns {} to {}, want at least a "
        "pixel, inside the image of {} × {} (height × width)",
        parts[0].begin, parts[0].end, parts[1].begin, parts[1].end,
        image.height, image.width);
  return parts;
}

}  // namespace leat
