// SPDX-License-Identifier: Apache-2.0
//
// Shows events as Views: an event is a line, which is broken at the terminal's
// width, or a row of a table for `wide` and csv. These are pure functions of
// the coordinator's answers.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "client/cli/base/view.h"

namespace leat::cli {

// `events` are those of a leat.v1.WatchEventsResponse.
View EventsView(const Json& events, Format format);

// Converts "worker", "w/node1" and "jobs" to the coordinator's terms: "worker",
// "worker/node1" and "job". kInvalidArgument: there is no such kind; the
// message names similar ones.
absl::StatusOr<std::string> EventSubject(const std::string& text);

}  // namespace leat::cli
