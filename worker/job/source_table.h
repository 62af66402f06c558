// SPDX-License-Identifier: Apache-2.0
//
// SourceTable: the open datasets of a worker's jobs. A dataset that several jobs
// read, or several sources of one, is opened once (worker/job/later_source.h).
//
// The sources of a mixture are put off: rows open those that they need, and a
// few threads of the table open the others ahead, in their order. Each takes
// several of them, whose indexes it fetches together. The threads are started
// with the first mixture.
//
// The job table shares it with sources that are not open yet, which may outlive
// the job table. Thread-safe; nothing is fetched or opened with the lock held.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/bounded_queue.h"
#include "core/mutex.h"
#include "core/plan/job.h"
#include "worker/job/index_cache.h"
#include "worker/job/index_opener.h"
#include "worker/job/later_source.h"
#include "worker/job/stop_signal.h"
#include "worker/source/source.h"

namespace leat::worker {

class SourceTable : public std::enable_shared_from_this<SourceTable> {
 public:
  struct Options {
    size_t max_known =
        1024;           // datasets, before those that are gone are forgotten
    size_t opens = 16;  // ahead, at a time
    size_t max_waiting = 4096;  // groups of sources, to be opened ahead
    // How long a job waits for sources that are opened ahead. One that is open
    // when a stream of rows begins is not read by threads that wait.
    Duration patience = std::chrono::seconds(2);
    Duration block_timeout = std::chrono::seconds(30);
    LaterSource::Options later;
    SourceLimits limits;
  };
  using SourcePtr = std::shared_ptr<const Source>;

  // `fetcher` outlives the table and its sources.
  SourceTable(Options options, IndexFetcher* fetcher,
              std::shared_ptr<IndexCache> cache)
      : options_(std::move(options)),
        fetcher_(fetcher),
        index_cache_(std::move(cache)),
        ahead_(options_.max_waiting) {}

  // Opens the dataset, unless it is open. Errors: as IndexOpener::Open.
  absl::StatusOr<SourcePtr> Open(const DatasetInfo& dataset,
                                 const Node& reader);
  // A dataset of a job.
  struct Wanted {
    const DatasetInfo* dataset = nullptr;
    const Node* reader = nullptr;
  };
  // Returns sources that are opened later, unless their dataset is open.
  std::vector<std::shared_ptr<const LaterSource>> OpenLater(
      std::span<const Wanted> wanted);
  // Waits until each of them has been tried once, at most options.patience.
  void AwaitAttempts(
      std::span<const std::shared_ptr<const LaterSource>> sources) const;
  // Makes openings in progress end, and later ones fail. Waits for the threads.
  // REQUIRES: called before the last owner outside of the sources is gone.
  void Stop();

 private:
  using Later = std::shared_ptr<const LaterSource>;
  // Identifies a source: the data, and the reader's canonical text, which says
  // which parts of a record are read.
  using Key = std::pair<Digest, std::string>;

  // Sources that one thread opens ahead, and their datasets, with the bases.
  struct Group {
    std::vector<std::weak_ptr<const LaterSource>> sources;
    std::vector<std::shared_ptr<const DatasetInfo>> datasets;
  };
  static constexpr size_t kSourcesOfGroup = IndexFetcher::kMostTogether / 2;

  // Returns the dataset's source, and adds it to `group` if it was not known.
  Later Find(const DatasetInfo& dataset, const Node& reader, Group* group);
  absl::StatusOr<SourcePtr> OpenIndex(const DatasetInfo& dataset,
                                      const Node& reader);
  // Has the group opened ahead. If it finds no place, rows open its sources.
  void OpenAhead(Group group);
  // Starts a thread that opens ahead, if there may be more.
  void StartThread();
  void Work();
  // Fetches the indexes of a group into fetched_, as far as they come.
  void Fetch(const Group& group);

  const Options options_;
  IndexFetcher* const fetcher_;
  const std::shared_ptr<IndexCache> index_cache_;  // shared with sources
  BoundedQueue<Group> ahead_;
  StopSignal stop_;

  Mutex mu_;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  std::map<Key, std::weak_ptr<const LaterSource>> known_ ABSL_GUARDED_BY(mu_);
  // By the datasets' IDs: of groups that are being opened.
  std::map<std::string, FetchedBlocks> fetched_ ABSL_GUARDED_BY(mu_);
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mu_);
};

}  // namespace leat::worker
