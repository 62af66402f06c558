// SPDX-License-Identifier: Apache-2.0
//
// SharedRows: rows that several streams of a worker request are computed once.
//
// The first thread that needs a row computes it. Threads that need it meanwhile
// leave a Waiter and continue; the first thread hands the row to them when it
// is finished. Later threads get a copy from a window of finished rows. A row
// that has left the window is computed again: sharing changes what rows cost,
// never which rows a stream gets.
//
// The window keeps rows only while this helps: from the moment that two streams
// have requested the same row, until kIdleRows rows in sequence have each been
// computed for only one stream. So trainers on several hosts, which request
// different rows of a job, pay two short table look-ups per row, and no copy. A
// single stream pays nothing.
//
// A row is given up when as many streams have it as are open, or when the
// window is full: the oldest first. All windows of a worker share one limit of
// bytes (SharedRowsBudget).
//
// Thread-safe. No lock is held while a row is computed, copied or handed over.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "core/hash.h"
#include "core/mutex.h"
#include "worker/compute/row_work.h"

namespace leat::worker {

using RowOutputs = std::span<const std::span<std::byte>>;

// The memory that the windows of a worker share.
struct SharedRowsBudget {
  explicit SharedRowsBudget(uint64_t bytes) : limit(bytes) {}
  const uint64_t limit;  // 0: no row is kept, but waiters are served
  std::atomic<uint64_t> bytes{0};
  std::atomic<uint32_t> windows{0};  // in use; each may hold an equal part
};

// The rows of works whose sharing_key() is the same.
class SharedRows {
 public:
  // The most rows whose end is remembered.
  static constexpr size_t kMostEntries = 16'384;
  static constexpr uint64_t kIdleRows = 2048;

  // How a row ended, for its waiters.
  struct Outcome {
    const RowWork* work = nullptr;  // the work that computed it
    absl::Status status;
    bool sound = false;             // the row holds its own sample (RowOf::bad)
    RowOutputs outputs;             // valid during the call
    ThreadState* thread = nullptr;  // the calling thread's
  };
  class Waiter {
   public:
    virtual ~Waiter() = default;
    // Called once, without locks, by the thread that computed the row.
    virtual void OnRow(const Outcome& outcome) = 0;
  };
  using MakeWaiter = absl::FunctionRef<std::unique_ptr<Waiter>()>;

  // Tells the caller of Begin what to do.
  enum class Claim {
    kAlone,    // compute the row; no other wants it, so no End
    kCompute,  // compute the row, and call End however that ends
    kCopied,   // nothing: the row is in its outputs
    kWaits,    // nothing: its waiter has been taken
  };

  // `row_bytes` is the sum over all fields. The budget outlives this.
  SharedRows(size_t row_bytes, SharedRowsBudget* budget);
  ~SharedRows();

  // A stream that may request these rows is opened or closed.
  void AddStream();
  void RemoveStream();

  // Calls `make_waiter`, with a lock held, if another thread computes the row;
  // it must not block.
  Claim Begin(const RowKey& key, RowOutputs outputs, MakeWaiter make_waiter);
  // The row of a kCompute has ended. Calls its waiters.
  void End(const RowKey& key, const Outcome& outcome);

 private:
  using Bytes = std::shared_ptr<const std::byte[]>;
  struct Entry {
    uint64_t number = 0;  // of its last computation
    bool computing = true;
    uint32_t taken = 0;  // by other streams
    Bytes bytes;         // nullptr: not kept
    std::vector<std::unique_ptr<Waiter>> waiters;
  };
  // An entry as it was at `number`.
  using Place = std::pair<RowKey, uint64_t>;
  // Rows that were given up; to be freed without the lock.
  using Dropped = std::vector<Bytes>;

  uint64_t Part() const;  // of the budget
  // Notes that two streams want the same row.
  void NoteUse() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void StopKeeping(Dropped* dropped) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Keep(const RowKey& key, Entry& entry, Bytes bytes, Dropped* dropped)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Drop(Entry& entry, Dropped* dropped) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Forgets the oldest entries until there is room for one more.
  void MakeRoom(Dropped* dropped) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Bytes Copy(RowOutputs outputs) const;

  const size_t row_bytes_;
  SharedRowsBudget* const budget_;
  std::atomic<uint32_t> streams_{0};

  Mutex mu_;
  absl::flat_hash_map<RowKey, Entry> entries_ ABSL_GUARDED_BY(mu_);
  // Ordered by number; may name entries that have changed since.
  std::deque<Place> order_ ABSL_GUARDED_BY(mu_), kept_ ABSL_GUARDED_BY(mu_);
  uint64_t next_number_ ABSL_GUARDED_BY(mu_) = 0;
  bool keeping_ ABSL_GUARDED_BY(mu_) = false;
  uint64_t rows_since_use_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t held_bytes_ ABSL_GUARDED_BY(mu_) = 0;
};

// A worker's SharedRows, by sharing key. Thread-safe.
class SharedRowsTable {
 public:
  explicit SharedRowsTable(uint64_t limit_bytes) : budget_(limit_bytes) {}
  // Returns the SharedRows of works with this key, which live as long as they
  // are referenced.
  std::shared_ptr<SharedRows> Get(const Digest& key, size_t row_bytes);
  uint64_t bytes() const { return budget_.bytes; }

 private:
  SharedRowsBudget budget_;
  Mutex mu_;
  std::map<Digest, std::weak_ptr<SharedRows>> rows_ ABSL_GUARDED_BY(mu_);
};

}  // namespace leat::worker
