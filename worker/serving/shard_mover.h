// SPDX-License-Identifier: Apache-2.0
//
// ShardMover: takes over records that other workers keep of shards that have
// become this worker's own, before rows request them: from a worker that
// leaves, within its grace (Config.drain_timeout_ms), and from one that has
// lost shards, before it needs the room.
//
// One thread requests one record after the other, in the order of samples. It
// continues with the next shard when a peer does not answer, keeps nothing
// more, or is slower than storage, and when the sample cache has no room. Rows
// do not wait for it. Shards that move on before their turn are left out.
// Thread-safe.
#pragma once

#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "core/mutex.h"
#include "worker/job/job_table.h"
#include "worker/job/ownership.h"

namespace leat::worker {

class ShardMover {
 public:
  // Failures in sequence before the next shard is tried.
  static constexpr int kMaxVain = 16;

  // Both outlive it.
  ShardMover(JobTable* jobs, const Ownership* ownership);
  ~ShardMover();
  ShardMover(const ShardMover&) = delete;
  ShardMover& operator=(const ShardMover&) = delete;

  // kResourceExhausted: its thread cannot be created.
  const absl::Status& started() const { return started_; }
  // Does not block. Shards that wait beyond kMaxShards are not taken in
  // advance.
  void Moved(const std::string& dataset_id, std::vector<MovedShard> shards);
  // Ends the work under way after the record that is being taken.
  void Stop();

 private:
  void Run();
  void Take(const SourceRuntime& source, const MovedShard& moved);
  bool stopping();

  JobTable* const jobs_;
  const Ownership* const ownership_;
  Mutex mu_;
  CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::map<std::string, std::vector<MovedShard>> waiting_ ABSL_GUARDED_BY(mu_);
  std::thread thread_;
  absl::Status started_;
};

}  // namespace leat::worker
