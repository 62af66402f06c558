// SPDX-License-Identifier: Apache-2.0
//
// DecodeCosts: what decodes of a dataset take at one scale, plainly and by each
// form, and what forms cost to make.
//
// Thread-safe, but for what is guarded by the cache's lock.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/clock.h"
#include "worker/cache/form_account.h"
#include "worker/cache/form_plan.h"
#include "worker/image/jpeg/forms/kinds.h"

namespace leat::worker {

inline constexpr uint64_t kLeastMeasured = 8;  // decodes or forms, for a mean
// What is assumed of photos as long as it was not measured: of a plain
// decode's time, of the record's bytes, and of a plain decode's time beside it.
struct UsualForm {
  double time = 0, size = 0, making = 0;
};
inline constexpr std::array<UsualForm, kDecodeWays> kUsualForms = {
    {{1, 0, 0}, {0.7, 1.0 / 64, 0.2}, {0.45, 2, 1.5}, {0.05, 5.4, 3}}};

struct DecodeCosts {
  std::atomic<uint64_t> asked{0};
  // By way: decodes, and what they took.
  std::array<std::atomic<uint64_t>, kDecodeWays> count{}, ns{};
  // Of plain decodes; and by way, of decodes by a form, and what making one
  // takes beyond a plain decode.
  TimeOfBytes plain;
  std::array<TimeOfBytes, kDecodeWays> by_form, making;
  // What the last plans saw. Guarded by the cache's lock.
  uint64_t asked_before = 0;
  std::array<uint64_t, kDecodeWays> count_before{}, ns_before{};
  std::array<double, kDecodeWays> mean_ns{};  // 0: not known

  // What making such a form of a file will take beyond a plain decode.
  // nullopt: it is not known what that takes.
  std::optional<Duration> CostOf(JpegFormKind kind, size_t file_bytes) const;
  // What a decode of such a file by a form takes if it takes so long plainly;
  // no form: that. It is what was measured or what is usual, whichever is
  // less: the first forms are of small files, whose decodes take long for
  // each byte, and too many forms cost less than too few.
  Duration TimeOf(std::optional<JpegFormKind> kind, size_t file_bytes,
                  Duration plainly) const;
  // Over all decodes by such a form: what plain ones would have taken, less
  // what these did. Negative: nothing was saved.
  double SavedNs(JpegFormKind kind) const;
  // The decodes since the last plan become `mean_ns`. Returns how many were
  // asked for.
  uint64_t LookAgain();
};

}  // namespace leat::worker
