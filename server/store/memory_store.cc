// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "core/status.h"
#include "server/store/store.h"

namespace leat::server {

absl::Status MemoryStore::Replay(
    const std::function<absl::Status(const Event&)>& apply) {
  std::vector<Event> events;
  {
    MutexLock lock(&mu_);
    events = events_;
  }
  for (const Event& event : events) RETURN_IF_ERROR(apply(event));
  return absl::OkStatus();
}

absl::Status MemoryStore::Append(const Event& event) {
  MutexLock lock(&mu_);
  events_.push_back(event);
  ++sequence_;
  return absl::OkStatus();
}

absl::Status MemoryStore::Compact(std::span<const Event> live) {
  MutexLock lock(&mu_);
  events_.assign(live.begin(), live.end());
  return absl::OkStatus();
}

}  // namespace leat::server
