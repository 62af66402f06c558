// SPDX-License-Identifier: Apache-2.0
//
// Absences: workers' reports, for the rows of one step, of samples that storage
// does not have (FAULT_OBJECT).
//
// One worker may be wrong: it may lack a mount. A sample is agreed to be absent
// when two different workers have reported it for the same row, or, if there is
// only one worker, when it has reported it twice with some time between. From
// then on requests of the row name the sample in RequestRows.absent, and
// workers apply the job's policy to the row. A row may have more than one
// absent sample: its own, substitutes, and a partner's.
//
// An agreement holds for one row of one step, so it cannot depend on what the
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
  // Bound on the reports remembered per row; the oldest is forgotten.
  static constexpr size_t kMaxReports = 32;

  struct Report {
    uint64_t sample = 0;
    uint64_t who = 0;  // the worker
    MonotonicTime at{};
    MonotonicTime ask_again{};  // this worker, not earlier
  };
  enum class Verdict : uint8_t {
    kOpen,     // another worker is to be asked
    kAgreed,   // the row is to be requested again, with more in Of
    kKnown,    // agreed before: the worker ignores it
    kTooMany,  // `max_absent` samples of the row are absent already
  };

  // Adds a worker's report that it does not find the sample of the row.
  // `alone`: there is no other worker, and its second report counts if it comes
  // `ask_again` - `at` or more after its first.
  Verdict Add(uint32_t row, const Report& report, bool alone,
              size_t max_absent);
  // Returns the row's samples that are agreed to be absent, ascending.
  std::span<const uint64_t> Of(uint32_t row) const;
  // Returns when the worker may be asked for the row again; zero: at any time.
  MonotonicTime NotBefore(uint32_t row, uint64_t who) const;
  // Returns the first time after `now` at which one of the row's workers may be
  // asked again; max: none is delayed.
  MonotonicTime NextRequest(uint32_t row, MonotonicTime now) const;

 private:
  struct Entry {
    std::vector<uint64_t> agreed;  // ascending
    std::vector<Report> reports;   // of samples without agreement
  };
  std::unordered_map<uint32_t, Entry> entries_;  // by row
};

}  // namespace leat::client
