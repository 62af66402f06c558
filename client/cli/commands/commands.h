// SPDX-License-Identifier: Apache-2.0
//
// The commands. Each returns its exit code, or the error that decides it.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "client/cli/session/session.h"
#include "client/cli/views/listing.h"

namespace leat::cli {

// Returns the status of a call about the entity `name`; if it does not exist,
// with similar names.
absl::Status WithNearNames(absl::Status status, Admin& admin, const Kind& kind,
                           std::string_view name);

absl::StatusOr<int> RunStatus(Session& session);
absl::StatusOr<int> RunGet(Session& session);
absl::StatusOr<int> RunDescribe(Session& session);
absl::StatusOr<int> RunBottleneck(Session& session);
absl::StatusOr<int> RunTop(Session& session);
absl::StatusOr<int> RunWait(Session& session);
absl::StatusOr<int> RunDoctor(Session& session);
absl::StatusOr<int> RunDelete(Session& session);
absl::StatusOr<int> RunRefresh(Session& session);
absl::StatusOr<int> RunDrain(Session& session);
absl::StatusOr<int> RunUndrain(Session& session);
absl::StatusOr<int> RunLogLevel(Session& session);
absl::StatusOr<int> RunAccess(Session& session);
absl::StatusOr<int> RunPool(Session& session);
absl::StatusOr<int> RunSlurm(Session& session);
absl::StatusOr<int> RunSheet(Session& session);
absl::StatusOr<int> RunWhy(Session& session);
absl::StatusOr<int> RunIndex(Session& session);
absl::StatusOr<int> RunInspect(Session& session);
absl::StatusOr<int> RunConvert(Session& session);
absl::StatusOr<int> RunEvents(Session& session);
absl::StatusOr<int> RunHealth(Session& session);
absl::StatusOr<int> RunReport(Session& session);
absl::StatusOr<int> RunState(Session& session);
absl::StatusOr<int> RunTrace(Session& session);
absl::StatusOr<int> RunContext(Session& session);
absl::StatusOr<int> RunMan(Session& session);
absl::StatusOr<int> RunCompletion(Session& session);
absl::StatusOr<int> RunVersion(Session& session);

}  // namespace leat::cli
