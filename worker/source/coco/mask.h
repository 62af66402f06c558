// SPDX-License-Identifier: Apache-2.0
//
// Masks of COCO's annotations, drawn by the rules of its own tools
// (cocodataset/cocoapi): runs go down the columns, one column after the other,
// and an outline's edge is looked at in fifths of a pixel.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace leat::worker {

// The runs that a text has, six bits a character, each but the first three as
// its difference to the one before the last. kDataLoss: no such text, or runs
// that are none.
absl::StatusOr<std::vector<uint32_t>> ParseCocoRuns(std::string_view text);

// A map of labels, (height, width), row by row. What is drawn later is on top.
class CocoMask {
 public:
  // `pixels` has height * width elements, and is cleared. It must outlive this.
  CocoMask(std::span<int32_t> pixels, uint32_t height, uint32_t width);

  // Every second run, from the second on. REQUIRES: they sum up to the pixels.
  void DrawRuns(std::span<const uint32_t> runs, int32_t label);
  // The inside of the polygon x, y, x, y, …. REQUIRES: CheckCocoOutline.
  void DrawPolygon(std::span<const float> vertices, int32_t label);

 private:
  // Pixels [begin, end), counted down the columns.
  void Fill(uint64_t begin, uint64_t end, int32_t label);

  const std::span<int32_t> pixels_;
  const uint64_t height_, width_;
  std::vector<uint64_t> edges_;
};

// kDataLoss: a vertex that is more than the image's size outside of it, or
// an outline of more than kMaxCocoOutline pixels.
inline constexpr double kMaxCocoOutline = 10e6;
absl::Status CheckCocoOutline(std::span<const float> vertices, uint32_t height,
                              uint32_t width);

}  // namespace leat::worker
