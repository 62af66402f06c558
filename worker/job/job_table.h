// SPDX-License-Identifier: Apache-2.0
//
// JobTable: maps (plan hash, epilogue) to a runtime. A runtime is fetched on
// first use, once however many callers wait. The last `max_jobs` used are kept;
// their open datasets are shared (worker/job/source_table.h). A job's only
// dataset is opened with the job, and those of a mixture later. An index in
// blocks with samples is not fetched when it is opened, but block by block when
// rows need it (worker/job/block_source.h).
//
// The table has threads that fetch. While the coordinator cannot be reached, a
// fetch is tried again, with backoff, until `load_timeout`. Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/bounded_queue.h"
#include "core/mutex.h"
#include "core/plan/checked_job.h"
#include "worker/job/index_cache.h"
#include "worker/job/index_opener.h"
#include "worker/job/job_runtime.h"
#include "worker/job/source_table.h"

namespace leat::worker {

// Fetches jobs and indexes.
class JobFetcher : public IndexFetcher {
 public:
  // kNotFound: no such job. kUnavailable, kDeadlineExceeded: try again.
  virtual absl::StatusOr<JobInfo> FetchJob(const std::string& plan_hash) = 0;
};

struct JobTableOptions {
  size_t max_jobs = 64;
  size_t max_waiting = 10'000;  // callbacks
  int threads = 2;
  size_t opens = 16;  // sources of mixtures, ahead of their rows, at a time
  Duration load_timeout = std::chrono::seconds(30);
  // For one block of an index.
  Duration block_timeout = std::chrono::seconds(30);
  Duration first_backoff = std::chrono::milliseconds(50);
  Duration max_backoff = std::chrono::seconds(2);
  SourceLimits source_limits;
  IndexCacheOptions index_cache;
};

class JobTable {
 public:
  using Runtime = std::shared_ptr<const JobRuntime>;
  using Callback = std::function<void(absl::StatusOr<Runtime>)>;

  // `fetcher` and `context` outlive the table, and reads of its runtimes. If
  // `started` returns an error, the table lacks its threads: only destroy it.
  JobTable(JobTableOptions options, JobFetcher* fetcher,
           const RuntimeContext* context);
  // Waits for fetches in progress; callbacks left over get kCancelled.
  ~JobTable();

  // kResourceExhausted: a thread of the table cannot be created.
  const absl::Status& started() const { return started_; }

  // Calls `done` once: before this returns if the job is known, otherwise on a
  // thread of the table. kNotFound: the coordinator does not know the job.
  // kResourceExhausted: too many callbacks wait. kUnavailable: this worker
  // cannot read the beginning of the only dataset; another may.
  void Get(const std::string& plan_hash, Epilogue epilogue, Callback done);

  // A source of a runtime, which it keeps.
  using SourcePtr = std::shared_ptr<const SourceRuntime>;

  // Returns a source that reads this dataset (DatasetKeyOf); nullptr if none is
  // known.
  SourcePtr FindReading(const Digest& dataset);

  // Returns sources that read the dataset with this id, one per key of it.
  std::vector<SourcePtr> ReadingOf(const std::string& dataset_id);

  // Returns for each source of each mixture the time that storage took for its
  // reads, in nanoseconds, by the jobs' names.
  std::map<std::string, std::vector<uint64_t>, std::less<>> StorageTimes();

  // Ends waits for blocks of indexes, and makes later ones end at once.
  void StopFetchingBlocks() { index_cache_->Stop(); }
  IndexCache::Stats index_stats() const { return index_cache_->stats(); }

 private:
  using Key = std::pair<std::string, Epilogue>;
  void Work();
  absl::StatusOr<Runtime> Load(const Key& key);
  absl::StatusOr<Runtime> LoadOnce(const Key& key);
  // Returns the job's sources; those of a mixture are opened later.
  absl::StatusOr<std::vector<std::shared_ptr<const Source>>> SourcesOf(
      const JobInfo& job, const CheckedJob& checked);
  // Returns false if the table is being destroyed.
  bool Pause(Duration duration);

  const JobTableOptions options_;
  JobFetcher* const fetcher_;
  // Both are shared with the sources, which may outlive the table.
  const std::shared_ptr<IndexCache> index_cache_;
  const std::shared_ptr<SourceTable> sources_;
  const RuntimeContext* const context_;
  BoundedQueue<Key> queue_;

  Mutex mu_;
  CondVar stopping_changed_;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::list<std::pair<Key, Runtime>> jobs_
      ABSL_GUARDED_BY(mu_);  // last used first
  std::map<Key, std::vector<Callback>> waiting_ ABSL_GUARDED_BY(mu_);
  size_t num_waiting_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<std::thread> threads_;
  absl::Status started_;
};

}  // namespace leat::worker
