// SPDX-License-Identifier: Apache-2.0
//
// Broadcasting as in NumPy: shapes are aligned at their last axes; an axis that
// is missing or 1 is repeated.
#pragma once

#include <span>

#include "core/tensor/tensor.h"

namespace leat {

// Joins `other` into `shape`. A size of -1 is unknown: it stays, or becomes the
// other's if that is over 1. Returns false if they do not fit; then `shape` is
// unspecified.
bool Broadcast(std::span<const int64_t> other, Shape* shape);

}  // namespace leat
