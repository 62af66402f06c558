// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "client/cli/base/fields.h"
#include "client/cli/session/session.h"

namespace leat::cli {

// Calls `make` with the pool (leat.v1.Pool) as it stands, whenever it changes,
// and every 30 seconds, until the process is stopped; `once`: one time. A
// coordinator that is away is waited for, with a pause that doubles up to 30
// seconds; what it or `make` says of an error is printed. Returns `once` the
// error; otherwise only those that waiting does not mend: kInvalidArgument,
// kPermissionDenied, kUnauthenticated.
absl::StatusOr<int> FollowPool(
    Session& session, const std::string& pool, bool once,
    const std::function<absl::Status(const Json& pool)>& make);

// leat pool run --kubernetes.
absl::StatusOr<int> RunKubernetesPool(Session& session);

}  // namespace leat::cli
