// SPDX-License-Identifier: Apache-2.0
//
// UTF-8. A protobuf `string` and a gRPC message must be it, or the peer drops
// the whole message; names of files and texts about them may be any bytes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace leat {

// Returns the bytes of the UTF-8 sequence that `text` begins with; 0: it begins
// with none. Overlong forms, surrogates and what is over U+10FFFF are none
// (table 3-7 of Unicode). REQUIRES: `text` is not empty.
size_t Utf8Length(std::string_view text);

bool IsUtf8(std::string_view text);

// Returns `text` with each byte that is no UTF-8 written out: "caf\xe9". What
// is UTF-8 stays as it is. At most about `most` bytes.
std::string ToUtf8(std::string_view text, size_t most = std::string::npos);

}  // namespace leat
