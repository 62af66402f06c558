// SPDX-License-Identifier: Apache-2.0
//
// Indices are handed out in order: when one fails, all below it have begun and
// are waited for, so the least failure is known.
#include "worker/source/each_file.h"

#include <algorithm>
#include <thread>
#include <vector>

#include "core/mutex.h"
#include "core/status.h"
#include "core/thread.h"

namespace leat::worker {

absl::Status ForEachIndex(size_t count, int threads,
                          const std::atomic<bool>* cancelled,
                          const std::function<absl::Status(size_t)>& work) {
  std::atomic<size_t> next{0};
  std::atomic<bool> stop{false};
  Mutex mu;
  size_t failed = count;
  absl::Status first;
  const auto run = [&] {
    while (!stop) {
      const size_t i = next++;
      if (i >= count) return;
      absl::Status status = cancelled != nullptr && *cancelled
                                ? Cancelled("listing was cancelled")
                                : work(i);
      if (status.ok()) continue;
      stop = true;
      MutexLock lock(&mu);
      if (i >= failed) continue;
      failed = i;
      first = std::move(status);
    }
  };
  const size_t wanted = std::min<size_t>(std::max(threads, 1), count);
  // Uses fewer threads if the system gives no more.
  std::vector<std::thread> helpers(wanted);
  for (size_t i = 1; i < wanted; ++i)
    if (!StartThread("list", run, &helpers[i]).ok()) break;
  run();
  for (std::thread& helper : helpers)
    if (helper.joinable()) helper.join();
  return first;
}

}  // namespace leat::worker
