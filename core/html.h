// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace leat {

// Returns the text escaped for HTML, between tags or in a quoted attribute:
// EscapeHtml("a<b") is "a&lt;b". Control characters except newlines become
// spaces. Bytes from 0x80 on stay as they are.
std::string EscapeHtml(std::string_view text);

}  // namespace leat
