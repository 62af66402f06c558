// SPDX-License-Identifier: Apache-2.0
//
// Encodes fields of protocol buffers, in their binary format.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace leat::cli {

inline void AppendVarint(uint64_t value, std::string* to) {
  for (; value >= 0x80; value >>= 7) *to += static_cast<char>(value | 0x80);
  *to += static_cast<char>(value);
}

inline void AppendNumber(uint32_t field, uint64_t value, std::string* to) {
  AppendVarint(field << 3, to);
  AppendVarint(value, to);
}

// Appends a string, bytes, packed numbers or a message.
inline void AppendBytes(uint32_t field, std::string_view value,
                        std::string* to) {
  AppendVarint(field << 3 | 2, to);
  AppendVarint(value.size(), to);
  *to += value;
}

inline std::string Varint(uint64_t value) {
  std::string bytes;
  AppendVarint(value, &bytes);
  return bytes;
}

// Encodes only the field, without a message around it.
inline std::string BytesField(uint32_t field, std::string_view value) {
  std::string bytes;
  AppendBytes(field, value, &bytes);
  return bytes;
}

}  // namespace leat::cli
