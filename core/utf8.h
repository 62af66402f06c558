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

// `text` of a field of a protobuf message, as it is written to the wire or to a
// file: the code that protoc makes passes every `string` through this (see
// proto/CMakeLists.txt), so that a forgotten ToUtf8() cannot make a message
// that nobody can read. Bytes that are no UTF-8 become "?", since the message's
// size was computed before; the result is good until this thread's next call.
// Such a text is a fault of the program: a debug build ends (see below).
const std::string& FieldText(const std::string& text);
const std::string& FieldText(std::string&& text) = delete;  // may return it

// What FieldText() does when a text is no UTF-8, before it mends the text. A
// debug build's ends the process; a test may set its own.
using BadTextHandler = void (*)(std::string_view text);
BadTextHandler SetBadTextHandler(BadTextHandler handler);

}  // namespace leat
