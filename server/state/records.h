// SPDX-License-Identifier: Apache-2.0
//
// Converts Event to and from leat.stored.v1.Event, which stores keep.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "server/state/state.h"

namespace leat::server {

// A SetAside event encodes to the record that was read.
std::string EncodeEvent(const Event& event);
// An event of an unknown kind, or a job that today's checks reject, decodes to
// SetAside. kDataLoss: not such a record.
absl::StatusOr<Event> DecodeEvent(std::string_view bytes);

}  // namespace leat::server
