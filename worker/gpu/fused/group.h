// SPDX-License-Identifier: Apache-2.0
//
// FusedGroup: the block (fused_descriptor.h) of a group of rows, while it is
// filled in.
//
//   group.Begin(program, rows, memory);
//   for each row, on any thread, of each of its samples:
//     part = group.PrepareRow(row, …)    what of the stored image is needed
//     group.HalveRow(row, …)             if it will be decoded smaller
//     group.BindSource(row, …)           where its pixels will be
//     group.BindOutput(row, field, …)    where its fields go
//   copy group.used_bytes() of `memory` to the device, then
//   program.Launch(rows, the copy's address, queue)
//
// Different rows may be filled in by different threads at the same time; Begin
// and used_bytes need all to themselves. Reused: no allocation once it has
// seen as many rows.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/gpu/device/address.h"
#include "worker/gpu/fused/program.h"
#include "worker/gpu/fused/source_steps.h"
#include "worker/gpu/layout/decode_shape.h"
#include "worker/gpu/layout/fused_descriptor.h"
#include "worker/gpu/stages/group.h"
#include "worker/image/base/row_input.h"
#include "worker/image/resample/geometry.h"

namespace leat::worker {

class FusedGroup {
 public:
  // `memory`: program.BlockBytes(rows) bytes at least, aligned to
  // kFusedAlignment. Both are borrowed until the next Begin. Every row begins
  // as skipped, without outputs.
  // kInvalidArgument: no rows, memory too small or not aligned.
  // `device`: where the copy of the memory and the program's ValueBytes(rows)
  // will be, if it has stages.
  absl::Status Begin(const FusedProgram& program, size_t rows,
                     std::span<std::byte> memory,
                     const StageDevice& device = {});
  size_t rows() const { return rows_.size(); }

  // Draws the parameters of one of the row's samples, computes its host values
  // and writes its tables. `input`: of that sample. `stored`, `exif`: of the
  // image's header. Returns the part of the stored image whose pixels are read:
  // all that must be decoded; nothing, if the program does not decode it. Of
  // one that is reduced it is a part of the smaller image.
  // Of a program with partners the partner's sample is first, with the same
  // scratch.
  // Again for another sample of the row, once the last copy of the memory was
  // made: kUnavailable if its tables find no room, which takes a group whose
  // every row is near the limit, and depends on those rows. kResourceExhausted:
  // over the program's limits, or too large for 32-bit steps; the row is for
  // the CPU. This depends on the image and the row's draws alone. Other errors
  // are RowProgram::Run's for the same row.
  absl::StatusOr<StoredRect> PrepareRow(size_t row, const RowInput& input,
                                        StoredSize stored, int exif,
                                        FusedScratch* scratch,
                                        Whose whose = Whose::kRow);

  // The most halvings that all views of the row bear (decode_shape.h).
  // REQUIRES: PrepareRow succeeded.
  int most_halvings(size_t row) const {
    return rows_[row][Whose::kRow].most_halvings;
  }

  // How often the image is halved that a program decodes which reduces.
  // REQUIRES: PrepareRow succeeded.
  int halvings(size_t row, Whose whose) const {
    return rows_[row][whose].halvings;
  }

  // The row's image will be decoded at 1 / 2^halvings, all of it, ½ rounded up:
  // makes its tables anew, and returns the part of the smaller image whose
  // pixels are read.
  // REQUIRES: PrepareRow of this row succeeded with this scratch, which was not
  // used since; halvings in [1, most_halvings(row)]; no partners.
  StoredRect HalveRow(size_t row, int halvings, FusedScratch* scratch);

  // kInvalidArgument: `held` lacks some of what the last of both returned.
  // kResourceExhausted: spans 2 GiB or more. REQUIRES: PrepareRow succeeded.
  // Stages compute the row once the source of its own sample is bound.
  absl::Status BindSource(size_t row, const FusedSource& source,
                          Whose whose = Whose::kRow);

  // Sets where the row's field goes, in memory that the kernel can write; a
  // null address: it does not write this field (a host value that the caller
  // stores itself).
  void BindOutput(size_t row, size_t field, DeviceAddress address);

  // The kernel writes nothing of the row, not even host values.
  void SkipRow(size_t row);

  // The bytes of a host value. REQUIRES: !program.from_pixels(field);
  // PrepareRow succeeded.
  std::span<const std::byte> HostValue(size_t row, size_t field) const;

  // Bytes of the memory that must be copied.
  size_t used_bytes() const { return used_.load(std::memory_order_relaxed); }

 private:
  // One of a row's images.
  struct Image {
    Orientation orientation;
    StoredSize stored;  // as large as it is decoded
    TurnedRect part;    // what all its views need
    int most_halvings = 0;
    int halvings = 0;  // of a program that reduces
  };
  // A view of a row.
  struct Slice {
    TurnedRect part;
    bool back_x = false;  // a copy that is mirrored by its steps
    bool back_y = false;
    uint64_t tables_at = 0, table_bytes = 0;  // room for its tables
    // The size of the view, if a stage makes it.
    ImageSize size;
    FusedRow row;
  };

  template <class T>
  T* At(uint64_t offset) const {
    return reinterpret_cast<T*>(memory_.data() + offset);
  }
  FusedRow& Descriptor(size_t row, size_t view) const;
  // The same, or the stage's.
  FusedRow& RowOf(size_t row, size_t view);
  absl::Status CheckSize(const FusedImage& image, const View& view,
                         Slice* slice, FusedScratch* scratch) const;
  absl::Status ComputeHostValues(size_t row, Whose whose, const RowInput& input,
                                 FusedScratch* scratch);
  // Puts together what the image's chains make of it, which becomes smaller
  // where the program reduces it.
  absl::Status ComposeChains(Whose whose, const RowInput& input,
                             FusedScratch* scratch, Image* image);
  absl::Status CheckLimits(Whose whose, FusedScratch* scratch) const;
  // Writes the descriptors of the image's views.
  absl::Status PrepareViews(size_t row, Whose whose, FusedScratch* scratch);
  absl::StatusOr<TurnedRect> PrepareTables(const View& view,
                                           FusedScratch* scratch, Slice* slice,
                                           FusedRow* row);
  const FusedProgram* program_ = nullptr;
  std::span<std::byte> memory_;
  FusedHeader header_;
  std::vector<OfBoth<Image>> rows_;
  std::vector<Slice> slices_;  // [row][view]
  StageGroup stages_;
  std::atomic<size_t> used_ = 0;
};

}  // namespace leat::worker
