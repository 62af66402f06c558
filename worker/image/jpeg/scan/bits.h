// SPDX-License-Identifier: Apache-2.0
//
// ScanBits: reads the coded data of a scan bit by bit, from any position.
//
// ITU-T T.81, B.1.1.5: a byte 0xff of the data is followed by a 0 that is not
// part of the data ("stuffed"). 0xff with any other byte is a marker, and ends
// the data here: this reader does not read data after a marker.
//
// The bit offset of a position is eight times the offset of the byte of its
// next bit, counted with stuffed bytes, plus the bits of that byte that are
// read. So it is an offset into the file as stored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace leat::worker {

// Trivially copyable, so that loops keep it in registers.
struct ScanBits {
  const uint8_t* at = nullptr;  // the next byte
  const uint8_t* end = nullptr;
  uint64_t bits = 0;  // the next bits, from the top
  int count = 0;      // how many bits are in `bits`
  int padding = 0;    // zeros given after the data ended

  static ScanBits From(std::span<const uint8_t> data) {
    return {.at = data.data(), .end = data.data() + data.size()};
  }
  // REQUIRES: offset / 8 is within the data or at their end.
  static ScanBits From(std::span<const uint8_t> data, uint32_t offset) {
    ScanBits from = From(data.subspan(offset / 8));
    from.Refill();
    from.Drop(static_cast<int>(offset % 8));
    return from;
  }

  // Fills `bits` to at least 56 bits; bits after the end of the data are 0.
  void Refill() {
    if (end - at >= 8) {
      uint64_t next = 0;
      std::memcpy(&next, at, 8);
      next = __builtin_bswap64(next);
      if (!HasFf(next)) {
        // Bits beyond `count` belong to the byte at `at`, which is read next.
        bits |= next >> count;
        at += (63 - count) >> 3;
        count |= 56;
        return;
      }
    }
    const ByBytes more = RefillByBytes(at, end, bits, count);
    bits = more.bits;
    at += more.bytes;
    count = static_cast<int>(more.count);
    padding += static_cast<int>(more.padding);
  }
  // Continues where `other` is, which reads the same data. An assignment of the
  // whole would be compiled to wide loads of fields that were stored one by
  // one; a processor waits for such stores to end, once per block.
  void ContinueAt(const ScanBits& other) {
    at = other.at;
    bits = other.bits;
    count = other.count;
    padding = other.padding;
  }
  // REQUIRES: number <= count, for both.
  void Drop(int number) {
    bits <<= number;
    count -= number;
  }
  // REQUIRES: number > 0.
  uint32_t Take(int number) {
    const auto taken = static_cast<uint32_t>(bits >> (64 - number));
    Drop(number);
    return taken;
  }
  // True if more bits were taken than the data have.
  bool Overrun() const { return padding > count; }
  // Returns the bit offset of the next bit; `data` is the one given to From.
  // REQUIRES: not Overrun().
  uint32_t Offset(std::span<const uint8_t> data) const;

 private:
  static bool HasFf(uint64_t bytes) {
    constexpr uint64_t kOnes = 0x0101010101010101;
    return ((~bytes - kOnes) & bytes & (kOnes << 7)) != 0;
  }
  // The result of a refill: the bits, their number, the number of bytes that
  // were read, and of padding bits that were added. It fits two registers.
  struct ByBytes {
    uint64_t bits;
    uint8_t count, bytes, padding;
  };
  static ByBytes RefillByBytes(const uint8_t* at, const uint8_t* end,
                               uint64_t bits, int count);
};

}  // namespace leat::worker
