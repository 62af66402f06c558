// SPDX-License-Identifier: Apache-2.0
//
// The crc32 instruction takes three cycles and begins one a cycle, so three
// neighbouring parts of equal length are summed side by side. A sum is linear:
// that of a part followed by n bytes is the sum moved over n zero bytes, xor
// the sum of those bytes begun from 0. kMoved* hold what n zero bytes make of
// each byte of a sum, computed when the program is compiled.
#include "core/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace leat {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78;  // reflected

constexpr std::array<uint32_t, 256> MakeTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit)
      crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    table[i] = crc;
  }
  return table;
}

constexpr std::array<uint32_t, 256> kTable = MakeTable();

uint32_t ByTable(uint32_t crc, const std::byte* bytes, size_t size) {
  for (size_t i = 0; i < size; ++i)
    crc =
        (crc >> 8) ^ kTable[(crc ^ std::to_integer<uint32_t>(bytes[i])) & 0xff];
  return crc;
}

#if defined(__x86_64__)

using Moved = std::array<std::array<uint32_t, 256>, 4>;

constexpr Moved MakeMoved(size_t zeros) {
  std::array<uint32_t, 32> of_bit{};
  for (uint32_t bit = 0; bit < 32; ++bit) {
    uint32_t crc = uint32_t{1} << bit;
    for (size_t i = 0; i < zeros; ++i) crc = (crc >> 8) ^ kTable[crc & 0xff];
    of_bit[bit] = crc;
  }
  Moved moved{};
  for (uint32_t byte = 0; byte < 4; ++byte)
    for (uint32_t value = 0; value < 256; ++value)
      for (uint32_t bit = 0; bit < 8; ++bit)
        if ((value >> bit & 1) != 0)
          moved[byte][value] ^= of_bit[8 * byte + bit];
  return moved;
}

constexpr size_t kLong = 1024, kShort = 128;  // of one of three parts
constexpr Moved kMovedLong = MakeMoved(kLong);
constexpr Moved kMovedShort = MakeMoved(kShort);

uint32_t Move(const Moved& moved, uint32_t crc) {
  return moved[0][crc & 0xff] ^ moved[1][crc >> 8 & 0xff] ^
         moved[2][crc >> 16 & 0xff] ^ moved[3][crc >> 24];
}

uint64_t WordAt(const std::byte* bytes) {
  uint64_t word;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

// Three parts of kPart bytes at `bytes`, after what `crc` is the sum of.
template <size_t kPart>
__attribute__((target("sse4.2"))) uint64_t ThreeParts(uint64_t crc,
                                                      const std::byte* bytes,
                                                      const Moved& moved) {
  uint64_t second = 0, third = 0;
  for (size_t i = 0; i < kPart; i += 8) {
    crc = _mm_crc32_u64(crc, WordAt(bytes + i));
    second = _mm_crc32_u64(second, WordAt(bytes + kPart + i));
    third = _mm_crc32_u64(third, WordAt(bytes + 2 * kPart + i));
  }
  const uint32_t two =
      Move(moved, static_cast<uint32_t>(crc)) ^ static_cast<uint32_t>(second);
  return Move(moved, two) ^ static_cast<uint32_t>(third);
}

__attribute__((target("sse4.2"))) uint32_t ByInstruction(uint32_t begin,
                                                         const std::byte* bytes,
                                                         size_t size) {
  uint64_t crc = begin;
  for (; size >= 3 * kLong; bytes += 3 * kLong, size -= 3 * kLong)
    crc = ThreeParts<kLong>(crc, bytes, kMovedLong);
  for (; size >= 3 * kShort; bytes += 3 * kShort, size -= 3 * kShort)
    crc = ThreeParts<kShort>(crc, bytes, kMovedShort);
  for (; size >= 8; bytes += 8, size -= 8)
    crc = _mm_crc32_u64(crc, WordAt(bytes));
  for (; size > 0; ++bytes, --size)
    crc = _mm_crc32_u8(static_cast<uint32_t>(crc),
                       std::to_integer<uint8_t>(*bytes));
  return static_cast<uint32_t>(crc);
}

#endif

}  // namespace

uint32_t ExtendCrc32c(uint32_t crc, std::span<const std::byte> bytes) {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2");
  if (has_instruction) return ~ByInstruction(~crc, bytes.data(), bytes.size());
#endif
  return ~ByTable(~crc, bytes.data(), bytes.size());
}

uint32_t Crc32c(std::span<const std::byte> bytes) {
  return ExtendCrc32c(0, bytes);
}

uint32_t Crc32c(std::string_view bytes) {
  return Crc32c(std::as_bytes(std::span(bytes.data(), bytes.size())));
}

uint32_t Crc32cByTable(std::span<const std::byte> bytes) {
  return ~ByTable(~0u, bytes.data(), bytes.size());
}

}  // namespace leat
