// SPDX-License-Identifier: Apache-2.0
//
// Layout says where each row of a step stands: in which source, in which pass
// over which run of its samples, and at which position of the pass. A
// SampleOrder (sample_order.h) then says which sample stands there; a plan has
// one for each source.
//
// PassLayout is the layout of one dataset in passes (pass_layout.h).
// ShareLayout is the layout of mixtures and of groups in shares
// (share_layout.h).
//
// The samples of rows, if every stretch is whole:
//
//     layout.Cut(epoch, step, rows, &cut);
//     std::span<uint64_t> rest = cut.positions;
//     for (const Stretch& stretch : cut.list) {
//       orders[stretch.source].Map(stretch.pass, stretch.run,
//                                  rest.first(stretch.rows));
//       rest = rest.subspan(stretch.rows);
//     }
//     for (size_t i = 0; i < rows.size(); ++i)
//       samples[cut.slots.empty() ? i : cut.slots[i]] = cut.positions[i];
//
// Layouts are pure functions, and immutable; any thread may call them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/plan/sample_order.h"

namespace leat {

// Steps of the only epoch of a job without an end: a bound that no run reaches.
inline constexpr uint64_t kStreamSteps = uint64_t{1} << 40;

// The position of a row that holds no sample.
inline constexpr uint64_t kNoPosition = ~uint64_t{0};

// The place of one row.
struct Spot {
  uint32_t source = 0;
  uint64_t pass = 0;  // over the run, from 0
  SampleOrder::Run run;
  uint64_t position = 0;  // in the pass; or kNoPosition
};

// Rows whose positions one order maps together.
struct Stretch {
  size_t rows = 0;
  uint32_t source = 0;
  uint64_t pass = 0;
  SampleOrder::Run run;
  bool whole = true;  // every row has a position
};

// Rows, cut into stretches. The caller keeps one and passes it again, so that
// its memory is used again.
struct Stretches {
  std::vector<Stretch> list;
  std::vector<uint64_t> positions;  // stretch after stretch
  // slots[i]: the place among the rows asked for of the one at positions[i].
  // Empty: the rows are in the order in which they were asked for.
  std::vector<uint32_t> slots;
};

class Layout {
 public:
  virtual ~Layout() = default;

  virtual uint64_t steps_per_epoch() const = 0;
  // Rows that hold a sample of their own. REQUIRES: step < steps_per_epoch().
  virtual uint32_t rows_in(uint64_t step) const = 0;
  // Whether the row only fills its step. REQUIRES: as SpotOf.
  virtual bool IsPadding(uint64_t epoch, uint64_t step, uint32_t row) const = 0;
  // REQUIRES: the epoch is one of the job, step < steps_per_epoch(), row < the
  // batch.
  virtual Spot SpotOf(uint64_t epoch, uint64_t step, uint32_t row) const = 0;
  // Replaces `out` by the spots of all rows, which costs far less than asking
  // for each. REQUIRES: as SpotOf.
  virtual void Cut(uint64_t epoch, uint64_t step,
                   std::span<const uint32_t> rows, Stretches* out) const = 0;
};

}  // namespace leat
