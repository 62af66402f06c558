// SPDX-License-Identifier: Apache-2.0
//
// ForEachIndex: does the same work for every file of a listing, on several
// threads.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>

#include "absl/status/status.h"

namespace leat::worker {

// Calls work(0) … work(count - 1), on up to `threads` threads, including this
// one. Returns the error of the least index that failed; after one, no new
// index above it is begun, so the result depends on the files alone.
// kCancelled: `*cancelled` became true.
absl::Status ForEachIndex(size_t count, int threads,
                          const std::atomic<bool>* cancelled,
                          const std::function<absl::Status(size_t)>& work);

}  // namespace leat::worker
