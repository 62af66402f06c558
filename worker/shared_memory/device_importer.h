// SPDX-License-Identifier: Apache-2.0
//
// DeviceImporter: makes memory that a consumer shares usable by GPUs: maps a
// GPU's memory, and makes the host's fast for GPUs to write.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "leat/v1/shared_memory.pb.h"
#include "worker/compute/row_work.h"

namespace leat::worker {

// Thread-safe. It outlives the memories that it has made, or lets them outlive
// it.
class DeviceImporter {
 public:
  virtual ~DeviceImporter() = default;
  // Returns the GPUs whose memory it takes: 32 hexadecimal digits each.
  virtual std::vector<std::string> uuids() const = 0;
  // The caller keeps `fd`. `share` has been checked: 0 < bytes <= mapped_bytes,
  // and the offsets are within `bytes`; the caller checks the rows. Dropping
  // the memory unmaps it: then nothing writes to it any more. kNotFound: no
  // such GPU here. kInvalidArgument: not such an allocation.
  virtual absl::StatusOr<std::shared_ptr<const SharedMemory>> Import(
      int fd, const v1::ShareMemory& share) = 0;
  // Returns the host's memory `memory` of `mapped_bytes`, which will be
  // page-locked soon, or stays as it is if that is impossible, which is only
  // slower. Does not wait for it; the result may be used at once. `memory` is
  // dropped some time after the result.
  virtual std::shared_ptr<const SharedMemory> Pin(
      std::shared_ptr<const SharedMemory> memory, uint64_t mapped_bytes) {
    return memory;
  }
};

}  // namespace leat::worker
