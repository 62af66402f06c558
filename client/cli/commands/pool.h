// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "client/cli/base/fields.h"
#include "client/cli/session/session.h"

namespace leat::cli {

// Calls `make` with the current pool (leat.v1.Pool) after each change, and
// every 30 seconds, until the process is stopped; with `once`, one time. While
// the coordinator is away it retries, with a pause that doubles up to 30
// seconds, and prints errors of the coordinator and of `make`. With `once` it
// returns any error; otherwise only permanent ones: kInvalidArgument,
// kPermissionDenied, kUnauthenticated.
absl::StatusOr<int> FollowPool(
    Session& session, const std::string& pool, bool once,
    const std::function<absl::Status(const Json& pool)>& make);

// Runs leat pool run --kubernetes.
absl::StatusOr<int> RunKubernetesPool(Session& session);

}  // namespace leat::cli
