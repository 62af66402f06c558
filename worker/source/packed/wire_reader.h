// SPDX-License-Identifier: Apache-2.0
//
// WireReader: the fields of a serialised protocol buffer, one after the other,
// without copies. For messages from files, which may have any bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace leat::worker {

class WireReader {
 public:
  enum Type : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };
  struct Field {
    uint32_t number = 0;
    Type type = kVarint;
    uint64_t value = 0;                // if kVarint, kFixed64 or kFixed32
    std::span<const std::byte> bytes;  // if kBytes
  };

  explicit WireReader(std::span<const std::byte> message) : rest_(message) {}

  // Returns false if there are no more, or it is malformed(). Groups count as
  // malformed.
  bool Next(Field* field) {
    if (rest_.empty()) return false;
    uint64_t tag = 0;
    if (!Varint(&tag) || tag > UINT32_MAX || tag >> 3 == 0) return Fail();
    field->number = static_cast<uint32_t>(tag >> 3);
    field->type = static_cast<Type>(tag & 7);
    field->bytes = {};
    switch (field->type) {
      case kVarint:
        return Varint(&field->value) || Fail();
      case kFixed64:
        return Fixed(8, &field->value) || Fail();
      case kFixed32:
        return Fixed(4, &field->value) || Fail();
      case kBytes:
        if (!Varint(&field->value) || field->value > rest_.size())
          return Fail();
        field->bytes = Take(field->value);
        return true;
    }
    return Fail();
  }
  bool malformed() const { return malformed_; }

  // Reads the next number of a packed field. Returns false if there are no
  // more, or it is malformed().
  bool NextPacked(uint64_t* value) {
    return !rest_.empty() && (Varint(value) || Fail());
  }

 private:
  bool Fail() {
    malformed_ = true;
    rest_ = {};
    return false;
  }
  std::span<const std::byte> Take(size_t bytes) {
    const auto taken = rest_.first(bytes);
    rest_ = rest_.subspan(bytes);
    return taken;
  }
  bool Varint(uint64_t* value) {
    *value = 0;
    const size_t most = std::min<size_t>(rest_.size(), 10);
    for (size_t i = 0; i < most; ++i) {
      const uint64_t byte = static_cast<uint64_t>(rest_[i]);
      *value |= (byte & 0x7f) << (7 * i);
      if (byte < 0x80) {
        Take(i + 1);
        return true;
      }
    }
    return false;
  }
  bool Fixed(size_t bytes, uint64_t* value) {
    if (rest_.size() < bytes) return false;
    *value = 0;
    std::memcpy(value, rest_.data(), bytes);
    Take(bytes);
    return true;
  }

  std::span<const std::byte> rest_;
  bool malformed_ = false;
};

}  // namespace leat::worker
