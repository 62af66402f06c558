// SPDX-License-Identifier: Apache-2.0
//
// DamagedView: an image whose JPEG file is damaged, seen through geometric
// operators. It says whether what they show is made of rows that are lost.
//
// This is how damage has one meaning, whatever is decoded at once
// (docs/decisions/0025): a decode gives an image with its lost rows black; who
// uses its pixels, other than by moving on to another view of it, calls Check
// first.
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
  int64_t sound_rows = 0;  // of the stored image: from there on all are lost
  StoredSize stored;
  Orientation orientation;
  View view;  // of the image as it is turned
  // Whether any operator so far did so, as ImageOp::Extends asks.
  bool resampled = false, mirrored = false;

  // The operators that made `view`.
  void Note(const std::vector<ImageOp>& ops);
  // `why` if the view is made of lost rows.
  absl::Status Check(ImageScratch& scratch) const;
  // Lets the operators follow, as ComposeView. Where one is met that makes no
  // view of a view, all of the value before it is used: Check(), and, if that
  // is sound, *damaged is false: so is what follows.
  absl::Status Extend(const std::vector<ImageOp>& ops, uint64_t seed,
                      const RowInput& input, const std::vector<Tensor>& values,
                      ImageScratch& scratch, bool* damaged);
};

}  // namespace leat::worker
