// SPDX-License-Identifier: Apache-2.0
//
// Events as a View: a line each for people, broken where the terminal ends; a
// table for `wide` and csv. Pure functions of the coordinator's answers.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "client/cli/view.h"

namespace leat::cli {

// `events`: of a leat.v1.WatchEventsResponse.
View EventsView(const Json& events, Format format);

// "worker", "w/node1", "jobs" as what the coordinator knows: "worker",
// "worker/node1", "job". kInvalidArgument: no such kind (names near ones).
absl::StatusOr<std::string> EventSubject(const std::string& text);

}  // namespace leat::cli
