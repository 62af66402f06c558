// SPDX-License-Identifier: Apache-2.0
//
// Map errors of storage to faults: one table per kind of error.
//
// The rules are conservative. A sample's fault changes what consumers get, so
// only bytes that were read may have it; an object's fault must be reported by
// two workers; any other fault sends the row to another worker.
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "core/cluster/fault.h"

namespace leat::worker {

struct FaultRule {
  absl::StatusCode code = absl::StatusCode::kUnknown;
  Fault fault = Fault::kWorker;
};

// Returns the rule for a failed system call on a file. It is the object's fault
// only if the folder that identifies the dataset is there (FolderIsThere).
FaultRule RuleOfErrno(int error);

// Returns the rule for an HTTP response other than the expected one. `code`:
// S3's code in the body; empty: none. Fault kTransient: another try may help.
FaultRule RuleOfHttp(int status, std::string_view code);

// Adds a fault to an error of a reader or a decoder. An error without a fault
// (storage always adds one) is a verdict on bytes that were read, and so the
// sample's fault, except for codes that are not a verdict.
absl::Status Judged(absl::Status status);

}  // namespace leat::worker
