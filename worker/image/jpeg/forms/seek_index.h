// SPDX-License-Identifier: Apache-2.0
//
// SeekIndex: the positions at which decoding can begin in a file's scan.
//
// A block's DC coefficient is coded as a difference to that of the component's
// previous block (ITU-T T.81, F.1.1.5.1), and codes have no fixed lengths. So a
// decoder that begins in the middle needs two things, which an entry holds: the
// bit offset of an MCU (jpeg/scan/bits.h) and each component's DC predictor
// there. There is an entry for every 16th MCU of a row of MCUs, the first
// included. From there on the file itself is decoded.
//
// After the header, by row and column: u32 bit offset, i16 × components.
//
// A window's decode reads all codes down to its last row, so it can note at no
// cost where MCUs begin. An index of such notes knows the rows of MCUs from the
// top down to some row, and where the next one begins; a decode that goes
// further makes a longer one. It stays in the process. A device that decodes a
// file without an index leaves one, too.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "worker/image/formulas/jpeg_codes.h"
#include "worker/image/jpeg/forms/form.h"
#include "worker/image/jpeg/scan/bits.h"
#include "worker/image/jpeg/scan/block_runner.h"

namespace leat::worker {

class SeekIndex final : public McuForm {
 public:
  static constexpr uint32_t kStep = kSeekStep;  // MCUs
  static uint32_t EntriesOfRow(const ScanLayout& layout) {
    return (layout.columns + kStep - 1) / kStep;
  }
  static size_t EntryBytes(const ScanLayout& layout) {
    return 4 + 2 * size_t{layout.components};
  }

  // Parses the content after the header and the sum, which were checked.
  static absl::StatusOr<std::unique_ptr<const SeekIndex>> Of(
      const Header& header, std::vector<std::byte> bytes);

  // Makes an index of the first `rows` rows of MCUs, fewer than there are;
  // `entries` has their entries and the first one of the next row.
  static std::unique_ptr<const SeekIndex> OfPart(
      const Header& header, uint32_t rows, std::span<const uint8_t> entries);

  // The same from places that a device has found, of the whole file if `rows` is
  // all that there are. kDataLoss: they are not in order, or outside the file's
  // data. REQUIRES: there are PlacesOf(layout, rows) places.
  static absl::StatusOr<std::unique_ptr<const JpegForm>> OfPlaces(
      const Header& header, uint32_t rows, std::span<const CodePlace> places);
  // Returns the number of entries of so many rows, and of the next row's first.
  static size_t PlacesOf(const ScanLayout& layout, uint32_t rows) {
    return size_t{rows} * EntriesOfRow(layout) + 1;
  }

  JpegFormKind kind() const override { return JpegFormKind::kSeekIndex; }
  // Returns how many rows of MCUs it knows, from the top.
  uint32_t rows() const { return rows_; }
  bool is_whole() const { return rows_ == header().layout.rows; }
  McuSource* Begin(const FileScan& scan, const WantedBlocks& wanted,
                   FormReaders* readers) const override;

  struct Entry {
    uint32_t bit_offset = 0;
    std::array<int32_t, kMaxJpegComponents> predictors{};
  };
  // REQUIRES: row and group are in the layout; the row is known, or it is the
  // next one and the group is its first.
  Entry At(uint32_t row, uint32_t group) const;
  // Begins to bring the group's codes into the processor's caches. A window's
  // rows are far apart in the file, so that no processor does by itself.
  // REQUIRES: as for At; `data` is the scan's.
  void Prefetch(std::span<const uint8_t> data, uint32_t row,
                uint32_t group) const;
  // Returns the entries of all known rows.
  std::span<const uint8_t> known() const {
    const ScanLayout& layout = header().layout;
    return content().first(size_t{rows_} * EntriesOfRow(layout) *
                           EntryBytes(layout));
  }

 private:
  SeekIndex(const Header& header, uint32_t rows, std::vector<std::byte> bytes)
      : McuForm(header, std::move(bytes)), rows_(rows) {}
  // kDataLoss: the offsets of the known rows are not in order.
  absl::Status CheckOrder() const;

  const uint32_t rows_;
};

// Appends the entry of the MCU that `bits` is at.
void AppendSeekEntry(const FileScan& scan, const ScanBits& bits,
                     const std::array<int32_t, kMaxJpegComponents>& predictors,
                     std::vector<uint8_t>* to);

// SeekNotes makes a longer index from a reading: it receives where the MCUs
// begin in the rows that the index does not know yet, from the first such row
// on, in the order of their codes. Thread-compatible; it reuses its memory from
// file to file.
class SeekNotes {
 public:
  using Predictors = std::array<int32_t, kMaxJpegComponents>;

  // `index` nullptr: no row is known. Both arguments live until Grown.
  void Begin(const SeekIndex* index, const FileScan& scan);
  // The next MCU, in this column, begins at `bits`.
  void BeginMcu(uint32_t column, const ScanBits& bits,
                const Predictors& predictors) {
    if (column % SeekIndex::kStep == 0)
      AppendSeekEntry(*scan_, bits, predictors, &entries_);
  }
  // The row's MCUs end at `bits`.
  void EndRow(const ScanBits& bits, const Predictors& predictors);
  // Returns the index of all rows that have ended by now. nullptr: no more rows
  // than were known. `file` is the scan's.
  std::unique_ptr<const SeekIndex> Grown(std::span<const std::byte> file) const;

  size_t held() const { return entries_.capacity(); }  // bytes

 private:
  const SeekIndex* index_ = nullptr;
  const FileScan* scan_ = nullptr;
  uint32_t rows_ = 0;  // rows the index knows, and those that have ended
  // Entries of rows that the index does not know, including an unfinished row.
  std::vector<uint8_t> entries_;
  ScanBits bits_;  // where the last row ended
  Predictors predictors_{};
};

// Decodes the wanted MCUs, and those of their group before them. In rows that
// the index does not know, it decodes all.
class SeekReader final : public McuSource {
 public:
  // `index` nullptr: no row is known. `notes` nullptr: the begins of MCUs are
  // not noted; otherwise their Begin was called with the same index and scan.
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
  uint32_t passed_ = 0;  // MCUs from that one on that are skipped already
  // true if bits_ are at that MCU, or after the skipped ones
  bool there_ = false;
  BlockRunner runner_;
  size_t first_wanted_ = 0;  // blocks of an MCU before it are DC alone
  ScanBits bits_;
  std::array<int32_t, kMaxJpegComponents> predictors_{};
};

}  // namespace leat::worker
