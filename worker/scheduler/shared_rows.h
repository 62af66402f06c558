// SPDX-License-Identifier: Apache-2.0
//
// SharedRows: rows that several streams of a worker ask for are computed once.
//
// The first thread that asks for a row computes it. Threads that ask meanwhile
// leave a Waiter and go on; the first thread hands the row to them when it is
// finished. Whoever asks later gets a copy from a window of finished rows. A
// row that has left the window is computed again: sharing changes what rows
// cost, never which rows a stream gets.
//
// The window keeps rows only while it is of use: after two streams have asked
// for the same row, until kIdleRows rows have been computed for one stream
// each. So trainers on several hosts, which ask for different rows of a job,
// pay two short looks into a table for a row, and no copy. One stream alone
// pays nothing.
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

// What the windows of a worker may hold together.
struct SharedRowsBudget {
  explicit SharedRowsBudget(uint64_t bytes) : limit(bytes) {}
  const uint64_t limit;  // 0: no row is kept, but waiters are served
  std::atomic<uint64_t> bytes{0};
  std::atomic<uint32_t> windows{0};  // in use; each may hold an equal part
};

// The rows of works whose sharing_key() is the same.
class SharedRows {
 public:
  // Rows whose end is remembered.
  static constexpr size_t kMostEntries = 16'384;
  static constexpr uint64_t kIdleRows = 2048;

  // How a row ended, for those who wait for it.
  struct Outcome {
    const RowWork* work = nullptr;  // that computed it
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

  // What the caller of Begin does.
  enum class Claim {
    kAlone,    // computes the row; nobody else may want it, so no End
    kCompute,  // computes the row, and calls End however that ends
    kCopied,   // nothing: the row stands in its outputs
    kWaits,    // nothing: its waiter has been taken
  };

  // `row_bytes`: of all fields. The budget outlives this.
  SharedRows(size_t row_bytes, SharedRowsBudget* budget);
  ~SharedRows();

  // A stream that may ask for these rows is opened or closed.
  void AddStream();
  void RemoveStream();

  // `make_waiter` is called, with a lock held, if somebody computes the row; it
  // must not block.
  Claim Begin(const RowKey& key, RowOutputs outputs, MakeWaiter make_waiter);
  // The row of a kCompute has ended. Calls its waiters.
  void End(const RowKey& key, const Outcome& outcome);

 private:
  using Bytes = std::shared_ptr<const std::byte[]>;
  struct Entry {
    uint64_t number = 0;  // of its last computation
    bool computing = true;
    uint32_t taken = 0;  // by other streams
    Bytes bytes;         // null: not kept
    std::vector<std::unique_ptr<Waiter>> waiters;
  };
  // An entry as it was at `number`.
  using Place = std::pair<RowKey, uint64_t>;
  // Rows that were given up; to be freed without the lock.
  using Dropped = std::vector<Bytes>;

  uint64_t Part() const;  // of the budget
  // Two streams want the same row.
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
  // In the order of their numbers; may name entries that have changed since.
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
  // Those of works with this key; they live while somebody has them.
  std::shared_ptr<SharedRows> Get(const Digest& key, size_t row_bytes);
  uint64_t bytes() const { return budget_.bytes; }

 private:
  SharedRowsBudget budget_;
  Mutex mu_;
  std::map<Digest, std::weak_ptr<SharedRows>> rows_ ABSL_GUARDED_BY(mu_);
};

}  // namespace leat::worker
