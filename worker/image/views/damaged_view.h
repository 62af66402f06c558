// SPDX-License-Identifier: Apache-2.0
//
// DamagedView: an image whose JPEG file is damaged, seen through geometric
// operators. It says whether the view depends on rows that are lost.
//
// With it, damage has one meaning, however much is decoded at once
// (docs/decisions/0025): a decode gives an image with its lost rows black; code
// that uses its pixels, other than by extending the view, calls Check first.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "worker/image/base/row_input.h"
#include "worker/image/loops/tensor.h"
#include "worker/image/resample/geometry.h"
#include "worker/image/views/image_scratch.h"

namespace leat::worker {

struct ImageOp;

struct DamagedView {
  absl::Status why;        // kDataLoss
  int64_t sound_rows = 0;  // of the stored image; all later rows are lost
  StoredSize stored;
  Orientation orientation;
  View view;  // of the turned image
  // Whether any operator so far resampled or mirrored, for ImageOp::Extends.
  bool resampled = false, mirrored = false;

  // Records the operators that made `view`.
  void Note(const std::vector<ImageOp>& ops);
  // Returns `why` if the view depends on lost rows.
  absl::Status Check(ImageScratch& scratch) const;
  // Applies the operators to the view, as ComposeView does. An operator that
  // cannot extend a view uses the whole value before it: Extend then returns
  // Check() and sets *damaged to false, since a sound value stays sound.
  absl::Status Extend(const std::vector<ImageOp>& ops, const RowInput& input,
                      const std::vector<Tensor>& values, ImageScratch& scratch,
                      bool* damaged);
};

}  // namespace leat::worker
