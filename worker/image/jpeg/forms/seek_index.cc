// SPDX-License-Identifier: Apache-2.0
//
// Example: a window needs the columns 20 to 40 of MCUs. In each of its rows,
// decoding begins at column 16, drops the MCUs 16 to 19, and ends after 40.
// Rows above the window are not read at all.
#include "worker/image/jpeg/forms/seek_index.h"

#include <algorithm>

#include "core/crc32c.h"
#include "core/status.h"
#include "worker/image/jpeg/forms/readers.h"
#include "worker/image/jpeg/scan/blocks.h"

namespace leat::worker {
namespace {

template <class Number>
void Append(Number number, std::vector<uint8_t>* to) {
  uint8_t bytes[sizeof number];
  StoreLittle(number, bytes);
  to->insert(to->end(), bytes, bytes + sizeof number);
}

}  // namespace

void AppendSeekEntry(const FileScan& scan, const ScanBits& bits,
                     const std::array<int32_t, kMaxJpegComponents>& predictors,
                     std::vector<uint8_t>* to) {
  Append(bits.Offset(scan.data), to);
  for (size_t i = 0; i < scan.layout.components; ++i)
    Append(static_cast<uint16_t>(predictors[i]), to);
}

std::unique_ptr<const SeekIndex> SeekIndex::OfPart(
    const Header& header, uint32_t rows, std::span<const uint8_t> entries) {
  return std::unique_ptr<const SeekIndex>(new SeekIndex(
      header, rows, SealForm(JpegFormKind::kSeekIndex, header, {entries})));
}

absl::StatusOr<std::unique_ptr<const JpegForm>> SeekIndex::OfPlaces(
    const Header& header, uint32_t rows, std::span<const CodePlace> places) {
  const ScanLayout& layout = header.layout;
  if (rows == layout.rows) places = places.first(places.size() - 1);
  std::vector<uint8_t> entries;
  entries.reserve(places.size() * EntryBytes(layout));
  for (const CodePlace& place : places) {
    Append(place.bit, &entries);
    for (size_t i = 0; i < layout.components; ++i)
      Append(static_cast<uint16_t>(place.predictors[i]), &entries);
  }
  std::unique_ptr<SeekIndex> index(new SeekIndex(
      header, rows, SealForm(JpegFormKind::kSeekIndex, header, {entries})));
  RETURN_IF_ERROR(index->CheckOrder());
  return index;
}

absl::StatusOr<std::unique_ptr<const SeekIndex>> SeekIndex::Of(
    const Header& header, std::vector<std::byte> bytes) {
  const ScanLayout& layout = header.layout;
  std::unique_ptr<SeekIndex> index(
      new SeekIndex(header, layout.rows, std::move(bytes)));
  const size_t entries = size_t{layout.rows} * EntriesOfRow(layout);
  if (index->content().size() != entries * EntryBytes(layout))
    return DataLoss("seek index of a JPEG has {} bytes of entries, want {}",
                    index->content().size(), entries * EntryBytes(layout));
  RETURN_IF_ERROR(index->CheckOrder());
  return index;
}

absl::Status SeekIndex::CheckOrder() const {
  const ScanLayout& layout = header().layout;
  const uint64_t end = uint64_t{header().file_bytes - layout.scan_begin} * 8;
  const uint64_t groups = EntriesOfRow(layout);
  const uint64_t count = rows_ * groups + (is_whole() ? 0 : 1);
  uint64_t last = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const auto row = static_cast<uint32_t>(i / groups);
    const uint64_t offset =
        At(row, static_cast<uint32_t>(i % groups)).bit_offset;
    if (offset < last || offset > end)
      return DataLoss(
          "seek index of a JPEG has the bit offset {} in row {}, want {} to {}",
          offset, row, last, end);
    last = offset;
  }
  return absl::OkStatus();
}

