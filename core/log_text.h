// SPDX-License-Identifier: Apache-2.0
//
// Functions that the formats of log lines share.
#pragma once

#include <string>
#include <string_view>

#include "spdlog/details/log_msg.h"

namespace leat {

// Returns the message, cut at the maximum length of a line: a user's path or a
// peer's message in it may have any length.
std::string_view Bounded(const spdlog::details::log_msg& msg);
// Appends `text` with control characters escaped, so that an event stays one
// line, and user input can neither imitate another event nor control a
// terminal.
void AppendPrintable(std::string_view text, std::string* line);
// `text` for a place between quotes: a backslash goes before each quote and
// backslash. LOG_... does it itself; this is for what is put together before.
std::string EscapedQuotes(std::string_view text);

}  // namespace leat
