// SPDX-License-Identifier: Apache-2.0
//
// IndexCache: blocks of indexes, opened; those used last, under a bound.
//
//   worker, lists             coordinator               worker, reads a row
//   block ── PutIndexBlock ──► file ── GetIndexBlock ──► IndexCache ─► Source
//
// A block is fetched when a row needs it, once however many rows wait, and its
// hash is checked. It counts as its bytes and 5 for each sample: about what it
// takes when it is opened.
// One that is thrown out while it is read from lives until that read ends.
// Who waits is a thread that reads; it waits `wait` at most.
//
// Errors of Get are Unavailable and transient (core/cluster/fault.h): another
// worker may have the block, so that its rows are asked of the next owner, and
// no sample is bad for it.
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

// Where blocks come from.
class BlockFetcher {
 public:
  virtual ~BlockFetcher() = default;
  // At most `block.bytes` bytes, which nobody has looked at. `unusable`: why
  // those that came before could not be used, for the coordinator, which looks
  // at what it keeps; empty: nothing was wrong. kUnavailable,
  // kDeadlineExceeded: try again. Blocks until `deadline` at most.
  virtual absl::StatusOr<std::string> FetchBlock(const IndexBlock& block,
                                                 const std::string& unusable,
                                                 MonotonicTime deadline) = 0;
};

// FetchBlock, tried again with backoff until the deadline. Bytes of another
// hash are told to the coordinator, which gives them once more. `unusable`: as
// FetchBlock's. `pause` returns false to give up. kDataLoss: they came again;
// otherwise the last of FetchBlock's errors.
absl::StatusOr<std::string> FetchSoundBlock(
    BlockFetcher* fetcher, const IndexBlock& block, MonotonicTime deadline,
    const std::function<bool(Duration)>& pause, std::string unusable = {});
// The same of a dataset's index. Errors, with the block's name, are Unavailable
// and transient: a block that the coordinator has lost comes back when the
// dataset was listed again.
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

  // A number for the blocks of one source.
  uint64_t NewSource();
  // Block `number` of a source.
  absl::StatusOr<Opened> Get(uint64_t source, size_t number,
                             const IndexBlock& block, const Open& open);
  // nullptr: it is not here.
  Opened Peek(uint64_t source, size_t number);
  // The source is gone.
  void Forget(uint64_t source);
  // Ends all waits, and those to come at once.
  void Stop();
  Stats stats();

 private:
  using Key = std::pair<uint64_t, size_t>;
  struct Entry {
    Opened opened;  // nullptr: somebody fetches it
    uint64_t cost = 0;
    std::list<Key>::iterator place;  // in used_, once it is opened
  };

  absl::StatusOr<Opened> Fetch(const IndexBlock& block, const Open& open,
                               MonotonicTime deadline);
  bool Pause(Duration duration);
  // Makes room; returns what is to be destroyed without the lock.
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
