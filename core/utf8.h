// SPDX-License-Identifier: Apache-2.0
//
// Functions for UTF-8. A protobuf `string` and a gRPC message must be valid
// UTF-8, otherwise the peer drops the whole message; file names and texts that
// contain them may be any bytes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace leat {

// Returns the length in bytes of the UTF-8 sequence at the beginning of `text`;
// 0: there is none. Overlong forms, surrogates and values over U+10FFFF are not
// sequences (table 3-7 of Unicode). REQUIRES: `text` is not empty.
size_t Utf8Length(std::string_view text);

bool IsUtf8(std::string_view text);

// Returns `text` with each byte that is not UTF-8 written as an escape:
// "caf\xe9". The rest is unchanged. The result has at most about `most` bytes.
std::string ToUtf8(std::string_view text, size_t most = std::string::npos);

// Returns `text` as it is written to the wire or to a file as a field of a
// protobuf message: protoc's generated code passes every `string` through this
// function (see proto/CMakeLists.txt), so that a forgotten ToUtf8() cannot make
// a message that its receiver rejects. Bytes that are not UTF-8 become "?",
// since the message's size was computed before. The result is valid until this
// thread's next call. Such a text is a bug in the program: a debug build aborts
// (see below).
const std::string& FieldText(const std::string& text);
const std::string& FieldText(std::string&& text) = delete;  // may return it

// The function that FieldText() calls when a text is not UTF-8, before it
// replaces the bytes. A debug build's handler aborts the process; a test may
// set its own.
using BadTextHandler = void (*)(std::string_view text);
BadTextHandler SetBadTextHandler(BadTextHandler handler);

}  // namespace leat
