// SPDX-License-Identifier: Apache-2.0
#include "worker/image/jpeg/forms/coefficients.h"

#include <algorithm>
#include <array>

#include "core/status.h"
#include "worker/image/jpeg/forms/readers.h"
#include "worker/image/jpeg/scan/blocks.h"

namespace leat::worker {
namespace {

constexpr uint8_t kByteValue = 0xf0, kWideValue = 0xf1;
constexpr std::array<JCOEF, 16> kSmallValues = {-8, -7, -6, -5, -4, -3, -2, -1,
                                                1,  2,  3,  4,  5,  6,  7,  8};

// kZigzag, extended as far as the 252 bytes of a block can advance: so one
// check at the block's end is enough.
constexpr auto kLongZigzag = [] {
  std::array<uint8_t, 4096> places{};
  places.fill(DCTSIZE2 - 1);
  std::copy(kZigzag.begin(), kZigzag.end(), places.begin());
  return places;
}();
static_assert(kLongZigzag.size() > 1 + (Coefficients::kMaxBlockBytes - 3) * 15);

// Expands the block at `from`, whose length leads to `end`. Returns false if it
// is not a block.
bool Expand(const uint8_t* from, const uint8_t* end, JCOEF* block) {
  block[0] = static_cast<JCOEF>(LoadLittle<uint16_t>(from + 1));
  from += 3;
  unsigned at = 1;
  while (from < end) {
    const unsigned code = *from++;
    if (code < kByteValue) {
      at += code >> 4;
      block[kLongZigzag[at++]] = kSmallValues[code & 15];
      continue;
    }
    const ptrdiff_t width = code == kByteValue ? 2 : 3;
    if (code > kWideValue || end - from < width) return false;
    at += from[0];
    if (at >= DCTSIZE2) return false;
    block[kZigzag[at++]] =
        width == 2 ? static_cast<JCOEF>((from[1] ^ 0x80) - 0x80)
                   : static_cast<JCOEF>(LoadLittle<uint16_t>(from + 1));
    from += width;
  }
  return at <= DCTSIZE2;
}

}  // namespace

void CoefficientSink::Ac(unsigned at, int32_t value) {
  block_[kZigzag[at]] = static_cast<JCOEF>(value);
  const unsigned run = at - next_;
  next_ = at + 1;
  if (run < 15 && value >= -8 && value <= 8) {
    *to_++ = static_cast<uint8_t>(
        run << 4 | static_cast<unsigned>(value + (value < 0 ? 8 : 7)));
    return;
  }
  const bool narrow = value == static_cast<int8_t>(value);
  *to_++ = narrow ? kByteValue : kWideValue;
  *to_++ = static_cast<uint8_t>(run);
  *to_++ = static_cast<uint8_t>(value);
  if (!narrow) *to_++ = static_cast<uint8_t>(value >> 8);
}

absl::StatusOr<std::unique_ptr<const JpegForm>> Coefficients::Of(
    const Header& header, std::vector<std::byte> bytes) {
  std::unique_ptr<Coefficients> form(
      new Coefficients(header, std::move(bytes)));
  RETURN_IF_ERROR(form->Locate());
  return form;
}

absl::Status Coefficients::Locate() {
  const std::span<const uint8_t> all = content();
  const ScanLayout& layout = header().layout;
  const size_t table = 4 * size_t{layout.rows};
  if (all.size() < 8 + table)
    return DataLoss("coefficients of a JPEG have {} bytes, want at least {}",
                    all.size(), 8 + table);
  const size_t header_bytes = LoadLittle<uint32_t>(all.data());
  const size_t block_bytes = LoadLittle<uint32_t>(all.data() + 4);
  if (header_bytes != size_t{layout.scan_begin} + 2 ||
      8 + header_bytes + table + block_bytes != all.size())
    return DataLoss(
        "coefficients of a JPEG have {} bytes, want a header of {}, a table of "
        "{} and blocks of {}",
        all.size(), size_t{layout.scan_begin} + 2, table, block_bytes);
  file_header_ = all.subspan(8, header_bytes);
  row_offsets_ = all.subspan(8 + header_bytes, table);
  blocks_ = all.subspan(8 + header_bytes + table);
  uint32_t last = 0;
  for (uint32_t row = 0; row < layout.rows; ++row) {
    const auto offset = LoadLittle<uint32_t>(row_offsets_.data() + 4 * row);
    if (offset < last || offset > block_bytes)
      return DataLoss("coefficients of a JPEG have row {} at {}, want {} to {}",
                      row, offset, last, block_bytes);
    last = offset;
  }
  return absl::OkStatus();
}

std::span<const std::byte> Coefficients::file_header() const {
  return std::as_bytes(file_header_);
}

std::span<const uint8_t> Coefficients::BlocksFrom(uint32_t row) const {
  return blocks_.subspan(
      LoadLittle<uint32_t>(row_offsets_.data() + 4 * size_t{row}));
}

bool Coefficients::IsOf(std::span<const std::byte> file) const {
  return std::ranges::equal(file, file_header()) || JpegForm::IsOf(file);
}

bool Coefficients::Fits(const ScanLayout& layout, size_t file_bytes) const {
  return layout == header().layout && (file_bytes == file_header_.size() ||
                                       file_bytes == header().file_bytes);
}

McuSource* Coefficients::Begin(const FileScan& scan, const WantedBlocks& wanted,
                               FormReaders* readers) const {
  readers->coefficients.Begin(*this, scan, wanted);
  return &readers->coefficients;
}

void CoefficientReader::Begin(const Coefficients& form, const FileScan& scan,
                              const WantedBlocks& wanted) {
  *this = CoefficientReader();
  form_ = &form;
  scan_ = &scan;
  wanted_ = &wanted;
}

bool CoefficientReader::Next(JBLOCKROW* blocks) {
  const ScanLayout& layout = scan_->layout;
  const uint32_t row = row_, column = column_;
  if (row >= layout.rows) return false;
  if (++column_ == layout.columns) {
    column_ = 0;
    ++row_;
  }
  if (blocks == nullptr || column > wanted_->last_column) {
    there_ = false;
    return true;
  }
  if (!there_) {
    if (column != 0) return false;  // skipped within a row: libjpeg does not
    const std::span<const uint8_t> from = form_->BlocksFrom(row);
    at_ = from.data();
    end_ = at_ + from.size();
    there_ = true;
  }
  const bool wanted = column >= wanted_->first_column;
  const uint8_t* at = at_;
  for (size_t i = 0; i < layout.blocks; ++i) {
    if (at == end_ || *at < 3 || end_ - at < *at) return false;
    const uint8_t* const next = at + *at;
    if (wanted && wanted_->of_needed_component[i]) {
      if (wanted_->dc_only[i])
        blocks[i][0][0] = static_cast<JCOEF>(LoadLittle<uint16_t>(at + 1));
      else if (!Expand(at, next, blocks[i][0]))
        return false;
    }
    at = next;
  }
  at_ = at;
  return true;
}

}  // namespace leat::worker
