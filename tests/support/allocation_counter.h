// SPDX-License-Identifier: Apache-2.0
//
// Counts the calls of operator new of the program that links this; none under
// ThreadSanitizer.
#pragma once

#include <cstdint>

namespace leat::testing {

uint64_t AllocationsSoFar();

}  // namespace leat::testing
