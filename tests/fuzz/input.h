// SPDX-License-Identifier: Apache-2.0
//
// Input takes choices and texts from the front of a fuzzer's bytes; when these
// are used up, it gives zeros and empty texts. Its Put functions write what it
// reads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace leat::fuzz {

class Input {
 public:
  explicit Input(std::string_view bytes) : rest_(bytes) {}

  bool empty() const { return rest_.empty(); }
  template <class T>
  T Number() {
    T value = 0;
    const std::string_view bytes = Take(sizeof value);
    std::memcpy(&value, bytes.data(), bytes.size());
    return value;
  }
  uint8_t Byte() { return Number<uint8_t>(); }
  // Returns up to 65,535 bytes.
  std::string_view Text() { return Take(Number<uint16_t>()); }
  std::string_view Rest() { return Take(rest_.size()); }

 private:
  std::string_view Take(size_t bytes) {
    const std::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(taken.size());
    return taken;
  }
  std::string_view rest_;
};

template <class T>
std::string PutNumber(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}
inline std::string PutByte(int value) {
  return std::string(1, static_cast<char>(value));
}
inline std::string PutText(std::string_view text) {
  text = text.substr(0, 65535);
  return PutNumber(static_cast<uint16_t>(text.size())) + std::string(text);
}

}  // namespace leat::fuzz
