// SPDX-License-Identifier: Apache-2.0
//
// SeekIndex: where decoding can begin in a file's scan.
//
// A block's DC coefficient is coded as a difference to that of the component's
// block before it (ITU-T T.81, F.1.1.5.1), and codes have no fixed lengths; so
// that a decoder that begins in the middle has to know two things, which an
// entry holds: the bit offset of an MCU (jpeg/scan/bits.h) and each component's
// DC predictor there. There is one for every 16th MCU of a row of MCUs, the
// first included. The file itself is decoded from there on.
//
// Behind the header, by row and column: u32 bit offset, i16 × components.
//
// A window's decode goes through all codes down to its last row, so that it
// notes on the way where MCUs begin, at no cost. Such an index knows the rows
// of MCUs from the top down to some row, and where the next one begins; a
// decode that goes further makes a longer one. It stays in the process.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "worker/image/jpeg/forms/form.h"
#include "worker/image/jpeg/scan/bits.h"
#include "worker/image/jpeg/scan/block_runner.h"

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

  // Of the first `rows` rows of MCUs, fewer than there are; `entries` has
  // theirs and the first one of the next row.
  static std::unique_ptr<const JpegForm> OfPart(
      const Header& header, uint32_t rows, std::span<const uint8_t> entries);

  JpegFormKind kind() const override { return JpegFormKind::kSeekIndex; }
  // Rows of MCUs that it knows, from the top.
  uint32_t rows() const { return rows_; }
  bool is_whole() const { return rows_ == header().layout.rows; }
  McuSource* Begin(const FileScan& scan, const WantedBlocks& wanted,
                   FormReaders* readers) const override;

  struct Entry {
    uint32_t bit_offset = 0;
    std::array<int32_t, kMaxJpegComponents> predictors{};
  };
  // REQUIRES: row and group are of the layout; the row is known, or the next
  // one and the group its first.
  Entry At(uint32_t row, uint32_t group) const;
  // The entries of all known rows.
  std::span<const uint8_t> known() const {
    const ScanLayout& layout = header().layout;
    return content().first(size_t{rows_} * EntriesOfRow(layout) *
                           EntryBytes(layout));
  }

 private:
  SeekIndex(const Header& header, uint32_t rows, std::vector<std::byte> bytes)
      : McuForm(header, std::move(bytes)), rows_(rows) {}

  const uint32_t rows_;
};

// Appends the entry of the MCU at which `bits` is.
void AppendSeekEntry(const FileScan& scan, const ScanBits& bits,
                     const std::array<int32_t, kMaxJpegComponents>& predictors,
                     std::vector<uint8_t>* to);

// SeekNotes makes a longer index of what a reading goes through: it is told
// where the MCUs of the rows begin that no index knows yet, from the first such
// row on, in the order of their codes. Thread-compatible; its memory is kept
// from file to file.
class SeekNotes {
 public:
  using Predictors = std::array<int32_t, kMaxJpegComponents>;

  // `index` null: no row is known. What is pointed to lives until Grown.
  void Begin(const SeekIndex* index, const FileScan& scan);
  // The next MCU, in this column, begins here.
  void BeginMcu(uint32_t column, const ScanBits& bits,
                const Predictors& predictors) {
    if (column % SeekIndex::kStep == 0)
      AppendSeekEntry(*scan_, bits, predictors, &entries_);
  }
  // The row's MCUs have ended here.
  void EndRow(const ScanBits& bits, const Predictors& predictors);
  // The index of all rows that have ended by now. Null: these are no more than
  // were known. `file` is the scan's.
  std::unique_ptr<const JpegForm> Grown(std::span<const std::byte> file) const;

  size_t held() const { return entries_.capacity(); }  // bytes

 private:
  const SeekIndex* index_ = nullptr;
  const FileScan* scan_ = nullptr;
  uint32_t rows_ = 0;  // those that the index knows, and those that have ended
  // Of rows that the index does not know, one that has not ended included.
  std::vector<uint8_t> entries_;
  ScanBits bits_;  // where the last row has ended
  Predictors predictors_{};
};

// Decodes the MCUs that are wanted, and those of their group before them. Of
// rows that the index does not know, it decodes all.
class SeekReader final : public McuSource {
 public:
  // `index` null: no row is known. `notes` null: nobody wants to know where
  // MCUs begin; else they have begun with the same index and scan.
  void Begin(const SeekIndex* index, const FileScan& scan,
             const WantedBlocks& wanted, SeekNotes* notes);
  bool Next(JBLOCKROW* blocks) override;

 private:
  bool NextUnknown(uint32_t row, uint32_t column, JBLOCKROW* blocks);
  bool Decode(JBLOCKROW* blocks);
  bool DecodeDcs(JBLOCKROW* blocks);
  bool PassTo(uint32_t column, uint32_t end_column);

  const SeekIndex* index_ = nullptr;
  const FileScan* scan_ = nullptr;
  const WantedBlocks* wanted_ = nullptr;
  SeekNotes* notes_ = nullptr;
  uint32_t known_ = 0;             // rows of the index
  uint32_t row_ = 0, column_ = 0;  // of the next MCU
  uint32_t passed_ = 0;            // MCUs from that one on that are behind
  bool there_ = false;             // bits_ are at that MCU, or behind those
  BlockRunner runner_;
  size_t first_wanted_ = 0;  // blocks of an MCU before it are DC alone
  ScanBits bits_;
  std::array<int32_t, kMaxJpegComponents> predictors_{};
};

}  // namespace leat::worker
