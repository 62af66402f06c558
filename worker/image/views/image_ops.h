// SPDX-License-Identifier: Apache-2.0
//
// A chain of geometric operators on one image, from its file or from a tensor,
// in one pass.
#pragma once

#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "core/pipeline/graph.h"
#include "core/shapes/window_rule.h"
#include "worker/image/base/row_input.h"
#include "worker/image/loops/tensor.h"
#include "worker/image/resample/geometry.h"
#include "worker/image/views/colours.h"
#include "worker/image/views/image_scratch.h"

namespace leat::worker {

// A constant, or the value of another node.
template <class T>
struct PerSampleArg {
  T constant{};
  std::optional<uint32_t> value;  // index among the row's values
};

struct ImageOp {
  enum class Kind : uint8_t {
    kRandomResizedCrop,
    kRandomCrop,
    kResize,
    kWindow,
    kCrop,
    kFlip,
    kColours
  };
  Kind kind;
  uint32_t node = 0;  // the node whose draws a random operator takes
  ImageSize size;
  ResizeRule resize;
  std::optional<PerSampleArg<double>> side;  // of `resize`, set by WithSide
  Filters filters;
  RandomWindow window;
  PerSampleArg<double> pos_y, pos_x;  // of a window: y, x
  WindowRule place;
  PerSampleArg<double> height, width;
  PerSampleArg<bool> horizontal, vertical;
  Colours colours = Colours::kRgb;

  // True if the operator can be appended to a chain without changing a bit: a
  // chain resamples once, and before it mirrors.
  bool Extends(bool resampled, bool mirrored) const {
    if (kind == Kind::kColours) return false;
    return Resamples() ? !resampled && !mirrored : true;
  }
  bool Resamples() const {
    return kind == Kind::kRandomResizedCrop || kind == Kind::kResize;
  }
};

// Returns the window of an image of `size` that a random operator takes for
// this row.
// REQUIRES: kRandomResizedCrop or kRandomCrop.
Rect DrawnWindow(const ImageOp& op, const RowInput& input, ImageSize size);

// Applies the operators to *view, with this row's draws and the values computed
// so far.
absl::Status ComposeView(const std::vector<ImageOp>& ops, const RowInput& input,
                         const std::vector<Tensor>& values, View* view);

// Builds the tables of a view that resamples, but not by rule "dali". The
// horizontal mirror is in its table, the vertical one is not. Returns the part
// of the source that the tables read.
Rect BuildTables(const View& view, ResampleTable* horizontal,
                 ResampleTable* vertical);
// Returns the part of the source that any view reads, by whatever rule.
Rect PartRead(const View& view, ImageScratch& scratch);

// Both functions write view.size() pixels to `out`, dense. RunOnJpeg decodes
// the image that scratch.decoder has opened; the decoder's damage() then says
// what is lost. `partial` as in JpegDecoder::Start.
absl::Status RunOnJpeg(const View& view, Orientation orientation, bool gray,
                       bool partial, ImageScratch& scratch, std::byte* out);
absl::Status RunOnTensor(const View& view, const Tensor& image,
                         ImageScratch& scratch, std::byte* out);

}  // namespace leat::worker
