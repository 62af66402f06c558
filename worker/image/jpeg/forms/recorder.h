// SPDX-License-Identifier: Apache-2.0
//
// FormRecorder: decodes a file's scan in place of libjpeg and records the
// contents of forms on the way, so that they cost no second decoding.
//
// libjpeg asks for the MCUs down to the last row that is used; Finish decodes
// those below.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "worker/image/jpeg/forms/coefficient_writer.h"
#include "worker/image/jpeg/forms/form.h"
#include "worker/image/jpeg/forms/kinds.h"
#include "worker/image/jpeg/scan/bits.h"
#include "worker/image/jpeg/scan/block_runner.h"

namespace leat::worker {

// Thread-compatible. It reuses its memory from file to file.
class FormRecorder final : public McuSource {
 public:
  // `max_bytes`: of the coefficients; a file that has more gets no such form.
  // REQUIRES: the file, `scan` and `wanted` live until the last Next or Make.
  void Begin(std::span<const std::byte> file, const FileScan& scan,
             const WantedBlocks& wanted, FormKinds kinds, size_t max_bytes);
  bool Next(JBLOCKROW* blocks) override;

  // `give_up` is not nullptr: Make reads it between rows of MCUs.
  void SetGiveUp(const std::atomic<uint32_t>* give_up) { give_up_ = give_up; }

  // Returns the form of the whole file. kCancelled: give_up was not 0.
  // kDataLoss: the scan breaks off or has an unknown code, anywhere.
  // kResourceExhausted: more than `max_bytes`. REQUIRES: Begin with this kind;
  // called once per kind.
  absl::StatusOr<std::unique_ptr<const JpegForm>> Make(JpegFormKind kind);

  size_t held() const;  // bytes

 private:
  bool DecodeMcu(JBLOCKROW* blocks);
  bool DecodeAndRecord(JBLOCKROW* blocks, uint8_t* to);
  absl::Status Finish();

  const std::atomic<uint32_t>* give_up_ = nullptr;
  std::span<const std::byte> file_;
  const FileScan* scan_ = nullptr;
  const WantedBlocks* wanted_ = nullptr;
  FormKinds kinds_;

  uint32_t row_ = 0, column_ = 0;  // of the next MCU
  bool failed_ = false;
  BlockRunner runner_;
  ScanBits bits_;
  std::array<int32_t, kMaxJpegComponents> predictors_{};

  std::vector<uint8_t> entries_;  // of the seek index
  CoefficientWriter writer_;
  JBLOCK dropped_ = {};
};

}  // namespace leat::worker
