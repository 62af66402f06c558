// SPDX-License-Identifier: Apache-2.0
#include "worker/serving/shard_mover.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/plan/shard_table.h"
#include "core/thread.h"

namespace leat::worker {

ShardMover::ShardMover(JobTable* jobs, const Ownership* ownership)
    : jobs_(jobs),
      ownership_(ownership),
      started_(StartThread(
          "shard-mover", [this] { Run(); }, &thread_)) {}

ShardMover::~ShardMover() {
  Stop();
  if (thread_.joinable()) thread_.join();
}

void ShardMover::Moved(const std::string& dataset_id,
                       std::vector<MovedShard> shards) {
  if (shards.empty()) return;
  MutexLock lock(&mu_);
  std::vector<MovedShard>& waiting = waiting_[dataset_id];
  const size_t room = kMaxShards - std::min<size_t>(kMaxShards, waiting.size());
  if (shards.size() > room) shards.resize(room);
  std::ranges::move(shards, std::back_inserter(waiting));
  changed_.NotifyAll();
}

void ShardMover::Stop() {
  MutexLock lock(&mu_);
  stopping_ = true;
  changed_.NotifyAll();
}

bool ShardMover::stopping() {
  MutexLock lock(&mu_);
  return stopping_;
}

void ShardMover::Run() {
  while (true) {
    std::string dataset_id;
    std::vector<MovedShard> shards;
    {
      MutexLock lock(&mu_);
      while (!stopping_ && waiting_.empty()) changed_.Wait(&mu_);
      if (stopping_) return;
      auto next = waiting_.extract(waiting_.begin());
      dataset_id = std::move(next.key());
      shards = std::move(next.mapped());
    }
    for (const JobTable::SourcePtr& source : jobs_->ReadingOf(dataset_id))
      for (const MovedShard& moved : shards) Take(*source, moved);
  }
}

void ShardMover::Take(const SourceRuntime& source, const MovedShard& moved) {
  const DatasetInfo& dataset = source.dataset();
  if (moved.shard >= dataset.shards.num_shards()) return;
  const ShardTable::Range range = dataset.shards.range(moved.shard);
  int vain = 0;
  for (uint64_t sample = range.begin; sample < range.end; ++sample) {
    if (vain >= kMaxVain || stopping() ||
        !ownership_->Owns(dataset.id, moved.shard))
      return;
    vain =
        source.records().TakeFrom(*moved.from, source.first_sample() + sample)
            ? 0
            : vain + 1;
  }
}

}  // namespace leat::worker
