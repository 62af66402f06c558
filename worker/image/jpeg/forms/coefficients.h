// SPDX-License-Identifier: Apache-2.0
//
// Coefficients: a file's quantised coefficients, in bytes.
//
// A block is its length in bytes, this byte included, its DC coefficient
// (i16), and its other coefficients but for the zeros, in the order in which
// the file codes them, each with the number of zeros before it ("run"):
//
//   run < 15, -8 … 8       one byte, run << 4 | place in -8 … -1, 1 … 8
//   i8                     0xf0, run, value
//   else                   0xf1, run, i16
//
// Rows of MCUs stand one behind the other, and a table says where each begins;
// so a window's rows are reached at once, and in a row the lengths lead on.
//
// The file's header comes with it, and an end of image behind that: this
// stands in the file's place, which need not be kept. It is a valid file to
// the end of its header, and has no data. Where the file is progressive, this
// is the header of a sequential file of the same image.
//
// Behind the form's header: u32 bytes of the file's, u32 bytes of blocks, that
// header, u32 × rows of MCUs offset of the row, blocks.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "worker/image/jpeg/forms/form.h"

namespace leat::worker {

class Coefficients final : public McuForm {
 public:
  static constexpr size_t kMaxBlockBytes = 255;  // 3, and 4 × 63

  // Parses what is behind the header and the sum, which were checked.
  static absl::StatusOr<std::unique_ptr<const JpegForm>> Of(
      const Header& header, std::vector<std::byte> bytes);

  JpegFormKind kind() const override { return JpegFormKind::kCoefficients; }
  bool IsOf(std::span<const std::byte> file) const override;
  bool Fits(const ScanLayout& layout, size_t file_bytes) const override;
  McuSource* Begin(const FileScan& scan, const WantedBlocks& wanted,
                   FormReaders* readers) const override;

  // The file's header and an end of image, to be opened in the file's place.
  std::span<const std::byte> file_header() const;
  // What somebody who has looked at all blocks has found out about them, for
  // who comes later. Thread-safe.
  enum class Verdict : uint8_t { kNone, kGood, kBad };
  Verdict verdict() const { return verdict_.load(std::memory_order_relaxed); }
  void SetVerdict(Verdict verdict) const {
    verdict_.store(verdict, std::memory_order_relaxed);
  }

  // The bytes of the blocks of the row and of those behind it. REQUIRES: row <
  // rows.
  std::span<const uint8_t> BlocksFrom(uint32_t row) const;

 private:
  Coefficients(const Header& header, std::vector<std::byte> bytes)
      : McuForm(header, std::move(bytes)) {}
  absl::Status Locate();

  std::span<const uint8_t> file_header_, row_offsets_, blocks_;
  mutable std::atomic<Verdict> verdict_{Verdict::kNone};
};

// Gives the blocks that are wanted; goes over the others by their lengths.
class CoefficientReader final : public McuSource {
 public:
  void Begin(const Coefficients& form, const FileScan& scan,
             const WantedBlocks& wanted);
  bool Next(JBLOCKROW* blocks) override;

 private:
  const Coefficients* form_ = nullptr;
  const FileScan* scan_ = nullptr;
  const WantedBlocks* wanted_ = nullptr;
  uint32_t row_ = 0, column_ = 0;  // of the next MCU
  bool there_ = false;             // at_ is at that MCU
  const uint8_t* at_ = nullptr;
  const uint8_t* end_ = nullptr;
};

// Writes a block as it is decoded (blocks.h), and into a block of libjpeg's.
class CoefficientSink {
 public:
  // REQUIRES: kMaxBlockBytes are free at `to`; a block that is to be refused
  // takes 16 more.
  CoefficientSink(uint8_t* to, JCOEF* block)
      : begin_(to), to_(to + 3), block_(block) {}

  void Dc(int32_t value) {
    block_[0] = static_cast<JCOEF>(value);
    StoreLittle(static_cast<uint16_t>(value), begin_ + 1);
  }
  void Ac(unsigned at, int32_t value);
  // Behind the block, whose length it writes.
  uint8_t* Finish() {
    *begin_ = static_cast<uint8_t>(to_ - begin_);
    return to_;
  }

 private:
  uint8_t* const begin_;
  uint8_t* to_;
  JCOEF* const block_;
  unsigned next_ = 1;
};

}  // namespace leat::worker
