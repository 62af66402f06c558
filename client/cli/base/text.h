// SPDX-License-Identifier: Apache-2.0
//
// Text for terminals: what a service sends is escaped before it is shown, and
// numbers, sizes and ages read as people expect.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"

namespace leat::cli {

// `text` with everything that could steer a terminal made visible: control
// characters (C0, DEL, C1), bidirectional overrides and bytes that are not
// UTF-8 become \n, \t, \xNN or \uNNNN. Other text is untouched.
std::string Printable(std::string_view text);

// Columns that printable UTF-8 takes on a terminal: East Asian wide characters
// two, combining ones none.
size_t DisplayWidth(std::string_view text);
// The longest beginning of `text` that fits into `width` columns, with "…" if
// something was cut.
std::string Clip(std::string_view text, size_t width);
// Its beginning and its end: names of a kind differ there.
std::string ClipMiddle(std::string_view text, size_t width);
// `text` broken at spaces into lines of at most `width` columns; 0: no limit.
std::vector<std::string> Wrap(std::string_view text, size_t width);

// One decimal below 100, none above: "7.2", "1650".
std::string Rate(double value);
// A fraction as per cent: "4.5".
std::string Percent(double fraction);
std::string Mebibytes(uint64_t bytes);
// "120 of 1251"; "120" in an epoch without an end.
std::string OfSteps(uint64_t step, std::string_view separator, uint64_t steps);
// "812 B", "3.4 KiB", "1.2 GiB": where the unit cannot be in a header.
std::string Size(uint64_t bytes);
// "45s", "12m", "3h12m", "5d4h"; negative durations are "0s".
std::string Age(absl::Duration age);
// An RFC 3339 time without parts of a second; another text as it is.
std::string TimeText(std::string_view rfc3339);
// Returns the age of an RFC 3339 time; "-" if it is not one.
std::string AgeSince(std::string_view rfc3339, absl::Time now);
// "WORKER_STATE_READY" with prefix "WORKER_STATE_": "ready".
std::string EnumWord(std::string_view value, std::string_view prefix);
// Bytes in protobuf's JSON form (base64) as hexadecimal; other text unchanged.
std::string HexOfBase64(std::string_view base64);
// `text` between single quotes, as one word for a POSIX shell, bash, zsh and
// fish, whatever is in it.
std::string Quoted(std::string_view text);

}  // namespace leat::cli
