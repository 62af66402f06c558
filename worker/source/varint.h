// SPDX-License-Identifier: Apache-2.0
//
// Numbers as protocol buffers encode them: seven bits a byte, the lowest first.
// Indexes of many samples keep numbers so, outside of messages.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace leat::worker {

inline void AppendVarint(uint64_t value, std::string* bytes) {
  for (; value >= 0x80; value >>= 7)
    *bytes += static_cast<char>(0x80 | (value & 0x7f));
  *bytes += static_cast<char>(value);
}

inline size_t VarintBytes(uint64_t value) {
  return (static_cast<size_t>(std::bit_width(value | 1)) + 6) / 7;
}

// Takes a number from the front of `bytes`. Returns false if there is none.
inline bool TakeVarint(std::string_view* bytes, uint64_t* value) {
  constexpr size_t kMaxBytes = 10;
  *value = 0;
  for (size_t i = 0; i < kMaxBytes && i < bytes->size(); ++i) {
    const auto byte = static_cast<uint8_t>((*bytes)[i]);
    *value |= uint64_t{byte & 0x7fu} << (7 * i);
    if (byte >= 0x80) continue;
    bytes->remove_prefix(i + 1);
    return true;
  }
  return false;
}

}  // namespace leat::worker
