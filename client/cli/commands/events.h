// SPDX-License-Identifier: Apache-2.0
//
// A View shows an event as a line, which is broken where the terminal ends, or
// as a row of a table for `wide` and csv. These are pure functions of the
// coordinator's answers.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "client/cli/base/view.h"

namespace leat::cli {

// `events` are those of a leat.v1.WatchEventsResponse.
View EventsView(const Json& events, Format format);

// Turns "worker", "w/node1" and "jobs" into what the coordinator knows:
// "worker", "worker/node1" and "job". kInvalidArgument: there is no such kind;
// the message names near ones.
absl::StatusOr<std::string> EventSubject(const std::string& text);

}  // namespace leat::cli
