// SPDX-License-Identifier: Apache-2.0
//
// Text for terminals: text from a service is escaped before it is shown, and
// numbers, sizes and ages are formatted for people.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "core/printable.h"

namespace leat::cli {

// Returns the columns of printable UTF-8 on a terminal: East Asian wide
// characters take two, combining ones none.
size_t DisplayWidth(std::string_view text);
// Returns the longest prefix of `text` that fits into `width` columns, with "…"
// if something was cut.
std::string Clip(std::string_view text, size_t width);
// Keeps the beginning and the end, where similar names differ.
std::string ClipMiddle(std::string_view text, size_t width);
// Breaks `text` at spaces into lines of at most `width` columns; 0: no limit.
std::vector<std::string> Wrap(std::string_view text, size_t width);

// One decimal below 100, none above: "7.2", "1650".
std::string Rate(double value);
// A fraction as per cent: "4.5".
std::string Percent(double fraction);
std::string Mebibytes(uint64_t bytes);
// "120 of 1251"; "120" in an epoch without an end.
std::string OfSteps(uint64_t step, std::string_view separator, uint64_t steps);
// "812 B", "3.4 KiB", "1.2 GiB": if the unit cannot be in a header.
std::string Size(uint64_t bytes);
// "45s", "12m", "3h12m", "5d4h"; negative durations are "0s".
std::string Age(absl::Duration age);
// Joins the first `most` names, and counts the others: "a,b,+2".
std::string JoinFew(const std::vector<std::string>& names, size_t most);
// Returns an RFC 3339 time without fractions of a second; other text unchanged.
std::string TimeText(std::string_view rfc3339);
// The same with at most 3 digits of a fraction: "2026-11-21T02:00:00.123Z".
std::string MillisecondsText(std::string_view rfc3339);
// Returns the age of an RFC 3339 time; "-" if it is not one.
std::string AgeSince(std::string_view rfc3339, absl::Time now);
// Turns "WORKER_STATE_READY" with prefix "WORKER_STATE_" into "ready".
std::string EnumWord(std::string_view value, std::string_view prefix);
// Returns bytes in protobuf's JSON form (base64) as hexadecimal; other text
// unchanged.
std::string HexOfBase64(std::string_view base64);
// Returns `text` between single quotes, as one word for a POSIX shell, bash,
// zsh and fish, whatever it contains.
std::string Quoted(std::string_view text);

}  // namespace leat::cli
