// SPDX-License-Identifier: Apache-2.0
//
// DeviceImporter: maps GPU memory that a consumer lends, for those who have
// GPUs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "leat/v1/plane.pb.h"
#include "worker/row_work.h"

namespace leat::worker {

// Thread-safe; outlives the memories that it has made.
class DeviceImporter {
 public:
  virtual ~DeviceImporter() = default;
  // GPUs whose memory it takes: 32 hexadecimal digits each.
  virtual std::vector<std::string> uuids() const = 0;
  // `fd` stays the caller's. `lend` has been checked: 0 < bytes <=
  // mapped_bytes, and the offsets are within `bytes`; whether the rows are, is
  // the caller's concern. Dropping the memory unmaps it: then nothing writes to
  // it any more. kNotFound: no such GPU here. kInvalidArgument: not such an
  // allocation.
  virtual absl::StatusOr<std::shared_ptr<const LentMemory>> Import(
      int fd, const v1::LendMemory& lend) = 0;
};

}  // namespace leat::worker
