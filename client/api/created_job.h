// SPDX-License-Identifier: Apache-2.0
//
// Compares the job that the coordinator made with the one that was asked for:
// a coordinator that knows less would leave out what it does not know, and its
// batches would be other ones.
#pragma once

#include "absl/status/status.h"
#include "core/plan/job.h"
#include "leat/v1/types.pb.h"

namespace leat::client {

// kFailedPrecondition names each field that differs, with both values.
// kInvalidArgument: the job's spec or types are malformed, or its datasets have
// other types than `wanted` needs. REQUIRES: the job is not redacted.
absl::Status CheckCreated(const JobSpec& wanted, const v1::Job& job);

}  // namespace leat::client
