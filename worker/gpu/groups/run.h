// SPDX-License-Identifier: Apache-2.0
//
// GroupRun: puts one Run of a group on its slot's queue.
//
//   for each pass:  pixels, coefficients and descriptors to the GPU, decoding,
//                   the kernels
//   then:           results to the host, what has no pixels, the mark
//
// Where kernels may find a row bad, the fault words are set to 0 before the
// passes, and copied to the host with the results.
//
// Usually one pass. More where the images that are decoded there exceed the
// slot's memory, and where the GPU had no memory for a pass: then half of its
// rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "worker/compute/gpu_worker.h"
#include "worker/gpu/device/queue.h"
#include "worker/gpu/groups/group.h"

namespace leat::worker {

class GroupRun {
 public:
  // `image_bytes`: of slot.device_images. All outlive the run.
  GroupRun(uint64_t image_bytes, GpuGroup* group)
      : queue_(*group->slot().queue),
        image_bytes_(image_bytes),
        group_(*group) {}

  // Returns when all is on the queue, whose mark is its end. Rows are kDone
  // then, or for repair. Errors: device/error.h; what is on the queue may still
  // run. REQUIRES: the device is current.
  absl::Status Enqueue();
  // The same where no row needs the kernel.
  absl::Status EnqueueStores();

  uint64_t splits() const { return splits_; }

 private:
  // The end of the pass that begins with todo_[begin].
  size_t PassEnd(size_t begin) const;
  absl::Status EnqueuePass(std::span<const size_t> rows);
  // Lists the JPEGs that kernels make pixels of.
  void ListJpegs(std::span<const size_t> rows);
  absl::Status SendPixels(std::span<const size_t> rows);
  absl::Status LaunchJpegs();
  absl::Status Decode(std::span<const size_t> rows);
  absl::Status Launch(std::span<const size_t> rows);
  absl::Status ClearFaults();
  absl::Status FetchFaults();
  absl::Status FetchResults();
  absl::Status FetchField(size_t field);
  absl::Status StoreToDevice();
  absl::Status StoreToHost();
  uint64_t DecodedBytes(const GroupRow& row) const;

  DeviceQueue& queue_;
  const uint64_t image_bytes_;
  GpuGroup& group_;
  std::vector<size_t> todo_;    // rows with pixels to come
  std::vector<bool> computed_;  // by row: the kernel does it in this run
  size_t most_rows_ = kMaxGpuGroupRows;  // of a pass
  size_t num_jpegs_ = 0;                 // of the pass
  uint64_t splits_ = 0;
};

}  // namespace leat::worker
