// SPDX-License-Identifier: Apache-2.0
//
// FormMaker: makes one form of a JPEG file, for nobody's row.
//
// It can be given up: it looks between rows of MCUs (of 16 rows of pixels at
// most), which are decoded in some ten microseconds each of a photo, and not
// while sums of the file and of the form are made. Where a progressive file's
// coefficients are taken, also between rows of these.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "worker/image/base/limits.h"
#include "worker/image/jpeg/forms/keeper.h"

namespace leat::worker {

struct FormOrder {
  std::span<const std::byte> file;
  JpegFormKind kind = JpegFormKind::kSeekIndex;
  bool gray = false;     // the colours of pixels
  size_t max_bytes = 0;  // of coefficients or pixels
};

// Thread-compatible. Working memory is kept from file to file.
class FormMaker {
 public:
  virtual ~FormMaker() = default;
  // kCancelled: `*give_up` was not 0 meanwhile. Others, as of
  // JpegDecoder::TakeForm: no such form can be made of this file.
  virtual absl::StatusOr<KeptForm> Make(
      const FormOrder& order, const std::atomic<uint32_t>& give_up) = 0;
};

using FormMakerFactory = std::function<std::unique_ptr<FormMaker>()>;

// Of real forms (jpeg/forms/form.h). Of several scans, of which libjpeg keeps
// coefficients, files that need more than `kMakerScratchBytes` are left to
// rows.
inline constexpr uint64_t kMakerScratchBytes = 64 << 20;
FormMakerFactory JpegFormMakers(ImageLimits limits);

}  // namespace leat::worker
