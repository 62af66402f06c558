// SPDX-License-Identifier: Apache-2.0
#include "worker/cache/idle_work.h"

#include <algorithm>

namespace leat::worker {

void IdleWork::SetOwing(bool owing) {
  const uint32_t before = closed_.load(std::memory_order_relaxed);
  if (((before & kOwing) != 0) == owing) return;
  if (owing) {
    ++closings_;
    closed_.fetch_or(kOwing);
    return;
  }
  if (closed_.fetch_and(~kOwing) == kOwing && size_ > 0) opened_.Notify();
}

void IdleWork::Shut() { closed_.fetch_or(kShut); }

void IdleWork::Put(const Key& key, LackingForm form, int64_t turn) {
  turns_.emplace(turn, key);
  waiting_.insert_or_assign(key,
                            Waiting{.form = std::move(form), .turn = turn});
  size_ = waiting_.size();
}

void IdleWork::Offer(LackingForm form) {
  const Key key = {form.dataset.get(), form.record, form.field};
  MutexLock lock(&mu_);
  if (const auto it = waiting_.find(key); it != waiting_.end())
    turns_.erase(it->second.turn);
  else if (waiting_.size() >= kMost)
    return;
  Put(key, std::move(form), next_turn_++);
}

void IdleWork::Forget(const SampleCache::DatasetPtr& dataset, uint64_t record,
                      size_t field) {
  if (size_ == 0) return;
  MutexLock lock(&mu_);
  const auto it = waiting_.find(Key(dataset.get(), record, field));
  if (it == waiting_.end()) return;
  turns_.erase(it->second.turn);
  waiting_.erase(it);
  size_ = waiting_.size();
}

std::optional<LackingForm> IdleWork::Take() {
  MutexLock lock(&mu_);
  if (turns_.empty()) return std::nullopt;
  const auto first = turns_.begin();
  const auto it = waiting_.find(first->second);
  std::optional<LackingForm> form = std::move(it->second.form);
  waiting_.erase(it);
  turns_.erase(first);
  size_ = waiting_.size();
  return form;
}

void IdleWork::GiveBack(LackingForm form) {
  const Key key = {form.dataset.get(), form.record, form.field};
  MutexLock lock(&mu_);
  if (waiting_.contains(key)) return;
  const int64_t first = turns_.empty() ? next_turn_ : turns_.begin()->first;
  Put(key, std::move(form), std::min(first, next_turn_) - 1);
}

}  // namespace leat::worker
