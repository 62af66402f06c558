// SPDX-License-Identifier: Apache-2.0
//
// What storage says, and where the cause lies: the one table of each kind.
//
// The rules lean to one side. What is called the sample's changes what
// consumers get, so only bytes that were read may earn that; what is called the
// object's must be said by two workers; all else sends the row elsewhere.
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "core/cluster/fault.h"

namespace leat::worker {

struct FaultRule {
  absl::StatusCode code = absl::StatusCode::kUnknown;
  Fault fault = Fault::kWorker;
};

// The rule for a failed system call on a file. It is the object's fault only if
// the folder that the dataset is known by is there (FolderIsThere).
FaultRule RuleOfErrno(int error);

// The rule for an HTTP response that is not what was wanted. `code`: what S3
// says in the body; empty: nothing. Passing: another try may help.
FaultRule RuleOfHttp(int status, std::string_view code);

// What a reader or a decoder says. Where nobody has said where the cause lies
// (storage always does), it is a verdict on bytes that were there, and so the
// sample's; but codes that are no verdict are not.
absl::Status Judged(absl::Status status);

}  // namespace leat::worker
