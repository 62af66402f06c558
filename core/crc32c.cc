// SPDX-License-Identifier: Apache-2.0
//
// The crc32 instruction takes three cycles, and one can begin in each cycle, so
// three neighbouring parts of equal length are summed side by side. A sum is
// linear: the sum of a part followed by n bytes is the part's sum moved over n
// zero bytes, xor the sum of those bytes begun from 0. The kMoved* tables hold
// the effect of n zero bytes on each byte of a sum, computed at compile time.
//
// If the processor multiplies polynomials by vectors (VPCLMULQDQ), long runs
// are folded, about twice as fast: 16 bytes are multiplied so that the
// remainder of the whole does not change, and xored into the bytes that follow
// kFolded bytes later (Gopal and others, "Fast CRC computation for generic
// polynomials using PCLMULQDQ", 2009). The bytes that remain at the end have
// the sum of everything before them.
#include "core/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
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

constexpr uint32_t Move(const Moved& moved, uint32_t crc) {
  return moved[0][crc & 0xff] ^ moved[1][crc >> 8 & 0xff] ^
         moved[2][crc >> 16 & 0xff] ^ moved[3][crc >> 24];
}

// Returns the table for `times` as many zero bytes.
constexpr Moved Repeated(const Moved& moved, size_t times) {
  Moved all = moved;
  for (auto& of_byte : all)
    for (uint32_t& crc : of_byte)
      for (size_t i = 1; i < times; ++i) crc = Move(moved, crc);
  return all;
}

// Bytes in each of the three parts. Processors prefetch within a page of
// memory: parts of kPages are long enough for each of the three runs, and bytes
// that are in no cache take half as long as in parts of kLong.
constexpr size_t kPages = 8192, kLong = 1024, kShort = 128;
constexpr Moved kMovedLong = MakeMoved(kLong);
constexpr Moved kMovedPages = Repeated(kMovedLong, kPages / kLong);
constexpr Moved kMovedShort = MakeMoved(kShort);

uint64_t WordAt(const std::byte* bytes) {
  uint64_t word;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

// Sums three parts of kPart bytes at `bytes`, after the bytes that `crc` is the
// sum of.
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
  for (; size >= 3 * kPages; bytes += 3 * kPages, size -= 3 * kPages)
    crc = ThreeParts<kPages>(crc, bytes, kMovedPages);
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

constexpr size_t kVectors = 4, kFolded = kVectors * sizeof(__m512i);

// Returns x^power mod P, as a factor for half of a vector's 16 bytes. All
// polynomials have their highest power in the lowest bit, so a product is
// multiplied by an additional x: `power` is one less than the wanted power.
constexpr uint64_t Factor(size_t power) {
  uint32_t remainder = uint32_t{1} << 31;
  for (size_t i = 0; i < power; ++i)
    remainder = (remainder >> 1) ^ ((remainder & 1) != 0 ? kPolynomial : 0);
  return uint64_t{remainder} << 32;
}
constexpr uint64_t kFactorOfFirst8 = Factor(8 * kFolded + 64 - 1);
constexpr uint64_t kFactorOfLast8 = Factor(8 * kFolded - 1);

// Folds the largest multiple of kFolded bytes. REQUIRES: size >= kFolded.
__attribute__((target("avx512f,vpclmulqdq"))) void Fold(
    uint32_t crc, const std::byte* bytes, size_t size,
    std::byte (&folded)[kFolded]) {
  const auto of_first = static_cast<int64_t>(kFactorOfFirst8);
  const auto of_last = static_cast<int64_t>(kFactorOfLast8);
  const __m512i factors =
      _mm512_set4_epi64(of_last, of_first, of_last, of_first);
  __m512i sums[kVectors];
  for (size_t i = 0; i < kVectors; ++i)
    sums[i] = _mm512_loadu_si512(bytes + i * sizeof(__m512i));
  sums[0] = _mm512_xor_si512(
      sums[0],
      _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(crc))));
  for (size_t at = kFolded; at + kFolded <= size; at += kFolded)
    for (size_t i = 0; i < kVectors; ++i) {
      const __m512i next = _mm512_loadu_si512(bytes + at + i * sizeof(__m512i));
      const __m512i first = _mm512_clmulepi64_epi128(sums[i], factors, 0x00);
      const __m512i last = _mm512_clmulepi64_epi128(sums[i], factors, 0x11);
      sums[i] = _mm512_ternarylogic_epi64(first, last, next, 0x96);
    }
  for (size_t i = 0; i < kVectors; ++i)
    _mm512_storeu_si512(folded + i * sizeof(__m512i), sums[i]);
}

uint32_t ByFolding(uint32_t crc, const std::byte* bytes, size_t size) {
  std::byte folded[kFolded];
  Fold(crc, bytes, size, folded);
  const size_t done = size - size % kFolded;
  return ByInstruction(ByInstruction(0, folded, kFolded), bytes + done,
                       size - done);
}

#endif

uint32_t WithoutVectors(uint32_t crc, const std::byte* bytes, size_t size) {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2");
  if (has_instruction) return ByInstruction(crc, bytes, size);
#endif
  return ByTable(crc, bytes, size);
}

}  // namespace

uint32_t ExtendCrc32c(uint32_t crc, std::span<const std::byte> bytes) {
#if defined(__x86_64__)
  static const bool folds =
      __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("vpclmulqdq");
  if (folds && bytes.size() >= 2 * kFolded)
    return ~ByFolding(~crc, bytes.data(), bytes.size());
#endif
  return ~WithoutVectors(~crc, bytes.data(), bytes.size());
}

uint32_t Crc32c(std::span<const std::byte> bytes) {
  return ExtendCrc32c(0, bytes);
}

uint32_t Crc32c(std::string_view bytes) {
  return Crc32c(std::as_bytes(std::span(bytes.data(), bytes.size())));
}

uint32_t Crc32cWithoutVectors(std::span<const std::byte> bytes) {
  return ~WithoutVectors(~0u, bytes.data(), bytes.size());
}

uint32_t Crc32cByTable(std::span<const std::byte> bytes) {
  return ~ByTable(~0u, bytes.data(), bytes.size());
}

}  // namespace leat
