// SPDX-License-Identifier: Apache-2.0
//
// FusedGroup: the block (fused_descriptor.h) of a group of rows, while it is
// written.
//
//   group.Begin(program, rows, memory);
//   for each row, on any thread, for each of its samples:
//     part = group.PrepareRow(row, …)    the needed part of the stored image
//     group.HalveRow(row, …)             if it will be decoded smaller
//     group.BindSource(row, …)           where its pixels will be
//     group.BindOutput(row, field, …)    where its fields are written
//   copy group.used_bytes() of `memory` to the device, then
//   program.Launch(rows, the copy's address, queue)
//
// Different rows may be written by different threads at the same time; Begin
// and used_bytes need exclusive access. A group is reused, and allocates
// nothing once it has had as many rows.
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
  // `memory`: at least program.BlockBytes(rows) bytes, aligned to
  // kFusedAlignment. Both are borrowed until the next Begin. Every row begins
  // as skipped, without outputs. kInvalidArgument: no rows, memory too small or
  // not aligned. `device`: where the copy of the memory and the program's
  // ValueBytes(rows) will be, if it has stages.
  absl::Status Begin(const FusedProgram& program, size_t rows,
                     std::span<std::byte> memory,
                     const StageDevice& device = {});
  size_t rows() const { return rows_.size(); }

  // Draws the parameters of one of the row's samples, computes its host values
  // and writes its tables. `input`: of that sample. `stored`, `exif`: from the
  // image's header. Returns the part of the stored image whose pixels are read
  // and must be decoded; it is empty if the program does not decode the image.
  // If the image is reduced, it is a part of the smaller image.
  //
  // In a program with partners the partner's sample comes first, with the same
  // scratch. May be called again for another sample of the row, once the last
  // copy of the memory was made.
  //
  // kUnavailable: another sample's tables find no room, which happens only if
  // every row of the group is near the limit, and depends on those rows.
  // kResourceExhausted: over the program's limits, or too large for 32-bit
  // steps; the CPU computes the row. This depends on the image and the row's
  // draws alone. Other errors are those of RowProgram::Run for the same row.
  absl::StatusOr<StoredRect> PrepareRow(size_t row, const RowInput& input,
                                        StoredSize stored, int exif,
                                        FusedScratch* scratch,
                                        Whose whose = Whose::kRow);

  // Returns the most halvings that all views of the row permit
  // (decode_shape.h).
  // REQUIRES: PrepareRow succeeded.
  int most_halvings(size_t row) const {
    return rows_[row][Whose::kRow].most_halvings;
  }

  // Returns how often the image is halved, if the program reduces images.
  // REQUIRES: PrepareRow succeeded.
  int halvings(size_t row, Whose whose) const {
    return rows_[row][whose].halvings;
  }
  // Returns the same for a window that is all of the image.
  int pixel_halvings(size_t row, Whose whose) const {
    return rows_[row][whose].pixel_halvings;
  }

  // Says that the row's whole image will be decoded at 1 / 2^halvings, ½
  // rounded up: rebuilds its tables, and returns the part of the smaller image
  // whose pixels are read.
  // REQUIRES: PrepareRow of this row succeeded with this scratch, which was not
  // used since; halvings in [1, most_halvings(row)]; no partners.
  StoredRect HalveRow(size_t row, int halvings, FusedScratch* scratch);

  // kInvalidArgument: `held` lacks a part that PrepareRow or HalveRow,
  // whichever was last, returned. kResourceExhausted: spans 2 GiB or more.
  // REQUIRES: PrepareRow succeeded. Stages compute the row once the source of
  // its own sample is bound.
  absl::Status BindSource(size_t row, const FusedSource& source,
                          Whose whose = Whose::kRow);

  // Sets where the row's field is written, in memory that the kernel can write;
  // a null address: it does not write this field (a host value that the caller
  // stores itself).
  void BindOutput(size_t row, size_t field, DeviceAddress address);

  // Makes the kernel write nothing of the row, not even host values.
  void SkipRow(size_t row);

  // Returns the bytes of a host value. REQUIRES: !program.from_pixels(field);
  // PrepareRow succeeded.
  std::span<const std::byte> HostValue(size_t row, size_t field) const;

  // Returns how many bytes of the memory must be copied.
  size_t used_bytes() const { return used_.load(std::memory_order_relaxed); }

 private:
  // One of a row's images.
  struct Image {
    Orientation orientation;
    StoredSize stored;  // the size at which it is decoded
    TurnedRect part;    // the part that all its views need
    int most_halvings = 0;
    int halvings = 0, pixel_halvings = 0;  // if the program reduces
  };
  // A view of a row.
  struct Slice {
    TurnedRect part;
    bool back_x = false;  // a copy whose steps mirror it
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
  // Returns the view's descriptor, or the stage's.
  FusedRow& RowOf(size_t row, size_t view);
  absl::Status CheckSize(const FusedImage& image, const View& view,
                         Slice* slice, FusedScratch* scratch) const;
  absl::Status ComputeHostValues(size_t row, Whose whose, const RowInput& input,
                                 FusedScratch* scratch);
  // Composes the views of the image's chains. If the program reduces the image,
  // the image becomes smaller.
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
