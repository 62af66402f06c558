// SPDX-License-Identifier: Apache-2.0
//
// BlockReader: reads the coefficients of a window's MCUs, for code outside
// libjpeg that makes pixels from them with the bits of libjpeg
// (worker/image/formulas/jpeg_pixel.h).
//
// They come from a decoded form of the file, or from its codes. Any oddity of
// the file ends the reading: an unknown code, as with forms, or a block for
// which libjpeg's variants make different samples. Then libjpeg has to decode
// the file.
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

// The BlockSteps of a component, in the order of coding, followed by as many
// zeros as a refused block may reach.
using BlockSteps = std::array<uint32_t, 80>;

// JpegBlocks holds the coefficients read for a window. A thread reuses one from
// file to file, so that reading allocates nothing.
struct JpegBlocks {
  BlockWindow window;
  std::array<BlockSteps, 3> steps{};
  // MCU after MCU; within an MCU luma, then chroma. size() is capacity.
  BlockCode code = BlockCode::kBytes;
  std::vector<uint8_t> bytes;
  // The offset of each block, and the end of the last one.
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
  // Reads the blocks of `to->window`, whose steps are set. Returns false if
  // libjpeg has to decode the file, or if the blocks take more than
  // `max_bytes`, which bounds the memory kept. `form` nullptr: the file's codes
  // are read; otherwise it fits the scan, which needs no tables if it is
  // Coefficients. `notes` nullptr: the begins of MCUs are not noted; otherwise
  // their Begin was called with this scan and this form, which is not
  // Coefficients. REQUIRES: the scan is of this window's image and kind.
  bool Read(const FileScan& scan, const McuForm* form, SeekNotes* notes,
            size_t max_bytes, JpegBlocks* to);

 private:
  // Reads the window's rows, with the help of `index` where it knows them;
  // nullptr: no row is known.
  bool ReadCodes(const SeekIndex* index);
  bool ReadKnown(const SeekIndex& index, uint32_t end_row);
  bool ReadFrom(const Coefficients& form);
  bool DecodeMcu();
  bool PassMcus(uint32_t mcus);
  bool ReadRow(uint32_t row);
  // Copies blocks of a row of MCUs from the form. `look`: each block is
  // checked.
  bool CopyRow(std::span<const uint8_t> from, bool look);
  bool HasExactBlocks(const Coefficients& form) const;
  // Makes room for `bytes` more. Returns false if there are `max_bytes`
  // already.
  bool MakeRoom(size_t bytes);

  const FileScan* scan_ = nullptr;
  SeekNotes* notes_ = nullptr;
  JpegBlocks* to_ = nullptr;
  size_t max_bytes_ = 0;
  size_t used_ = 0;   // bytes of to_->bytes
  size_t ended_ = 0;  // finished blocks
  BlockRunner runner_;
  ScanBits bits_;
  std::array<int32_t, kMaxJpegComponents> predictors_{};
};

}  // namespace leat::worker
