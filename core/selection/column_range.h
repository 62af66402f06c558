// SPDX-License-Identifier: Apache-2.0
//
// ColumnRange: what is known of a column's values in several samples together,
// as the statistics of a file have it. Condition::Within (condition.h) says
// what follows for the samples.
#pragma once

#include "core/selection/column_value.h"

namespace leat {

struct ColumnRange {
  // No value is less, and none is greater. Nothing: that is not known.
  ColumnValue least{}, most{};
  bool may_be_missing = true;  // in some of the samples; a NaN is missing, too
  bool may_be_there = true;
};

// The results that a condition may have for the samples: both are true if they
// are not known.
struct Outcomes {
  bool may_hold = true, may_fail = true;
  friend bool operator==(const Outcomes&, const Outcomes&) = default;
};

}  // namespace leat
