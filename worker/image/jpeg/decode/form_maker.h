// SPDX-License-Identifier: Apache-2.0
//
// FormMaker: makes one decoded form of a JPEG file, outside any row's
// computation.
//
// It can be cancelled: it checks between rows of MCUs (at most 16 rows of
// pixels, some ten microseconds each in a photo), but not while it sums the
// file and the form. Where a progressive file's coefficients are taken, it also
// checks between rows of these.
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
  bool gray = false;       // colours of pixels
  int pixel_halvings = 0;  // scale of pixels
  size_t max_bytes = 0;    // of coefficients or pixels
};

// Thread-compatible. It reuses its memory from file to file.
class FormMaker {
 public:
  virtual ~FormMaker() = default;
  // kCancelled: `*give_up` became nonzero. Other errors are those of
  // JpegDecoder::TakeForm: no such form can be made from this file.
  virtual absl::StatusOr<KeptForm> Make(
      const FormOrder& order, const std::atomic<uint32_t>& give_up) = 0;
};

using FormMakerFactory = std::function<std::unique_ptr<FormMaker>()>;

// Makes real forms (jpeg/forms/form.h). It refuses files of several scans whose
// coefficients take libjpeg more than kMakerScratchBytes; rows make their
// forms.
inline constexpr uint64_t kMakerScratchBytes = 64 << 20;
FormMakerFactory JpegFormMakers(ImageLimits limits);

}  // namespace leat::worker
