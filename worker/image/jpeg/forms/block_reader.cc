// SPDX-License-Identifier: Apache-2.0
//
// A block is written as it is decoded, in words, and its dequantised
// coefficients are added up on the way. For a few blocks the sum is too large
// to prove that they are exact; those are checked one by one.
//
// Kept coefficients are checked once, over the whole file. If all blocks are
// exact, later readings copy them as they are.
#include "worker/image/jpeg/forms/block_reader.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "worker/image/formulas/jpeg_pixel.h"
#include "worker/image/jpeg/scan/blocks.h"

namespace leat::worker {
namespace {

// The most that a block may write: a word, and two for each of 79 coefficients;
// only a block that is refused has more than 63.
constexpr size_t kBlockRoom = 2 * (1 + 2 * 79);
constexpr size_t kMcuRoom = kMaxMcuBlocks * kBlockRoom;

// Adds up twice the sum that kSurelyExact bounds. No sum of a block overflows:
// values have 15 bits, quantisers 16, and there are 64.
struct SizeTaker {
  const uint32_t* steps;
  uint64_t twice = 0;

  void Dc(int32_t value) { twice += Of(0, value); }
  void Ac(uint32_t at, int32_t value) { twice += 2 * Of(at, value); }
  bool surely_exact() const { return twice <= 2 * kSurelyExact; }

 private:
  uint64_t Of(uint32_t at, int32_t value) const {
    return uint64_t{static_cast<uint32_t>(std::abs(value))} *
           (steps[at] & 0xffff);
  }
};

bool IsExact(BlockCode code, const uint8_t* from, const uint8_t* end,
             const BlockSteps& steps) {
  int16_t block[64] = {};
  BlockFiller filler{steps.data(), block};
  return WalkBlock(code, from, end, filler) && filler.fits &&
         IsExactBlock(block);
}

// The same for a block of kept coefficients.
bool IsExactKept(const uint8_t* block, const BlockSteps& steps) {
  const uint8_t* const end = block + *block;
  SizeTaker size{steps.data()};
  return WalkBytes(block, end, size) &&
         (size.surely_exact() || IsExact(BlockCode::kBytes, block, end, steps));
}

// A sink of DecodeBlock that writes words.
class WordSink {
 public:
  static constexpr bool kTakesZeros = false;
  // REQUIRES: kBlockRoom bytes are free at `to`.
  WordSink(uint8_t* to, const uint32_t* steps) : to_(to), size_{steps} {}

  void Dc(int32_t value) {
    Put(static_cast<uint32_t>(value));
    size_.Dc(value);
  }
  void Ac(unsigned at, int32_t value) {
    size_.Ac(at, value);
    if (const int32_t half = kWordValues / 2; value < -half || value >= half) {
      Put(at);
      Put(static_cast<uint32_t>(value));
    } else {
      Put(at << kWordBits | (static_cast<uint32_t>(value) & (kWordValues - 1)));
    }
  }
  const uint8_t* end() const { return to_; }
  bool surely_exact() const { return size_.surely_exact(); }

 private:
  void Put(uint32_t word) {
    StoreLittle(static_cast<uint16_t>(word), to_);
    to_ += 2;
  }

