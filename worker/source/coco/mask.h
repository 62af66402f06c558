// SPDX-License-Identifier: Apache-2.0
//
// Masks of COCO's annotations, drawn by the rules of its own tools
// (cocodataset/cocoapi): runs go down the columns, one column after the other,
// and an outline's edge is computed in fifths of a pixel.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace leat::worker {

// Decodes the runs in a text: six bits per character, each run after the first
// three as its difference to the one before the last. kDataLoss: not such a
// text, or runs that are invalid.
absl::StatusOr<std::vector<uint32_t>> ParseCocoRuns(std::string_view text);

// A map of labels, (height, width), row by row. Later drawings cover earlier
// ones.
class CocoMask {
 public:
  // `pixels` has height * width elements, and is cleared. It must outlive this.
  CocoMask(std::span<int32_t> pixels, uint32_t height, uint32_t width);

  // Draws every second run, from the second on. REQUIRES: they sum up to the
  // pixels.
  void DrawRuns(std::span<const uint32_t> runs, int32_t label);
  // Draws the inside of the polygon x, y, x, y, …. REQUIRES: CheckCocoOutline.
  void DrawPolygon(std::span<const float> vertices, int32_t label);

 private:
  // Fills pixels [begin, end), counted down the columns.
  void Fill(uint64_t begin, uint64_t end, int32_t label);

  const std::span<int32_t> pixels_;
  const uint64_t height_, width_;
  std::vector<uint64_t> edges_;
};

// kDataLoss: a vertex that is outside the image by more than its size, or an
// outline of more than kMaxCocoOutline pixels.
inline constexpr double kMaxCocoOutline = 10e6;
absl::Status CheckCocoOutline(std::span<const float> vertices, uint32_t height,
                              uint32_t width);

}  // namespace leat::worker
