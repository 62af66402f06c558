// SPDX-License-Identifier: Apache-2.0
//
// BlockReader: the coefficients of a window's MCUs, for who makes pixels of
// them with the bits of libjpeg, elsewhere
// (worker/image/formulas/jpeg_pixel.h).
//
// They come of a form of the file, or of its codes. Whatever is odd about the
// file ends the reading: a code that is none, as in forms, and a block of which
// libjpeg's variants make different samples. Then libjpeg has to decode it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "worker/image/formulas/jpeg_pixel.h"
#include "worker/image/jpeg/forms/coefficients.h"
#include "worker/image/jpeg/forms/seek_index.h"
#include "worker/image/jpeg/scan/bits.h"
#include "worker/image/jpeg/scan/block_runner.h"
#include "worker/image/jpeg/scan/block_window.h"

namespace leat::worker {

// Of a component: its BlockSteps, in the order of coding, and as many zeros
// behind them as a refused block may reach.
using BlockSteps = std::array<uint32_t, 80>;

// JpegBlocks holds the coefficients that were read of a window. A thread keeps
// one from file to file, so that reading allocates nothing.
struct JpegBlocks {
  BlockWindow window;
  std::array<BlockSteps, 3> steps{};
  // MCU after MCU; of an MCU luma, then chroma. size() is room.
  BlockCode code = BlockCode::kBytes;
  std::vector<uint8_t> bytes;
  // Where each block begins, and where the last one ends.
  std::vector<uint32_t> offsets;

  std::span<const uint8_t> blocks() const {
    return std::span(bytes).first(offsets.empty() ? 0 : offsets.back());
  }
  size_t held() const {
    return bytes.capacity() + offsets.capacity() * sizeof(uint32_t);
  }
};

// Thread-compatible.
class BlockReader {
 public:
  // Reads the blocks of `to->window`, whose steps are set. False: libjpeg has
  // to decode the file, or they have more than `max_bytes`, which bounds what
  // is kept. `form` null: of the file's codes; else it fits the scan, which
  // needs no tables if these are coefficients. `notes` null: nobody wants to
  // know where MCUs begin; else they have begun with this form, which is not of
  // coefficients, and this scan. REQUIRES: the scan is of this window's image
  // and kind.
  bool Read(const FileScan& scan, const McuForm* form, SeekNotes* notes,
            size_t max_bytes, JpegBlocks* to);

 private:
  // Of the window's rows, those that the index knows with its help; null: it
  // knows none.
  bool ReadCodes(const SeekIndex* index);
  bool ReadKnown(const SeekIndex& index, uint32_t end_row);
  bool ReadFrom(const Coefficients& form);
  bool DecodeMcu();
  bool PassMcus(uint32_t mcus);
  bool ReadRow(uint32_t row);
  // Blocks of a row of MCUs, from the form. `look`: each is looked at.
  bool CopyRow(std::span<const uint8_t> from, bool look);
  bool HasExactBlocks(const Coefficients& form) const;
  // Room for so many bytes more. False: there are `max_bytes` already.
  bool MakeRoom(size_t bytes);

  const FileScan* scan_ = nullptr;
  SeekNotes* notes_ = nullptr;
  JpegBlocks* to_ = nullptr;
  size_t max_bytes_ = 0;
  size_t used_ = 0;   // of to_->bytes
  size_t ended_ = 0;  // blocks
  BlockRunner runner_;
  ScanBits bits_;
  std::array<int32_t, kMaxJpegComponents> predictors_{};
};

}  // namespace leat::worker