SeekIndex::Entry SeekIndex::At(uint32_t row, uint32_t group) const {
  const ScanLayout& layout = header().layout;
  const uint8_t* from =
      content().data() +
      EntryBytes(layout) * (size_t{row} * EntriesOfRow(layout) + group);
  Entry entry{.bit_offset = LoadLittle<uint32_t>(from)};
  for (size_t i = 0; i < layout.components; ++i)
    entry.predictors[i] =
        static_cast<int16_t>(LoadLittle<uint16_t>(from + 4 + 2 * i));
  return entry;
}

void SeekIndex::Prefetch(std::span<const uint8_t> data, uint32_t row,
                         uint32_t group) const {
  constexpr size_t kLine = 64, kLines = 8;
  const size_t begin = At(row, group).bit_offset / 8;
  for (size_t i = 0; i < kLines && begin + i * kLine < data.size(); ++i)
    __builtin_prefetch(data.data() + begin + i * kLine);
}

McuSource* SeekIndex::Begin(const FileScan& scan, const WantedBlocks& wanted,
                            FormReaders* readers) const {
  readers->seek.Begin(this, scan, wanted, nullptr);
  return &readers->seek;
}

void SeekNotes::Begin(const SeekIndex* index, const FileScan& scan) {
  index_ = index;
  scan_ = &scan;
  rows_ = index == nullptr ? 0 : index->rows();
  entries_.clear();
}

void SeekNotes::EndRow(const ScanBits& bits, const Predictors& predictors) {
  ++rows_;
  bits_ = bits;
  predictors_ = predictors;
}

std::unique_ptr<const SeekIndex> SeekNotes::Grown(
    std::span<const std::byte> file) const {
  const std::span<const uint8_t> known =
      index_ == nullptr ? std::span<const uint8_t>() : index_->known();
  const uint32_t known_rows = index_ == nullptr ? 0 : index_->rows();
  if (rows_ <= known_rows) return nullptr;
  const ScanLayout& layout = scan_->layout;
  const auto found = std::span(entries_).first(size_t{rows_ - known_rows} *
                                               SeekIndex::EntriesOfRow(layout) *
                                               SeekIndex::EntryBytes(layout));
  std::vector<uint8_t> entries;
  entries.reserve(known.size() + found.size() + SeekIndex::EntryBytes(layout));
  entries.insert(entries.end(), known.begin(), known.end());
  entries.insert(entries.end(), found.begin(), found.end());
  McuForm::Header header{.layout = layout,
                         .file_bytes = static_cast<uint32_t>(file.size())};
  if (rows_ < layout.rows) {
    AppendSeekEntry(*scan_, bits_, predictors_, &entries);
    return SeekIndex::OfPart(header, rows_, entries);
  }
  header.file_crc = Crc32c(file);
  auto index = SeekIndex::Of(
      header, SealForm(JpegFormKind::kSeekIndex, header, {entries}));
  return index.ok() ? *std::move(index) : nullptr;
}

void SeekReader::Begin(const SeekIndex* index, const FileScan& scan,
                       const WantedBlocks& wanted, SeekNotes* notes) {
  index_ = index;
  scan_ = &scan;
  wanted_ = &wanted;
  notes_ = notes;
  known_ = index == nullptr ? 0 : index->rows();
  row_ = column_ = passed_ = 0;
  there_ = false;
  runner_.Begin(scan);
  first_wanted_ = 0;
  while (first_wanted_ < scan.layout.blocks && !wanted.IsWhole(first_wanted_))
    ++first_wanted_;
}

