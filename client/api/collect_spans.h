// SPDX-License-Identifier: Apache-2.0
//
// Collects what workers and consumers did for a job's steps during some time
// (leat/v1/trace.proto). All workers that are not lost are asked at the same
// time, and the coordinator, which asks the consumers.
#pragma once

#include <cstddef>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/api/job_data.h"
#include "nlohmann/json.hpp"

namespace leat::client {

inline constexpr size_t kMaxWorkersTraced = 64;
inline constexpr size_t kMaxSpansCollected = 200'000;  // over all workers

// Returns an array with, per worker, {"worker", "address", "error"} or
// {"worker", "address", "dropped", "spans": [leat.v1.CollectedSpan]}; the last
// element has "coordinator" in place of "worker", and spans of consumers.
// kInvalidArgument: duration or ratio. kUnavailable: there is no worker, or
// none answers.
absl::StatusOr<nlohmann::json> CollectSpans(const JobData& job,
                                            absl::Duration duration,
                                            double ratio,
                                            absl::Duration timeout);

}  // namespace leat::client
