// SPDX-License-Identifier: Apache-2.0
//
// Maps host memory that a consumer shares.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "leat/v1/shared_memory.pb.h"
#include "worker/compute/row_work.h"

namespace leat::worker {

// Maps the memfd `fd`, which the caller keeps, until the memory is dropped. Its
// pages are the consumer's; none is touched here. kInvalidArgument: not a memfd
// that is sealed against shrinking and growing, or of another size.
// kResourceExhausted: no room for the mapping.
absl::StatusOr<std::shared_ptr<const SharedMemory>> MapHostMemory(
    int fd, const v1::ShareMemory& share);

}  // namespace leat::worker
