// SPDX-License-Identifier: Apache-2.0
//
// StorageFailures records which datasets this worker cannot read by its own
// fault (Fault::kWorker). The coordinator learns of them, and their rows are
// answered at once rather than each after its own tries.
//
//   time   0 s          1 s                  2 s            3 s
//          read fails   read fails:          a probe fails  a probe succeeds:
//          (tried on)   failing from now on                 failing no more
//
// A dataset is failing when reads of it have failed for a second or more and
// none of them has succeeded meanwhile: one bad block of a disk is not enough,
// as long as other records are read. Any answer about a record (also that it is
// gone, or bad) is a success. Each dataset is judged by its own reads: of two
// in one bucket one may be forbidden and the other not.
//
// While a dataset is failing, one read per second is let through. If no rows of
// it are requested, because the coordinator gives this worker none of its
// shards, a thread of this object also reads one of its records each second, a
// different one each time.
//
// Thread-safe; nothing is read while a lock is held.
#pragma once

#include <atomic>
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "core/clock.h"
#include "core/hash.h"
#include "core/mutex.h"
#include "worker/source/source.h"

namespace leat::worker {

class StorageFailures {
 public:
  static constexpr size_t kMaxDatasets = 64;  // more are tried like sound ones
  static constexpr Duration kInterval = std::chrono::seconds(1);

  // `clock` outlives it. Without Start the object itself reads nothing.
  explicit StorageFailures(const Clock& clock = Clock::Real())
      : clock_(clock) {}
  // Waits for the thread's current read.
  ~StorageFailures();

  // kResourceExhausted: the thread cannot be created.
  absl::Status Start();

  struct Dataset {
    std::string root;  // RootOf its reader; empty: it is in no storage
    Digest fingerprint{};
    friend auto operator<=>(const Dataset&, const Dataset&) = default;
  };

  // Returns OK if a record of it may be read now. kUnavailable, with kWorker:
  // the read would only fail again (says how it fails, and since when).
  absl::Status Admit(const Dataset& dataset);
  // Counts the end of a read. `status`: its fault counts; without one it is a
  // success. `source` has the dataset, and `sample` is the sample that was
  // read.
  void Ended(const Dataset& dataset, const absl::Status& status,
             const std::shared_ptr<const Source>& source, uint64_t sample);

  // Reads a record of each dataset whose time has come; returns when to look
  // again. The thread calls it.
  MonotonicTime Probe();

  // The failing datasets of one root.
  struct Failure {
    std::string root;
    std::string error;   // of the one that fails the longest
    Duration lasting{};  // since its first failure without a success
    std::vector<Digest> fingerprints;
  };
  // Returns one entry per root, with at most kMaxDatasets fingerprints.
  std::vector<Failure> Lasting() const;

 private:
  struct Entry {
    MonotonicTime first;  // failure
    MonotonicTime last;
    MonotonicTime next_read;   // when one is let through again
    MonotonicTime next_probe;  // when the thread reads one
    std::string error;
    std::weak_ptr<const Source> source;
    uint64_t sample = 0;
  };
  static bool Failing(const Entry& entry) {
    return entry.last - entry.first >= kInterval;
  }
  void Fail(const Dataset& dataset, const absl::Status& status,
            const std::shared_ptr<const Source>& source, uint64_t sample);
  void Run();

  const Clock& clock_;
  // The number of entries: while all datasets are sound their reads take no
  // lock.
  std::atomic<size_t> failing_{0};
  mutable Mutex mu_;
  CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::map<Dataset, Entry> entries_ ABSL_GUARDED_BY(mu_);
  std::thread thread_;
};

}  // namespace leat::worker
