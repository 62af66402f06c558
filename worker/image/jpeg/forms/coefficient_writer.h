// SPDX-License-Identifier: Apache-2.0
//
// CoefficientWriter: makes Coefficients from blocks, one MCU after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/image/jpeg/forms/form.h"

namespace leat::worker {

// Thread-compatible. It reuses its memory from file to file.
class CoefficientWriter {
 public:
  // Begins a file of `file_bytes` bytes, whose blocks may take `max_bytes`.
  void Begin(size_t file_bytes, size_t max_bytes);
  // Says that the next MCU begins a row of MCUs.
  void BeginRow();
  // Returns where CoefficientSinks write the next MCU's blocks. nullptr: the
  // blocks exceed `max_bytes`, and the rest need not be written.
  uint8_t* Room();
  // Says that the MCU ends before `end`.
  void Took(const uint8_t* end) {
    block_bytes_ = static_cast<size_t>(end - blocks_.data());
  }

  // Makes the form. `file_header`: a valid file's bytes up to its coded data.
  // kResourceExhausted: the blocks take more bytes than they may.
  absl::StatusOr<std::unique_ptr<const JpegForm>> Make(
      const McuForm::Header& header, std::span<const uint8_t> file_header);

  size_t held() const {  // bytes
    return row_offsets_.capacity() + blocks_.capacity();
  }

 private:
  size_t file_bytes_ = 0, max_bytes_ = 0;
  bool too_large_ = false;
  std::vector<uint8_t> row_offsets_;
  std::vector<uint8_t> blocks_;  // size() is capacity
  size_t block_bytes_ = 0;       // used bytes of blocks_
};

}  // namespace leat::worker
