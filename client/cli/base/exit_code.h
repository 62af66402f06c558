// SPDX-License-Identifier: Apache-2.0
//
// The program's exit codes, which scripts may rely on.
#pragma once

#include "absl/status/status.h"

namespace leat::cli {

enum ExitCode : int {
  kGood = 0,
  kFailed = 1,
  kWrongUse = 2,
  kNotFound = 3,
  kCannotConnect = 4,  // or timed out
  kNotAllowed = 5,
  kUnhealthy = 6,  // the service, or the inspected file
};

constexpr ExitCode ExitCodeOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kOk:
      return kGood;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
      return kWrongUse;
    case absl::StatusCode::kNotFound:
      return kNotFound;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return kCannotConnect;
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kPermissionDenied:
      return kNotAllowed;
    default:
      return kFailed;
  }
}

}  // namespace leat::cli
