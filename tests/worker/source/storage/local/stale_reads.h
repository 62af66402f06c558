// SPDX-License-Identifier: Apache-2.0
//
// How many of the next preads fail with ESTALE, in a program that has
// stale_file_test.cc.
#pragma once

#include <atomic>

namespace leat::worker {

extern std::atomic<int> stale_reads;

}  // namespace leat::worker
