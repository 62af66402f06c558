// SPDX-License-Identifier: Apache-2.0
//
// DecodeCosts: how long decodes of one class take in a dataset, without a form
// and by each form, and what forms cost to make.
//
// Thread-safe, except the fields guarded by the cache's lock.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/clock.h"
#include "worker/cache/form_account.h"
#include "worker/cache/form_plan.h"
#include "worker/image/jpeg/forms/keeper.h"

namespace leat::worker {

inline constexpr uint64_t kLeastMeasured = 8;  // decodes or forms, for a mean
// Ratios assumed for photos until they have been measured. time: of a decode by
// the form to a plain decode. size: of the form to the record. making: of the
// additional time to make the form to a plain decode.
struct UsualForm {
  double time = 0, size = 0, making = 0;
};
using UsualForms = std::array<UsualForm, kDecodeWays>;
inline constexpr UsualForms kUsualForms = {
    {{1, 0, 0}, {0.7, 1.0 / 64, 0.2}, {0.45, 2, 1.5}, {0.05, 5.4, 3}}};
// Pixels of a smaller image serve most windows, and a seek index the others.
inline constexpr UsualForms kUsualReducedForms = {
    {{1, 0, 0}, {0.7, 1.0 / 64, 0.2}, {0.3, 2, 1.5}, {0.15, 0.5, 3}}};
// Pixels of another format cost new memory only. That is little beside a decode
// of most formats, and as much as one of a file that is not compressed.
inline constexpr UsualForms kUsualFormsOfOthers = {
    {{1, 0, 0}, {1, 0, 0}, {1, 0, 0}, {0.05, 2, 1}}};
inline constexpr const UsualForms& UsualFormsOf(DecodeClass decode) {
  switch (decode) {
    case DecodeClass::kFull:
      return kUsualForms;
    case DecodeClass::kReduced:
      return kUsualReducedForms;
    case DecodeClass::kOtherFormat:
      break;
  }
  return kUsualFormsOfOthers;
}

struct DecodeCosts {
  explicit DecodeCosts(DecodeClass decode) : usual(UsualFormsOf(decode)) {}

  const UsualForms& usual;
  std::atomic<uint64_t> asked{0};
  // By way: the number of decodes, and their total time.
  std::array<std::atomic<uint64_t>, kDecodeWays> count{}, ns{};
  // The time of plain decodes; and by way, the time of decodes by a form, and
  // the time that making one takes beyond a plain decode.
  TimeOfBytes plain;
  std::array<TimeOfBytes, kDecodeWays> by_form, making;
  // The values at the last plan. Guarded by the cache's lock.
  uint64_t asked_before = 0;
  std::array<uint64_t, kDecodeWays> count_before{}, ns_before{};
  std::array<double, kDecodeWays> mean_ns{};  // 0: not known

  // Returns the time that making such a form of a file will take beyond a plain
  // decode; nullopt if it is not known.
  std::optional<Duration> CostOf(JpegFormKind kind, size_t file_bytes) const;
  // Returns the time of a decode of such a file by a form, if a plain decode
  // takes `plainly`; without a form: that. The result is the measured or the
  // usual time, whichever is less: the first forms are of small files, whose
  // decodes take long per byte, and too many forms cost less than too few.
  Duration TimeOf(std::optional<JpegFormKind> kind, size_t file_bytes,
                  Duration plainly) const;
  // Returns the time saved by all decodes by such a form: what plain ones would
  // have taken, minus what these took. Negative: time was lost.
  double SavedNs(JpegFormKind kind) const;
  // Takes the decodes since the last plan into `mean_ns`. Returns how many
  // decodes were requested.
  uint64_t LookAgain();
};

}  // namespace leat::worker
