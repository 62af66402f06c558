// SPDX-License-Identifier: Apache-2.0
//
// Event <-> leat.stored.v1.Event: the form in which a store keeps it.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "server/state.h"

namespace leat::server {

std::string EncodeEvent(const Event& event);
// kDataLoss: not such a record, or of a newer program (says what is unknown).
absl::StatusOr<Event> DecodeEvent(std::string_view bytes);

}  // namespace leat::server
