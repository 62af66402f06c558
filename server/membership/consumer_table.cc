// SPDX-License-Identifier: Apache-2.0
#include "server/membership/consumer_table.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"

namespace leat::server {
namespace {

const std::set<SessionId> kNobody;

// The key is unique, and sorts by name: no name has a character below '!'.
std::string NameKey(const std::string& consumer, SessionId id) {
  return fmt::format("{} {:020}", consumer, id);
}

template <class Index, class Key>
const std::set<SessionId>& In(const Index& index, const Key& key) {
  const auto it = index.find(key);
  return it == index.end() ? kNobody : it->second;
}

template <class Index, class Key>
void Forget(Index* index, const Key& key, SessionId id) {
  const auto it = index->find(key);
  it->second.erase(id);
  if (it->second.empty()) index->erase(it);
}

}  // namespace

Consumer& ConsumerTable::Add(SessionId id, Consumer consumer) {
  Consumer& added = consumers_.emplace(id, std::move(consumer)).first->second;
  for (const TableKey& key : added.keys) by_table_[key].insert(id);
  added.pending = {added.keys.begin(), added.keys.end()};
  by_job_[added.job].insert(id);
  by_plan_[added.opening.plan_hash].insert(id);
  by_name_[NameKey(added.opening.consumer, id)] = id;
  return added;
}

void ConsumerTable::Move(SessionId id, std::span<const TableKey> keys) {
  Consumer& consumer = consumers_.at(id);
  for (const TableKey& key : consumer.keys) Forget(&by_table_, key, id);
  consumer.keys.assign(keys.begin(), keys.end());
  consumer.pending = {keys.begin(), keys.end()};
  for (const TableKey& key : keys) by_table_[key].insert(id);
}

Consumer* ConsumerTable::Find(SessionId id) {
  const auto it = consumers_.find(id);
  return it == consumers_.end() ? nullptr : &it->second;
}

const Consumer* ConsumerTable::Find(SessionId id) const {
  const auto it = consumers_.find(id);
  return it == consumers_.end() ? nullptr : &it->second;
}

std::optional<Consumer> ConsumerTable::Remove(SessionId id) {
  const auto it = consumers_.find(id);
  if (it == consumers_.end()) return std::nullopt;
  std::optional<Consumer> removed(std::move(it->second));
  consumers_.erase(it);
  for (const TableKey& key : removed->keys) Forget(&by_table_, key, id);
  Forget(&by_job_, removed->job, id);
  Forget(&by_plan_, removed->opening.plan_hash, id);
  by_name_.erase(NameKey(removed->opening.consumer, id));
  return removed;
}

const std::set<SessionId>& ConsumerTable::OfTable(const TableKey& key) const {
  return In(by_table_, key);
}

const std::set<SessionId>& ConsumerTable::OfPlan(
    const Digest& plan_hash) const {
  return In(by_plan_, plan_hash);
}

const std::set<SessionId>& ConsumerTable::OfJob(std::string_view job) const {
  return In(by_job_, job);
}

size_t ConsumerTable::NumConsumers(std::string_view job) const {
  return static_cast<size_t>(std::ranges::count_if(
      OfJob(job), [this](SessionId id) { return IsNewest(id); }));
}

bool ConsumerTable::IsNewest(SessionId id) const {
  const std::string& name = consumers_.at(id).opening.consumer;
  const auto next = by_name_.upper_bound(NameKey(name, id));
  return next == by_name_.end() || !next->first.starts_with(name + ' ');
}

}  // namespace leat::server
