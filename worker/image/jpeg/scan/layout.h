// SPDX-License-Identifier: Apache-2.0
//
// ScanLayout: the structure of the only scan of a JPEG file.
//
// By ITU-T T.81, a scan is a sequence of minimum coded units (MCUs), from the
// top left, row after row. An MCU has the blocks of all components that cover
// one rectangle: in 4:2:0, four blocks of luma and one of each chroma, 16 × 16
// pixels; in a scan of one component, one block. A block is 64 coefficients.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>

extern "C" {
#include <jpeglib.h>
}

#include "absl/status/status.h"
#include "worker/image/jpeg/scan/huffman.h"

namespace leat::worker {

// T.81 allows no more blocks in an MCU of several components.
inline constexpr size_t kMaxMcuBlocks = 10;
inline constexpr size_t kMaxJpegComponents = 4;

struct ScanLayout {
  uint16_t width = 0, height = 0;  // pixels
  uint8_t components = 0;
  uint8_t blocks = 0;       // per MCU
  uint32_t columns = 0;     // of MCUs
  uint32_t rows = 0;        // of MCUs
  uint32_t scan_begin = 0;  // offset of the coded data in the file
  std::array<uint8_t, kMaxMcuBlocks> component_of{};  // per block

  friend bool operator==(const ScanLayout&, const ScanLayout&) = default;
};

// A file's scan, ready to be decoded. Borrows the bytes and the tables.
struct FileScan {
  ScanLayout layout;
  std::span<const uint8_t> data;  // from the coded data to the file's end
  // Indexed by the block in an MCU.
  std::array<const DcTable*, kMaxMcuBlocks> dc{};
  std::array<const AcTable*, kMaxMcuBlocks> ac{};
};

// The blocks that the decoding in progress needs; the others may stay zero.
struct WantedBlocks {
  uint32_t first_column = 0, last_column = UINT32_MAX;    // of MCUs
  std::array<bool, kMaxMcuBlocks> of_needed_component{};  // per block
  // True if only one sample is made from the block: its other coefficients may
  // stay zero.
  std::array<bool, kMaxMcuBlocks> dc_only{};

  // True if more than the DC coefficient of this block of an MCU is wanted.
  bool IsWhole(size_t block) const {
    return of_needed_component[block] && !dc_only[block];
  }
  bool Has(uint32_t column) const {
    return column >= first_column && column <= last_column;
  }
};

// Checks that the file, whose header was read, has codes that a device may
// decode: one scan of all components, 8 bits, sequential, Huffman coded.
// kFailedPrecondition: it has not; the text says why.
absl::Status CheckHasCodes(const jpeg_decompress_struct& cinfo);
// Checks that it is of a kind that has all decoded forms: the same, without
// restart markers. kFailedPrecondition: as above.
absl::Status CheckHasForms(const jpeg_decompress_struct& cinfo);

// Sets *scan, and the fields of *wanted that are per block. Returns false if
// the tables are invalid. `tables` nullptr: the scan gets none, for a caller
// that reads no codes. REQUIRES: CheckHasForms is OK, jpeg_start_decompress has
// returned, and nothing was decoded since; the source is `file`, in memory.
bool DescribeScan(const jpeg_decompress_struct& cinfo,
                  std::span<const std::byte> file, HuffmanTables* tables,
                  FileScan* scan, WantedBlocks* wanted);

}  // namespace leat::worker
