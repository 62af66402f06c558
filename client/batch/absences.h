// SPDX-License-Identifier: Apache-2.0
//
// Absences: what workers say of the samples that storage does not have
// (FAULT_OBJECT), for the rows of one step.
//
// One worker may be wrong: it may lack a mount. A sample is agreed to be absent
// when two different workers have said so of the same row, or, where there is
// only one worker, when it has said so twice with some time between. From then
// on the row is asked with the sample in RequestRows.absent, and what becomes of
// the row is the job's policy, which workers apply. A row may have more than
// one absent sample: its own, substitutes, and a partner's.
//
// What is agreed holds for one row of one step, so it cannot depend on what the
// consumer saw in other rows.
//
// Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/clock.h"

namespace leat::client {

class Absences {
 public:
  // Reports of a row that are remembered; the oldest is forgotten.
  static constexpr size_t kMaxReports = 32;

  struct Report {
    uint64_t sample = 0;
    uint64_t who = 0;  // the worker
    MonotonicTime at{};
    MonotonicTime ask_again{};  // not before, of this worker
  };
  enum class Verdict : uint8_t {
    kOpen,     // another worker is to be asked
    kAgreed,   // the row is to be asked again, with more in Of
    kKnown,    // it was agreed before: the worker does not heed it
    kTooMany,  // `max_absent` samples of the row are absent already
  };

  // A worker does not find the sample of the row. `alone`: there is no other
  // worker, and a second report of it counts if it comes `ask_again` - `at` or
  // more after its first.
  Verdict Add(uint32_t row, const Report& report, bool alone,
              size_t max_absent);
  // The row's samples that are agreed to be absent, ascending.
  std::span<const uint64_t> Of(uint32_t row) const;
  // When the worker may be asked for the row again; zero: at any time.
  MonotonicTime NotBefore(uint32_t row, uint64_t who) const;
  // When the first of the row's workers may be asked again after `now`; max:
  // none waits.
  MonotonicTime NextRequest(uint32_t row, MonotonicTime now) const;

 private:
  struct Entry {
    std::vector<uint64_t> agreed;  // ascending
    std::vector<Report> reports;   // of samples that are not agreed
  };
  std::unordered_map<uint32_t, Entry> entries_;  // by row
};

}  // namespace leat::client
