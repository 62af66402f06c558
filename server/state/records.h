// SPDX-License-Identifier: Apache-2.0
//
// Event <-> leat.stored.v1.Event: the form in which a store keeps it.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "server/state/state.h"

namespace leat::server {

// The record of one that was set aside, as it was.
std::string EncodeEvent(const Event& event);
// An event of an unknown kind, or a job that today's checks refuse, comes as
// SetAside. kDataLoss: not such a record.
absl::StatusOr<Event> DecodeEvent(std::string_view bytes);

}  // namespace leat::server
