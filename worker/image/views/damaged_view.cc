// SPDX-License-Identifier: Apache-2.0
//
// Example: decode, resize, flip, applied to a photo of 400 rows whose rows from
// 300 on are lost. A crop of the upper half after them is sound, though the
// image, its resized copy and the mirrored one are damaged: the view shows that
// its part of the stored image ends above row 300. A second `resize`, after the
// flip, uses all of the mirrored image, and is lost.
#include "worker/image/views/damaged_view.h"

#include "core/status.h"
#include "worker/image/views/image_ops.h"

namespace leat::worker {

void DamagedView::Note(const std::vector<ImageOp>& ops) {
  for (const ImageOp& op : ops) {
    resampled |= op.Resamples();
    mirrored |= op.kind == ImageOp::Kind::kFlip;
  }
}

absl::Status DamagedView::Check(ImageScratch& scratch) const {
  const StoredRect part =
      orientation.Stored(TurnedRect(PartRead(view, scratch)), stored);
  return part.y + part.height > sound_rows ? why : absl::OkStatus();
}

absl::Status DamagedView::Extend(const std::vector<ImageOp>& ops,
                                 const RowInput& input,
                                 const std::vector<Tensor>& values,
                                 ImageScratch& scratch, bool* damaged) {
  for (const ImageOp& op : ops) {
    if (!op.Extends(resampled, mirrored)) {
      *damaged = false;
      return Check(scratch);
    }
    RETURN_IF_ERROR(ComposeView({op}, input, values, &view));
    Note({op});
  }
  *damaged = true;
  return absl::OkStatus();
}

}  // namespace leat::worker
