// SPDX-License-Identifier: Apache-2.0
#include "server/store/timed_store.h"

#include <algorithm>

namespace leat::server {

TimedStore::Times TimedStore::times() const {
  MutexLock lock(&mu_);
  return times_;
}

absl::Status TimedStore::Append(const Event& event) {
  const MonotonicTime begin = clock_->Now();
  {
    MutexLock lock(&mu_);
    times_.writing_since = begin;
  }
  absl::Status written = store_->Append(event);
  const double took =
      std::chrono::duration<double>(clock_->Now() - begin).count();
  const size_t at = static_cast<size_t>(
      std::lower_bound(kSeconds.begin(), kSeconds.end(), took) -
      kSeconds.begin());
  MutexLock lock(&mu_);
  times_.writing_since.reset();
  ++times_.counts[at];
  times_.seconds += took;
  if (!written.ok()) ++times_.failed;
  return written;
}

}  // namespace leat::server
