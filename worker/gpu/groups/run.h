// SPDX-License-Identifier: Apache-2.0
//
// GroupRun: puts one Run of a group on its slot's queue.
//
//   for each pass:  pixels, coefficients and descriptors to the GPU, decoding,
//                   the kernels
//   then:           results to the host, rows without pixels, the mark
//
// If kernels may find a row bad, the fault words are set to 0 before the
// passes, and copied to the host with the results; so are the places of seek
// indexes, if kernels leave any.
//
// Usually there is one pass. There are more if the images decoded on the GPU
// exceed the slot's memory, and if the GPU had no memory for a pass: then half
// of its rows are tried.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "core/clock.h"
#include "worker/compute/gpu_worker.h"
#include "worker/gpu/device/queue.h"
#include "worker/gpu/groups/group.h"

namespace leat::worker {

class GroupRun {
 public:
  // The group outlives the run.
  explicit GroupRun(GpuGroup* group)
      : queue_(*group->slot().queue), group_(*group) {}

  // Returns when all work is on the queue, whose mark is its end. Rows are then
  // kDone, or for repair. Errors: device/error.h; the work on the queue may
  // still run. REQUIRES: the device is current.
  absl::Status Enqueue();
  // The same for a group in which no row needs the kernel.
  absl::Status EnqueueStores();

  uint64_t splits() const { return splits_; }
  // Returns the time that the decoder's calls took.
  Duration decoding() const { return decoding_; }

 private:
  // Returns the end of the pass that begins with todo_[begin].
  size_t PassEnd(size_t begin) const;
  absl::Status EnqueuePass(std::span<const size_t> rows);
  // Lists the JPEGs whose pixels kernels make.
  void ListJpegs(std::span<const size_t> rows);
  absl::Status SendPixels(std::span<const size_t> rows);
  absl::Status LaunchJpegs();
  absl::Status Decode(std::span<const size_t> rows);
  absl::Status Launch(std::span<const size_t> rows);
  absl::Status ClearFaults();
  absl::Status FetchFaults();
  absl::Status FetchLeftPlaces();
  absl::Status FetchResults();
  absl::Status FetchField(size_t field);
  absl::Status StoreToDevice();
  absl::Status StoreToHost();
  uint64_t DecodedBytes(const GroupRow& row) const;

  DeviceQueue& queue_;
  GpuGroup& group_;
  std::vector<size_t> todo_;    // rows whose pixels are not computed yet
  std::vector<bool> computed_;  // per row: the kernel computes it in this run
  size_t most_rows_ = kMaxGpuGroupRows;  // in a pass
  size_t num_jpegs_ = 0;                 // in the pass
  uint64_t splits_ = 0;
  Duration decoding_{};
};

}  // namespace leat::worker
