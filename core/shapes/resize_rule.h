// SPDX-License-Identifier: Apache-2.0
//
// ResizeRule: the size that a resize gives an image, and which part of it is
// spread over that: the same function when a job is created and when a sample
// is there, in doubles, so that both always agree.
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
  kStretch,     // what is asked for; a side that is not, as it was
  kDefault,     // the same, but one not asked for follows by the aspect
  kNotSmaller,  // aspect kept; both sides at least what was asked for
  kNotLarger,   // aspect kept; both sides at most what was asked for
};

// "stretch", "default", "not_smaller", "not_larger".
std::optional<ResizeMode> ParseResizeMode(std::string_view name);

// What becomes of an image.
struct Resizing {
  // A part of an axis, between pixels' edges.
  struct Part {
    double begin = 0, end = 0;
    friend bool operator==(const Part&, const Part&) = default;
  };
  ImageSize size;
  // What `size` is spread over. May reach beyond the image by less than half
  // an output pixel.
  Part rows, columns;
};

// Each pair is a height and a width.
struct ResizeRule {
  ResizeMode mode = ResizeMode::kStretch;
  std::array<double, 2> want{};  // 0: not asked for
  std::array<double, 2> most{};  // 0: no limit
  // A side that is rounded does not change the scale: the region is widened or
  // narrowed about its centre instead.
  bool subpixel_scale = false;
  // Sizes and regions are computed in DALI's floats, and their order.
  bool dali = false;
  // The region of the image that is resized; none: all of it.
  bool has_region = false, relative = false;
  std::array<double, 2> start{}, end{};

  // Sides are rounded to the nearest integer, halves up, and at least 1.
  // kInvalidArgument: the region is not inside the image; a side would be over
  // 2^20 (says so). REQUIRES: something is wanted; sides of `image` in [1,
  // 2^20].
  absl::StatusOr<Resizing> Of(ImageSize image) const;

  // Height and width of what is made of images of any size; -1: they differ.
  std::array<int64_t, 2> OfAny() const;
};

// The rule of a node "resize". If `shorter` or `longer` is given for each
// sample, `want` is 0: see WithSide. kInvalidArgument: names the arguments.
absl::StatusOr<ResizeRule> ResizeRuleOf(const Node& node);

// The argument of `node` that is a length for each sample; null: none is.
const char* ResizeSideArg(const Node& node);

// `rule` for a length of `side` pixels. kInvalidArgument: not in (0, 65500].
absl::StatusOr<ResizeRule> WithSide(const ResizeRule& rule, double side);

}  // namespace leat