bool SeekReader::Next(JBLOCKROW* blocks) {
  const uint32_t row = row_, column = column_;
  if (row >= scan_->layout.rows) return false;
  if (++column_ == scan_->layout.columns) {
    column_ = 0;
    ++row_;
  }
  if (row >= known_) return NextUnknown(row, column, blocks);
  // The last wanted MCU of the row before may have been its last one.
  if (column == 0) there_ = false;
  const bool at_entry = column % SeekIndex::kStep == 0;
  if (blocks == nullptr || column > wanted_->last_column) {
    there_ = false;
    passed_ = 0;
    return true;
  }
  const uint32_t first = wanted_->first_column;
  if (!there_ && column / SeekIndex::kStep < first / SeekIndex::kStep)
    return true;
  if (!there_) {
    if (!at_entry) return false;  // skipped within a row: libjpeg does not
    const SeekIndex::Entry entry = index_->At(row, column / SeekIndex::kStep);
    bits_ = ScanBits::From(scan_->data, entry.bit_offset);
    predictors_ = entry.predictors;
    there_ = true;
    if (row + 1 < known_)
      index_->Prefetch(scan_->data, row + 1, column / SeekIndex::kStep);
  }
  return column < first ? PassTo(column, first) : Decode(blocks);
}

// libjpeg asks for all MCUs down to the last row that is used, one after the
// other.
bool SeekReader::NextUnknown(uint32_t row, uint32_t column, JBLOCKROW* blocks) {
  if (row == known_ && column == 0) {
    const SeekIndex::Entry begin =
        index_ == nullptr ? SeekIndex::Entry() : index_->At(known_, 0);
    bits_ = ScanBits::From(scan_->data, begin.bit_offset);
    predictors_ = begin.predictors;
  }
  if (notes_ != nullptr) notes_->BeginMcu(column, bits_, predictors_);
  if (blocks != nullptr && wanted_->Has(column)) {
    if (!Decode(blocks)) return false;
  } else {
    const uint32_t first = wanted_->first_column;
    const bool ahead = blocks != nullptr && column < first;
    if (!PassTo(column, ahead ? first : scan_->layout.columns)) return false;
  }
  if (notes_ != nullptr && column_ == 0) notes_->EndRow(bits_, predictors_);
  return true;
}

// Skips MCUs from this one on, before libjpeg asks for them, but not beyond the
// next position where notes are taken.
bool SeekReader::PassTo(uint32_t column, uint32_t end_column) {
  if (passed_ > 0) {
    --passed_;
    return true;
  }
  const uint32_t next_entry =
      (column / SeekIndex::kStep + 1) * SeekIndex::kStep;
  const uint32_t mcus =
      std::min({next_entry, end_column, scan_->layout.columns}) - column;
  passed_ = mcus - 1;
  return runner_.Run(mcus * size_t{scan_->layout.blocks}, &bits_,
                     &predictors_) &&
         !bits_.Overrun();
}

bool SeekReader::Decode(JBLOCKROW* blocks) {
  if (first_wanted_ > 0 && !DecodeDcs(blocks)) return false;
  const FileScan& scan = *scan_;
  for (size_t i = first_wanted_; i < scan.layout.blocks; ++i) {
    int32_t* const predictor = &predictors_[scan.layout.component_of[i]];
    bool sound = false;
    if (!wanted_->of_needed_component[i]) {
      sound = SkipBlock(&bits_, *scan.dc[i], *scan.ac[i], predictor);
    } else if (wanted_->dc_only[i]) {
      sound = SkipBlock(&bits_, *scan.dc[i], *scan.ac[i], predictor);
      blocks[i][0][0] = static_cast<JCOEF>(*predictor);
    } else {
      StoreSink sink{blocks[i][0]};
      sound = DecodeBlock(&bits_, *scan.dc[i], *scan.ac[i], predictor, sink);
    }
    if (!sound) return false;
  }
  return !bits_.Overrun();
}

// Decodes the DC coefficients of the MCU's first blocks; no others are wanted.
bool SeekReader::DecodeDcs(JBLOCKROW* blocks) {
  std::array<int16_t, kMaxMcuBlocks> dc;
  if (!runner_.Run(first_wanted_, &bits_, &predictors_, dc.data()))
    return false;
  for (size_t i = 0; i < first_wanted_; ++i)
    if (wanted_->of_needed_component[i]) blocks[i][0][0] = dc[i];
  return true;
}

}  // namespace leat::worker
