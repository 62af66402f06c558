// SPDX-License-Identifier: Apache-2.0
//
// Broadcasting, as NumPy's: shapes are aligned at their last axes; an axis that
// is missing or 1 is repeated.
#pragma once

#include <span>

#include "core/tensor/tensor.h"

namespace leat {

// Joins `other` into `shape`. A size of -1 is not known yet: it stays, or takes
// the other's if that is over 1. False: they do not fit, `shape` is
// unspecified.
bool Broadcast(std::span<const int64_t> other, Shape* shape);

}  // namespace leat
