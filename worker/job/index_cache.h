// SPDX-License-Identifier: Apache-2.0
//
// IndexCache: opened blocks of indexes; keeps the most recently used, within a
// bound.
//
//   worker, lists             coordinator               worker, reads a row
//   block ── PutIndexBlock ──► file ── GetIndexBlock ──► IndexCache ─► Source
//
// A block is fetched when a row needs it, once however many rows wait, and its
// hash is checked. It counts as its bytes plus 5 per sample: about its size
// when it is opened. A block that is evicted while it is read from lives until
// that read ends. Only threads that read wait, for at most `wait`.
//
// Errors of Get are Unavailable and transient (core/cluster/fault.h): another
// worker may have the block, so its rows are requested from the next owner, and
// no sample is bad because of it.
//
// Thread-safe; nothing is fetched or opened with the lock held.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/clock.h"
#include "core/mutex.h"
#include "core/plan/index_blocks.h"
#include "worker/source/source.h"

namespace leat::worker {

// Fetches blocks.
class BlockFetcher {
 public:
  virtual ~BlockFetcher() = default;
  // Returns at most `block.bytes` bytes, which are unchecked. `unusable`: why
  // the previous bytes could not be used, for the coordinator, which then
  // checks what it keeps; empty: nothing was wrong. kUnavailable,
  // kDeadlineExceeded: try again. Blocks until `deadline` at most.
  virtual absl::StatusOr<std::string> FetchBlock(const IndexBlock& block,
                                                 const std::string& unusable,
                                                 MonotonicTime deadline) = 0;
};

// Calls FetchBlock, again with backoff until the deadline. Reports bytes with
// another hash to the coordinator, which sends them once more. `unusable`: as
// for FetchBlock. `pause` returns false to give up. kDataLoss: wrong bytes came
// again; otherwise the last of FetchBlock's errors.
absl::StatusOr<std::string> FetchSoundBlock(
    BlockFetcher* fetcher, const IndexBlock& block, MonotonicTime deadline,
    const std::function<bool(Duration)>& pause, std::string unusable = {});
// Does the same for a block of a dataset's index. Errors, with the block's
// name, are Unavailable and transient: a block that the coordinator has lost
// comes back when the dataset has been listed again.
absl::StatusOr<std::string> FetchWholeBlock(
    BlockFetcher* fetcher, const IndexBlock& block, MonotonicTime deadline,
    const std::function<bool(Duration)>& pause, std::string unusable = {});

struct IndexCacheOptions {
  uint64_t max_bytes = 512ull << 20;
  size_t max_blocks = 1024;
  int fetches = 4;  // at a time
  Duration wait = std::chrono::seconds(5);
};

class IndexCache {
 public:
  using Opened = std::shared_ptr<const Source>;
  using Open = std::function<absl::StatusOr<Opened>(const std::string& bytes)>;
  struct Stats {
    uint64_t bytes = 0;  // counted as above
    uint64_t blocks = 0;
    uint64_t fetched_total = 0;
  };

  // `fetcher` outlives all Gets.
  IndexCache(const IndexCacheOptions& options, BlockFetcher* fetcher)
      : options_(options), fetcher_(fetcher) {}

  // Returns a number for the blocks of one source.
  uint64_t NewSource();
  // Returns block `number` of a source.
  absl::StatusOr<Opened> Get(uint64_t source, size_t number,
                             const IndexBlock& block, const Open& open);
  // Returns nullptr if the block is not here.
  Opened Peek(uint64_t source, size_t number);
  // Forgets the blocks of a source that is gone.
  void Forget(uint64_t source);
  // Ends all waits, and makes later ones end at once.
  void Stop();
  Stats stats();

 private:
  using Key = std::pair<uint64_t, size_t>;
  struct Entry {
    Opened opened;  // nullptr: a thread fetches it
    uint64_t cost = 0;
    std::list<Key>::iterator place;  // in used_, once it is opened
  };

  absl::StatusOr<Opened> Fetch(const IndexBlock& block, const Open& open,
                               MonotonicTime deadline);
  bool Pause(Duration duration);
  // Makes room; returns the sources to be destroyed without the lock.
  std::vector<Opened> Evict() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const IndexCacheOptions options_;
  BlockFetcher* const fetcher_;

  Mutex mu_;
  CondVar changed_;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  int fetching_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t next_source_ ABSL_GUARDED_BY(mu_) = 1;
  uint64_t bytes_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t fetched_total_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<Key, Entry> entries_ ABSL_GUARDED_BY(mu_);
  std::list<Key> used_ ABSL_GUARDED_BY(mu_);  // last used first
};

}  // namespace leat::worker
