// SPDX-License-Identifier: Apache-2.0
//
// Names what lies at a path, for messages.
#pragma once

#include <cstdint>
#include <string_view>

namespace leat {

// Returns "a file", "a directory", "a named pipe", "a socket", "a character
// device" or "a block device". `mode` is st_mode of stat(2).
std::string_view FileKind(uint32_t mode);

}  // namespace leat
