// SPDX-License-Identifier: Apache-2.0
//
// Coefficients: the JpegForm that has a file's quantised coefficients, in
// bytes. Caches share it; it is immutable except for its verdict. Thread-safe.
// CoefficientReader and CoefficientSink belong to one decode each.
//
// A block consists of its length in bytes, this byte included, its DC
// coefficient (i16), and its other nonzero coefficients, in the order in which
// the file codes them, each with the number of zeros before it ("run"):
//
//   run < 15, -8 … 8       one byte, run << 4 | place in -8 … -1, 1 … 8
//   i8                     0xf0, run, value
//   else                   0xf1, run, i16
//
// Rows of MCUs follow each other, and a table has the begin of each. So a
// window's rows are found at once, and within a row the lengths lead on.
//
// The form includes the file's header, followed by an end of image: it replaces
// the file, which need not be kept. It is a valid file up to the end of its
// header, and has no data. For a progressive file, this is the header of a
// sequential file of the same image.
//
// After the form's header: u32 bytes of the file's header, u32 bytes of blocks,
// the file's header, u32 × rows of MCUs offset of the row, blocks.
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

  // Parses the content after the header and the sum, which were checked.
  static absl::StatusOr<std::unique_ptr<const JpegForm>> Of(
      const Header& header, std::vector<std::byte> bytes);

  JpegFormKind kind() const override { return JpegFormKind::kCoefficients; }
  bool IsOf(std::span<const std::byte> file) const override;
  bool Fits(const ScanLayout& layout, size_t file_bytes) const override;
  McuSource* Begin(const FileScan& scan, const WantedBlocks& wanted,
                   FormReaders* readers) const override;

  // Returns the file's header and an end of image, to be opened instead of the
  // file.
  std::span<const std::byte> file_header() const;
  // The result of an earlier check of all blocks, stored for later readers.
  // Thread-safe.
  enum class Verdict : uint8_t { kNone, kGood, kBad };
  Verdict verdict() const { return verdict_.load(std::memory_order_relaxed); }
  void SetVerdict(Verdict verdict) const {
    verdict_.store(verdict, std::memory_order_relaxed);
  }

  // Returns the bytes of the blocks of the row and of later rows. REQUIRES: row
  // < rows.
  std::span<const uint8_t> BlocksFrom(uint32_t row) const;

 private:
  Coefficients(const Header& header, std::vector<std::byte> bytes)
      : McuForm(header, std::move(bytes)) {}
  absl::Status Locate();

  std::span<const uint8_t> file_header_, row_offsets_, blocks_;
  mutable std::atomic<Verdict> verdict_{Verdict::kNone};
};

// Returns the wanted blocks, and skips the others by their lengths.
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
  bool there_ = false;             // true if at_ is at that MCU
  const uint8_t* at_ = nullptr;
  const uint8_t* end_ = nullptr;
};

// Writes a block as it is decoded (blocks.h), and also into a block of libjpeg.
class CoefficientSink {
 public:
  static constexpr bool kTakesZeros = false;
  // REQUIRES: kMaxBlockBytes are free at `to`, and 16 more for a block that is
  // going to be refused.
  CoefficientSink(uint8_t* to, JCOEF* block)
      : begin_(to), to_(to + 3), block_(block) {}

  void Dc(int32_t value) {
    block_[0] = static_cast<JCOEF>(value);
    StoreLittle(static_cast<uint16_t>(value), begin_ + 1);
  }
  void Ac(unsigned at, int32_t value);
  // Writes the block's length, and returns the end of the block.
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
