// SPDX-License-Identifier: Apache-2.0
#include "worker/source/disk_cache/dataset_uses.h"

#include <utility>

namespace leat::worker {

class DatasetUses::Use {
 public:
  Use(std::shared_ptr<State> state, const Digest& dataset)
      : state_(std::move(state)), dataset_(dataset) {}
  ~Use() {
    const MonotonicTime now = state_->clock.Now();
    MutexLock lock(&state_->mu);
    Entry& entry = state_->datasets[dataset_];
    --entry.uses;
    entry.ended = now;
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

 private:
  const std::shared_ptr<State> state_;
  const Digest dataset_;
};

DatasetUses::Standing DatasetUses::State::StandingOf(const Entry& entry) const {
  if (entry.uses > 0) return {true, MonotonicTime::max()};
  const bool rests =
      entry.ended != MonotonicTime::min() && clock.Now() < entry.ended + rest;
  return {rests, entry.ended};
}

std::shared_ptr<const void> DatasetUses::Begin(const Digest& dataset) {
  {
    MutexLock lock(&state_->mu);
    ++state_->datasets[dataset].uses;
    if (state_->datasets.size() > kMaxDatasets)
      absl::erase_if(state_->datasets, [this](const auto& each) {
        return !state_->StandingOf(each.second).lives;
      });
  }
  return std::make_shared<const Use>(state_, dataset);
}

DatasetUses::Standing DatasetUses::Of(const Digest& dataset) const {
  MutexLock lock(&state_->mu);
  const auto it = state_->datasets.find(dataset);
  return it == state_->datasets.end() ? Standing()
                                      : state_->StandingOf(it->second);
}

}  // namespace leat::worker
