// SPDX-License-Identifier: Apache-2.0
//
// Writes strings as JSON (RFC 8259), for logs and for the commands' output.
#pragma once

#include <string>
#include <string_view>

namespace leat {

// Appends `text` in quotes, escaped. Bytes that are not UTF-8 become U+FFFD, so
// that the result is always valid JSON.
void AppendJsonString(std::string_view text, std::string* json);
std::string JsonString(std::string_view text);

}  // namespace leat
