// SPDX-License-Identifier: Apache-2.0
//
// SeekIndex: where decoding can begin in a file's scan.
//
// A block's DC coefficient is coded as a difference to that of the component's
// block before it (ITU-T T.81, F.1.1.5.1), and codes have no fixed lengths; so
// that a decoder that begins in the middle has to know two things, which an
// entry holds: the bit offset of an MCU (scan_bits.h) and each component's DC
// predictor there. There is one for every 16th MCU of a row of MCUs, the first
// included. The file itself is decoded from there on.
//
// Behind the header, by row and column: u32 bit offset, i16 × components.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "worker/image/jpeg_forms/jpeg_form.h"
#include "worker/image/jpeg_forms/scan_bits.h"

namespace leat::worker {

class SeekIndex final : public McuForm {
 public:
  static constexpr uint32_t kStep = 16;  // MCUs
  static uint32_t EntriesOfRow(const ScanLayout& layout) {
    return (layout.columns + kStep - 1) / kStep;
  }
  static size_t EntryBytes(const ScanLayout& layout) {
    return 4 + 2 * size_t{layout.components};
  }

  // Parses what is behind the header and the sum, which were checked.
  static absl::StatusOr<std::unique_ptr<const JpegForm>> Of(
      const Header& header, std::vector<std::byte> bytes);

  JpegFormKind kind() const override { return JpegFormKind::kSeekIndex; }
  McuSource* Begin(const FileScan& scan, const WantedBlocks& wanted,
                   FormReaders* readers) const override;

  struct Entry {
    uint32_t bit_offset = 0;
    std::array<int32_t, kMaxJpegComponents> predictors{};
  };
  // REQUIRES: row and group are of the layout.
  Entry At(uint32_t row, uint32_t group) const;

 private:
  SeekIndex(const Header& header, std::vector<std::byte> bytes)
      : McuForm(header, std::move(bytes)) {}
};

// Decodes the MCUs that are wanted, and those of their group before them.
class SeekReader final : public McuSource {
 public:
  void Begin(const SeekIndex& index, const FileScan& scan,
             const WantedBlocks& wanted);
  bool Next(JBLOCKROW* blocks) override;

 private:
  bool Decode(JBLOCKROW* blocks);

  const SeekIndex* index_ = nullptr;
  const FileScan* scan_ = nullptr;
  const WantedBlocks* wanted_ = nullptr;
  uint32_t row_ = 0, column_ = 0;  // of the next MCU
  bool there_ = false;             // bits_ are at that MCU
  ScanBits bits_;
  std::array<int32_t, kMaxJpegComponents> predictors_{};
};

}  // namespace leat::worker
