// SPDX-License-Identifier: Apache-2.0
#include "server/jobs/job_creations.h"

#include <algorithm>

namespace leat::server {

JobCreation* JobCreations::Add(uint64_t id, JobCreation creation) {
  deadlines_.emplace(creation.deadline(), id);
  if (creation.tell()) tells_.emplace(creation.next_told(), id);
  return &creations_.emplace(id, std::move(creation)).first->second;
}

JobCreation* JobCreations::Find(uint64_t id) {
  const auto it = creations_.find(id);
  return it == creations_.end() ? nullptr : &it->second;
}

bool JobCreations::StartWriting(uint64_t id) {
  JobCreation* const creation = Find(id);
  if (creation == nullptr) return false;
  deadlines_.erase({creation->deadline(), id});
  tells_.erase({creation->next_told(), id});
  creation->StartWriting();
  return true;
}

std::optional<JobCreation> JobCreations::Take(uint64_t id) {
  const auto it = creations_.find(id);
  if (it == creations_.end()) return std::nullopt;
  std::optional<JobCreation> taken(std::move(it->second));
  creations_.erase(it);
  deadlines_.erase({taken->deadline(), id});
  tells_.erase({taken->next_told(), id});
  return taken;
}

std::vector<uint64_t> JobCreations::Waiting() const {
  std::vector<uint64_t> waiting;
  for (const auto& [id, creation] : creations_)
    if (creation.phase() != JobCreation::Phase::kWriting) waiting.push_back(id);
  return waiting;
}

std::vector<uint64_t> JobCreations::WaitingFor(
    std::string_view reader_id) const {
  std::vector<uint64_t> waiting = Waiting();
  std::erase_if(waiting, [&, id = std::string(reader_id)](uint64_t number) {
    return !creations_.at(number).waits_for().contains(id);
  });
  return waiting;
}

bool JobCreations::Wants(std::string_view reader_id) const {
  return std::any_of(
      creations_.begin(), creations_.end(), [&](const auto& entry) {
        return std::ranges::any_of(entry.second.job().sources,
                                   [&](const PreparedSource& source) {
                                     return source.reader_id == reader_id ||
                                            source.arranged_id == reader_id;
                                   });
      });
}

std::optional<uint64_t> JobCreations::Late(MonotonicTime now) const {
  if (deadlines_.empty() || now < deadlines_.begin()->first)
    return std::nullopt;
  return deadlines_.begin()->second;
}

std::optional<uint64_t> JobCreations::ToTell(MonotonicTime now) {
  if (tells_.empty() || now < tells_.begin()->first) return std::nullopt;
  const uint64_t id = tells_.begin()->second;
  tells_.erase(tells_.begin());
  JobCreation& creation = creations_.at(id);
  creation.Told(now);
  tells_.emplace(creation.next_told(), id);
  return id;
}

MonotonicTime JobCreations::NextDeadline() const {
  MonotonicTime next = MonotonicTime::max();
  for (const auto* times : {&deadlines_, &tells_})
    if (!times->empty()) next = std::min(next, times->begin()->first);
  return next;
}

std::optional<uint64_t> JobCreations::First() const {
  if (creations_.empty()) return std::nullopt;
  return creations_.begin()->first;
}

}  // namespace leat::server
