// SPDX-License-Identifier: Apache-2.0
//
// ResizeRule computes the size to which a resize brings an image, and the part
// of the image that fills it. The same function runs at job creation and for
// each sample, in doubles, so that both always agree.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/statusor.h"
#include "core/pipeline/graph.h"
#include "core/tensor/image_size.h"
#include "core/tensor/tensor.h"

namespace leat {

enum class ResizeMode : uint8_t {
  kStretch,  // the requested sizes; a side that was not requested is unchanged
  // The same, but a side that was not requested follows by the aspect.
  kDefault,
  kNotSmaller,  // aspect kept; both sides at least the requested ones
  kNotLarger,   // aspect kept; both sides at most the requested ones
};

// Maximum of each side of an image that is resized: the tables of weights grow
// with it.
inline constexpr int64_t kMaxResizedSide = int64_t{1} << 20;

// kInvalidArgument: the image has no pixel, or a side over kMaxResizedSide.
absl::Status CheckResized(ImageSize image);

// Parses "stretch", "default", "not_smaller", "not_larger".
std::optional<ResizeMode> ParseResizeMode(std::string_view name);

// The result of a rule for one image.
struct Resizing {
  // A part of an axis, in pixels measured at their edges.
  struct Part {
    double begin = 0, end = 0;
    friend bool operator==(const Part&, const Part&) = default;
  };
  ImageSize size;
  // The parts of the image that are resized to `size`. They may extend beyond
  // the image by less than half an output pixel.
  Part rows, columns;
};

// The rule of a resize. Each pair is a height and a width.
struct ResizeRule {
  ResizeMode mode = ResizeMode::kStretch;
  std::array<double, 2> want{};  // 0: not requested
  std::array<double, 2> most{};  // 0: no limit
  // True if rounding a side does not change the scale: the region is widened or
  // narrowed about its centre instead.
  bool subpixel_scale = false;
  // True if sizes and regions are computed in DALI's floats, in DALI's order.
  bool dali = false;
  // The region of the image that is resized; without one, all of it.
  bool has_region = false, relative = false;
  std::array<double, 2> start{}, end{};

  // Applies the rule. Sides are rounded to the nearest integer, halves up, and
  // at least 1. kInvalidArgument: as for CheckResized; the region is not inside
  // the image; a side would be over 2^20 (the message says so). REQUIRES: a
  // size is requested.
  absl::StatusOr<Resizing> Of(ImageSize image) const;

  // Returns the result's height and width for images of any size; -1: they
  // differ.
  std::array<int64_t, 2> OfAny() const;
};

// Returns the rule of a node "resize". If `shorter` or `longer` is given for
// each sample, `want` is 0: see WithSide. kInvalidArgument: names the
// arguments.
absl::StatusOr<ResizeRule> ResizeRuleOf(const Node& node);

// Returns the argument of `node` that is a length for each sample; nullptr:
// none.
const char* ResizeSideArg(const Node& node);

// Returns `rule` for a length of `side` pixels. kInvalidArgument: not in (0,
// 65500].
absl::StatusOr<ResizeRule> WithSide(const ResizeRule& rule, double side);

}  // namespace leat