  uint8_t* to_;
  SizeTaker size_;
};

// True if the bytes up to `end` have a block at `at`.
bool HasBlock(const uint8_t* at, const uint8_t* end) {
  return at < end && *at >= 3 && end - at >= *at;
}

}  // namespace

bool BlockReader::Read(const FileScan& scan, const McuForm* form,
                       SeekNotes* notes, size_t max_bytes, JpegBlocks* to) {
  scan_ = &scan;
  notes_ = notes;
  to_ = to;
  max_bytes_ = std::min<size_t>(max_bytes, UINT32_MAX / 2);
  used_ = ended_ = 0;
  predictors_ = {};
  if (to->window.blocks() >= max_bytes_ / sizeof(uint32_t)) return false;
  const bool kept =
      form != nullptr && form->kind() == JpegFormKind::kCoefficients;
  to->code = kept ? BlockCode::kBytes : BlockCode::kWords;
  to->offsets.resize(to->window.blocks() + 1);
  to->offsets[0] = 0;
  return kept ? ReadFrom(static_cast<const Coefficients&>(*form))
              : ReadCodes(static_cast<const SeekIndex*>(form));
}

bool BlockReader::MakeRoom(size_t bytes) {
  if (used_ > max_bytes_ || bytes > UINT32_MAX / 2) return false;
  std::vector<uint8_t>& room = to_->bytes;
  if (room.size() < used_ + bytes)
    room.resize(std::max(2 * room.size(), used_ + bytes + 16 * kMcuRoom));
  return true;
}

bool BlockReader::DecodeMcu() {
  if (!MakeRoom(kMcuRoom)) return false;
  const FileScan& scan = *scan_;
  for (size_t i = 0; i < scan.layout.blocks; ++i) {
    const size_t component = scan.layout.component_of[i];
    int32_t* const predictor = &predictors_[component];
    if (component < static_cast<size_t>(to_->window.components)) {
      const uint8_t* const begin = to_->bytes.data() + used_;
      const BlockSteps& steps = to_->steps[component];
      WordSink sink(to_->bytes.data() + used_, steps.data());
      if (!DecodeBlock(&bits_, *scan.dc[i], *scan.ac[i], predictor, sink))
        return false;
      const uint8_t* const end = sink.end();
      used_ += static_cast<size_t>(end - begin);
      to_->offsets[++ended_] = static_cast<uint32_t>(used_);
      if (!sink.surely_exact() &&
          !IsExact(BlockCode::kWords, begin, end, steps))
        return false;
    } else {
      if (!SkipBlock(&bits_, *scan.dc[i], *scan.ac[i], predictor)) return false;
    }
  }
  return !bits_.Overrun();
}

// Decodes only the predictors of MCUs that are not wanted.
bool BlockReader::PassMcus(uint32_t mcus) {
  return runner_.Run(mcus * size_t{scan_->layout.blocks}, &bits_,
                     &predictors_) &&
         !bits_.Overrun();
}

bool BlockReader::ReadCodes(const SeekIndex* index) {
  runner_.Begin(*scan_);
  const BlockWindow& window = to_->window;
  const uint32_t known = index == nullptr ? 0 : index->rows();
  if (index != nullptr &&
      !ReadKnown(*index, std::min(known, window.first_row + window.rows)))
    return false;
  if (known >= window.end_row) return true;
  const SeekIndex::Entry begin =
      index == nullptr ? SeekIndex::Entry() : index->At(known, 0);
  bits_ = ScanBits::From(scan_->data, begin.bit_offset);
  predictors_ = begin.predictors;
  for (uint32_t row = known; row < window.end_row; ++row)
    if (!ReadRow(row)) return false;
  return true;
}

// Reads a row that no index knows.
bool BlockReader::ReadRow(uint32_t row) {
  const BlockWindow& window = to_->window;
  const uint32_t columns = scan_->layout.columns;
  const bool held = row - window.first_row < window.rows;
  const uint32_t first = held ? window.first_column : columns;
  const uint32_t end = held ? first + window.columns : columns;
  for (uint32_t column = 0; column < columns;) {
    if (notes_ != nullptr) notes_->BeginMcu(column, bits_, predictors_);
    if (column >= first && column < end) {
      if (!DecodeMcu()) return false;
      ++column;
      continue;
    }
    // Skips as far as nothing is wanted or noted.
    const uint32_t entry = (column / SeekIndex::kStep + 1) * SeekIndex::kStep;
    const uint32_t to =
        std::min({entry, column < first ? first : columns, columns});
    if (!PassMcus(to - column)) return false;
    column = to;
  }
  if (notes_ != nullptr) notes_->EndRow(bits_, predictors_);
  return true;
}

// Reads the window's rows above `end_row`.
bool BlockReader::ReadKnown(const SeekIndex& index, uint32_t end_row) {
  const BlockWindow& window = to_->window;
  const uint32_t group = window.first_column / SeekIndex::kStep;
  for (uint32_t row = window.first_row; row < end_row; ++row) {
    const SeekIndex::Entry entry = index.At(row, group);
    bits_ = ScanBits::From(scan_->data, entry.bit_offset);
    predictors_ = entry.predictors;
    if (row + 1 < end_row) index.Prefetch(scan_->data, row + 1, group);
    if (!PassMcus(window.first_column - group * SeekIndex::kStep)) return false;
    for (uint32_t column = 0; column < window.columns; ++column)
      if (!DecodeMcu()) return false;
  }
  return true;
}

bool BlockReader::ReadFrom(const Coefficients& form) {
  using Verdict = Coefficients::Verdict;
  if (form.verdict() == Verdict::kNone)
    form.SetVerdict(HasExactBlocks(form) ? Verdict::kGood : Verdict::kBad);
  const bool look = form.verdict() != Verdict::kGood;
  const BlockWindow& window = to_->window;
  for (uint32_t row = 0; row < window.rows; ++row)
    if (!CopyRow(form.BlocksFrom(window.first_row + row), look)) return false;
  return true;
}

// Walks from the first row on, and requires that each row begins where the one
// before ends: otherwise a row could have blocks that were not checked.
bool BlockReader::HasExactBlocks(const Coefficients& form) const {
  const ScanLayout& layout = scan_->layout;
  const uint8_t* at = form.BlocksFrom(0).data();
  const uint8_t* const end = at + form.BlocksFrom(0).size();
  for (uint32_t row = 0; row < layout.rows; ++row) {
    if (form.BlocksFrom(row).data() != at) return false;
    for (uint32_t column = 0; column < layout.columns; ++column)
      for (size_t i = 0; i < layout.blocks; ++i) {
        if (!HasBlock(at, end)) return false;
        const BlockSteps& steps = to_->steps[layout.component_of[i]];
        if (!IsExactKept(at, steps)) return false;
        at += *at;
      }
  }
  return true;
}

// Follows the lengths from block to block. They are not trusted.
bool BlockReader::CopyRow(std::span<const uint8_t> from, bool look) {
  const ScanLayout& layout = scan_->layout;
  const BlockWindow& window = to_->window;
  const auto held = static_cast<size_t>(window.components);
  const uint8_t* at = from.data();
  const uint8_t* const end = at + from.size();
  for (size_t i = size_t{window.first_column} * layout.blocks; i > 0; --i) {
    if (!HasBlock(at, end)) return false;
    at += *at;
  }
  // If all components are held, the row is copied at once.
  const bool all = held == layout.components;
  const uint8_t* const begin = at;
  const size_t used = used_;
  for (uint32_t column = 0; column < window.columns; ++column)
    for (size_t i = 0; i < layout.blocks; ++i) {
      if (!HasBlock(at, end)) return false;
      const uint8_t* const block = at;
      at += *at;
      const size_t component = layout.component_of[i];
      if (component >= held) continue;
      if (look && !IsExactKept(block, to_->steps[component])) return false;
      if (!all) {
        if (!MakeRoom(Coefficients::kMaxBlockBytes)) return false;
        std::memcpy(to_->bytes.data() + used_, block, *block);
      }
      used_ += *block;
      to_->offsets[++ended_] = static_cast<uint32_t>(used_);
    }
  if (!all) return true;
  used_ = used;
  if (!MakeRoom(static_cast<size_t>(at - begin))) return false;
  std::memcpy(to_->bytes.data() + used, begin, static_cast<size_t>(at - begin));
  used_ += static_cast<size_t>(at - begin);
  return true;
}

}  // namespace leat::worker
