// SPDX-License-Identifier: Apache-2.0
//
// Reads the messages of a Rows stream: checks what can be checked before the
// job is known.
//
// Example: a request supplies two encoded images of 100 KB. They are not copied:
// the samples of the returned request point into the message, which lives, and
// is counted, until both rows have been computed or forgotten.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "leat/v1/worker.pb.h"
#include "worker/scheduler/scheduler.h"

namespace leat::worker {

// Counts the bytes of messages whose samples are kept: those of a stream, and
// of all streams together.
struct SuppliedBytes {
  std::shared_ptr<std::atomic<uint64_t>> of_stream, of_all;
};

// kInvalidArgument: the plan hash or the consumer's name has a wrong size.
absl::Status CheckOpen(const v1::OpenRows& open);

// Returns the request, with its message if that has samples. Only sizes are
// checked: a request that waits for its job is unchecked, and counts as its
// rows. kInvalidArgument: lists do not fit together, or are too long.
// kResourceExhausted: the stream would keep more than `max_of_stream` bytes.
absl::StatusOr<RowRequest> ReadRequest(v1::RequestRows proto,
                                       const SuppliedBytes& counts,
                                       uint64_t max_of_stream);

}  // namespace leat::worker
