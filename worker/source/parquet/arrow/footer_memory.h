// SPDX-License-Identifier: Apache-2.0
//
// FooterMemory: the memory that a footer will take when Arrow has read it.
//
// A footer is a struct of Thrift's compact protocol. A chunk of a column may be
// 3 bytes of it, and is 700 in memory: so 16 MiB could demand 4 GB. The lists of
// a footer are counted here, by what they say to have.
#pragma once

#include <cstddef>
#include <cstdint>

namespace leat::worker {

class FooterMemory {
 public:
  // Returns the bytes, rounded up. Of a damaged footer the part before the
  // damage counts: Arrow stops there, too.
  static uint64_t Of(const uint8_t* data, size_t size) {
    FooterMemory footer(data, size);
    footer.Struct(Kind::kFile, 0);
    return footer.bytes_ + size;
  }

 private:
  enum class Kind : uint8_t { kFile, kRowGroup, kOther };
  enum Type : uint8_t {
    kTrue = 1,
    kFalse,
    kByte,
    kInt16,
    kInt32,
    kInt64,
    kDouble,
    kBinary,
    kList,
    kSet,
    kMap,
    kStruct,
    kUuid
  };
  static constexpr int kMaxDepth = 100;  // Thrift's own is 64
  // The bytes of Arrow's structs and of what these point to, rounded up.
  static constexpr uint64_t kSchemaElement = 800, kRowGroupBytes = 200,
                            kColumnChunk = 1000, kOtherStruct = 100, kText = 40,
                            kNumber = 8;

  FooterMemory(const uint8_t* data, size_t size)
      : at_(data), end_(data + size) {}

  uint64_t Byte() {
    if (at_ == end_) {
      damaged_ = true;
      return 0;
    }
    return *at_++;
  }
  uint64_t Varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const uint64_t byte = Byte();
      value |= (byte & 127) << shift;
      if (byte < 128) return value;
    }
    damaged_ = true;
    return 0;
  }
  // Returns a size: the low 32 bits of the number, as Thrift takes them.
  uint64_t Size() {
    const auto size = static_cast<int32_t>(Varint());
    damaged_ = damaged_ || size < 0;
    return damaged_ ? 0 : static_cast<uint64_t>(size);
  }
  // Returns the number of a field behind number `last`.
  int16_t Field(uint64_t head, int16_t last) {
    const uint64_t step = head >> 4;
    if (step != 0) return static_cast<int16_t>(last + step);
    const uint64_t value = Varint();
    return static_cast<int16_t>(value >> 1 ^ (~(value & 1) + 1));
  }
  void Skip(uint64_t bytes) {
    if (bytes > static_cast<uint64_t>(end_ - at_))
      damaged_ = true;
    else
      at_ += bytes;
  }

  void Struct(Kind kind, int depth) {
    int16_t field = 0;
    while (!damaged_) {
      const uint64_t head = Byte();
      if (head == 0) return;
      field = Field(head, field);
      const uint64_t type = head & 15;
      if (type == kList || type == kSet)
        List(kind, field, depth);
      else if (type != kTrue && type != kFalse)
        Element(type, Kind::kOther, depth);
    }
  }

  // The list is in field `field` of a struct of this kind.
  void List(Kind in, int field, int depth) {
    const uint64_t head = Byte();
    const uint64_t count = head >> 4 == 15 ? Size() : head >> 4;
    const uint64_t type = head & 15;
    // Every element has a byte at least, so Arrow does not read such a list.
    if (count > static_cast<uint64_t>(end_ - at_)) damaged_ = true;
    if (damaged_) return;
    Kind kind = Kind::kOther;
    uint64_t each = type == kStruct ? kOtherStruct : kNumber;
    if (type == kBinary) each = kText;
    if (in == Kind::kFile && field == 2) each = kSchemaElement;
    if (in == Kind::kFile && field == 4) {
      kind = Kind::kRowGroup;
      each = kRowGroupBytes;
    }
    if (in == Kind::kRowGroup && field == 1) each = kColumnChunk;
    bytes_ += count * each;
    for (uint64_t i = 0; i < count && !damaged_; ++i)
      Element(type, kind, depth);
  }

  void Map(int depth) {
    const uint64_t count = Size();
    if (count == 0) return;
    const uint64_t types = Byte();
    for (uint64_t i = 0; i < count && !damaged_; ++i) {
      Element(types >> 4, Kind::kOther, depth);
      Element(types & 15, Kind::kOther, depth);
    }
  }

  // REQUIRES: a truth value is that of a list, where it has a byte.
  void Element(uint64_t type, Kind kind, int depth) {
    if (depth >= kMaxDepth) {
      damaged_ = true;
      return;
    }
    switch (type) {
      case kTrue:
      case kFalse:
      case kByte:
        return Skip(1);
      case kInt16:
      case kInt32:
      case kInt64:
        Varint();
        return;
      case kDouble:
        return Skip(8);
      case kBinary:
        return Skip(Size());
      case kList:
      case kSet:
        return List(Kind::kOther, 0, depth + 1);
      case kMap:
        return Map(depth + 1);
      case kStruct:
        return Struct(kind, depth + 1);
      case kUuid:
        return Skip(16);
      default:
        damaged_ = true;
    }
  }

  const uint8_t* at_;
  const uint8_t* const end_;
  uint64_t bytes_ = 0;
  bool damaged_ = false;
};

}  // namespace leat::worker
