// SPDX-License-Identifier: Apache-2.0
//
// The Huffman codes of a sequential JPEG scan, decoded by many threads that
// find their places by themselves.
//
// The data are cut into segments of equal length. A thread decodes the codes
// that begin in its segment. At first it guesses that an MCU begins at the
// segment's first bit; then it begins where the segment before has ended, and
// so on, until no thread's begin changes: codes synchronise after some hundred
// bytes. The first segment's begin is known. So when every begin equals the end
// before it, the threads have decoded what one thread would decode, whatever
// they guessed.
//
// Then the numbers of blocks that end in each segment, and the differences of
// their DC coefficients, are added up, and each thread knows which blocks it
// decodes (worker/gpu/kernels/sync.h).
//
// C++ and CUDA compile this file. Tables are trusted, data are not.
#pragma once

#include <cstdint>

#include "worker/image/formulas/jpeg_codes.h"

namespace leat::worker {

inline constexpr int kSyncComponents = 3;

// The input of all threads of a scan.
struct SyncScan {
  const uint8_t* data = nullptr;
  uint32_t data_bytes = 0;
  uint32_t segment_bytes = 0;
  const CodeTable* tables = nullptr;
  // Per block of an MCU its component, and per component its tables.
  uint32_t blocks_of_mcu = 0;
  const uint8_t* component_of = nullptr;
  const uint8_t* dc = nullptr;
  const uint8_t* ac = nullptr;
};

// A place between two codes: the next bit, as CodeBits::Offset counts, and the
// next coefficient: 64 times the block of the MCU, plus its index in the order
// of coding.
struct SyncPlace {
  uint32_t bit = 0;
  uint32_t at = 0;

  friend LEAT_PIXEL bool operator==(const SyncPlace& a, const SyncPlace& b) {
    return a.bit == b.bit && a.at == b.at;
  }
};

struct SyncSegment {
  SyncPlace begin;
  // The number of blocks that end here, and the sums of DC differences; at last
  // those of all segments before it. Damage may make the sums go round.
  uint32_t blocks = 0;
  uint32_t dc[kSyncComponents] = {};
};

// A reader of one segment's codes.
struct SyncReader {
  const SyncScan& scan;
  CodeBits bits;
  uint32_t part, at;

  LEAT_PIXEL SyncReader(const SyncScan& of, const SyncPlace& place)
      : scan(of),
        bits{of.data + place.bit / 8, of.data + of.data_bytes},
        part(place.at / 64),
        at(place.at % 64) {
    bits.Refill();
    bits.Drop(static_cast<int32_t>(place.bit % 8));
  }

  // True if the next code begins before `end`. Most calls need no offset: the
  // next bit is at most 8 bytes, or 16 with stuffed ones, before the next byte.
  LEAT_PIXEL bool IsBefore(const uint8_t* end) const {
    if (bits.Overrun()) return false;
    if (bits.at < end) return true;
    if (bits.at - end >= 16) return false;
    return bits.Offset(scan.data) <
           static_cast<uint32_t>(8 * (end - scan.data));
  }
  LEAT_PIXEL SyncPlace Place() const {
    if (bits.Overrun()) return {8 * scan.data_bytes, 0};
    return {bits.Offset(scan.data), 64 * part + at};
  }

  // Takes a code and its value: *first is the index of the coefficient, 64:
  // there is none. Returns false if the code is refused.
  LEAT_PIXEL bool Take(uint32_t* first, int32_t* value) {
    bits.Refill();
    const uint32_t component = scan.component_of[part];
    const uint32_t table = at == 0 ? scan.dc[component] : scan.ac[component];
    uint32_t symbol = 0;
    if (!TakeSymbol(scan.tables[table], bits, &symbol)) return false;
    const auto size = static_cast<int32_t>(symbol & 15);
    const uint32_t run = symbol >> 4;
    *first = 64;
    *value = 0;
    if (at == 0) {
      if (symbol > 15) return false;
      if (size > 0) *value = TakeValue(bits, size);
      *first = 0;
      at = 1;
      return true;
    }
    if (size == 0 && run != 15) {
      at = 64;
    } else {
      at += run;
      if (size > 0) {
        if (at >= 64) return false;
        *value = TakeValue(bits, size);
        *first = at;
      }
      ++at;
      if (at > 64) return false;
    }
    return true;
  }
  // Ends a block whose last coefficient was taken. Returns true if one ended.
  LEAT_PIXEL bool EndsBlock() {
    if (at != 64) return false;
    at = 0;
    if (++part == scan.blocks_of_mcu) part = 0;
    return true;
  }
  // After a code that is refused, which only a wrong guess or damage has: goes
  // on one bit later, at the begin of an MCU.
  LEAT_PIXEL void Skip() {
    bits.Refill();
    bits.Drop(1);
    part = at = 0;
  }
};

// Decodes a segment from segment.begin; sets its sums and returns its end.
LEAT_PIXEL SyncPlace JpegSyncDecode(const SyncScan& scan, uint32_t number,
                                    SyncSegment& segment) {
  SyncReader reader(scan, segment.begin);
  const uint32_t end_byte = (number + 1) * scan.segment_bytes;
  const uint8_t* const end =
      scan.data + (end_byte < scan.data_bytes ? end_byte : scan.data_bytes);
  segment.blocks = 0;
  for (int i = 0; i < kSyncComponents; ++i) segment.dc[i] = 0;
  while (reader.IsBefore(end)) {
    const uint32_t component = scan.component_of[reader.part];
    uint32_t first = 0;
    int32_t value = 0;
    if (!reader.Take(&first, &value)) {
      reader.Skip();
      continue;
    }
    if (first == 0) segment.dc[component] += static_cast<uint32_t>(value);
    if (reader.EndsBlock()) ++segment.blocks;
  }
  return reader.Place();
}

// Returns the guess: an MCU begins at the segment's first byte.
LEAT_PIXEL SyncPlace JpegSyncGuess(const SyncScan& scan, uint32_t number) {
  const uint32_t byte = number * scan.segment_bytes;
  // A 0 after 0xff is no data.
  const bool stuffed =
      byte > 0 && scan.data[byte] == 0 && scan.data[byte - 1] == 0xff;
  return {8 * (byte + (stuffed ? 1u : 0u)), 0};
}

}  // namespace leat::worker
