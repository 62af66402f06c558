// SPDX-License-Identifier: Apache-2.0
//
// What the formats of log lines have in common.
#pragma once

#include <string>
#include <string_view>

#include "spdlog/details/log_msg.h"

namespace leat {

// The message, cut at a line's bound, whatever a user's path or a peer's
// message brings.
std::string_view Bounded(const spdlog::details::log_msg& msg);
// Control characters become escapes, so that an event stays one line and what
// a user typed cannot pass for another event or drive a terminal.
void AppendPrintable(std::string_view text, std::string* line);

}  // namespace leat
