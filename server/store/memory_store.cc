// SPDX-License-Identifier: Apache-2.0
#include <utility>
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

absl::Status MemoryStore::Append(const Event& event, std::string_view index) {
  MutexLock lock(&mu_);
  if (const auto* indexed = std::get_if<DatasetIndexed>(&event.kind))
    indexes_[indexed->dataset.id] = std::string(index);
  if (const auto* deleted = std::get_if<DatasetDeleted>(&event.kind))
    indexes_.erase(deleted->id);
  events_.push_back(event);
  ++sequence_;
  return absl::OkStatus();
}

absl::Status MemoryStore::Compact(std::span<const Event> live) {
  MutexLock lock(&mu_);
  events_.assign(live.begin(), live.end());
  return absl::OkStatus();
}

absl::StatusOr<std::string> MemoryStore::ReadIndex(std::string_view dataset_id,
                                                   uint64_t chunk) {
  MutexLock lock(&mu_);
  const auto it = indexes_.find(dataset_id);
  if (it == indexes_.end())
    return NotFound("no index of dataset {}", dataset_id);
  const std::string& index = it->second;
  if (chunk >=
      index.size() / kIndexChunkBytes + (index.size() % kIndexChunkBytes != 0))
    return OutOfRange("the index of dataset {} has no piece {}", dataset_id,
                      chunk);
  return index.substr(chunk * kIndexChunkBytes, kIndexChunkBytes);
}

}  // namespace leat::server
