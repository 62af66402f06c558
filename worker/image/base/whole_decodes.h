// SPDX-License-Identifier: Apache-2.0
//
// WholeDecodes: counts, per format, the images that were to be reduced but had
// to be decoded whole, since their format has no scales. The first image of
// each format is logged.
//
// Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/log.h"
#include "worker/image/base/formats.h"

namespace leat::worker {

class WholeDecodes {
 public:
  void Count(ImageFormat format) {
    if (counts_[Index(format)].fetch_add(1, std::memory_order_relaxed) == 0)
      LOG_INFO(
          "decode.not_reduced format={} reason=\"the format has no scales: "
          "reduce=\\\"auto\\\" decodes its images whole\"",
          Name(format));
  }
  uint64_t of(ImageFormat format) const {
    return counts_[Index(format)].load(std::memory_order_relaxed);
  }

 private:
  static size_t Index(ImageFormat format) {
    return static_cast<size_t>(format);
  }
  std::array<std::atomic<uint64_t>, kImageFormats> counts_{};
};

}  // namespace leat::worker
