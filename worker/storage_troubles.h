// SPDX-License-Identifier: Apache-2.0
//
// StorageTroubles: which datasets' roots this worker cannot read by its own
// trouble (Blame::kWorker), for the coordinator, and so that rows of such a
// root are answered at once rather than each after its own tries.
//
//   time   0 s          1 s                  2 s            3 s
//          read fails   read fails:          a probe fails  a probe succeeds:
//          (tried on)   in trouble from now                 in trouble no more
//
// A root is in trouble when reads of it have failed for a second or more and
// none of them has succeeded meanwhile: one bad block of a disk is not enough,
// as long as other records are read. Any answer about a record (also that it is
// gone, or bad) is a success. While a root is in trouble one read a second is
// let through; where nobody asks for rows, since the coordinator gives this
// worker no shards then, a thread of this object reads one of its records, each
// time another one.
//
// Thread-safe; nothing is read while a lock is held.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "core/clock.h"
#include "core/mutex.h"
#include "worker/source/source.h"

namespace leat::worker {

class StorageTroubles {
 public:
  static constexpr size_t kMaxRoots = 16;  // more are tried like sound ones
  static constexpr Duration kInterval = std::chrono::seconds(1);

  // `clock` outlives it. Without Start nothing is read by itself.
  explicit StorageTroubles(const Clock& clock = Clock::Real())
      : clock_(clock) {}
  // Waits for the read that the thread is at.
  ~StorageTroubles();

  // kResourceExhausted: no thread is to be had.
  absl::Status Start();

  // Whether a record of `root` may be read now. kUnavailable, of kWorker: it
  // would only fail again (says how it fails, and since when).
  absl::Status Admit(const std::string& root);
  // How a read of it went. `status`: its blame counts; none is a success.
  // `source` has the root, and `sample` is what was read of it.
  void Ended(const std::string& root, const absl::Status& status,
             const std::shared_ptr<const Source>& source, uint64_t sample);

  // Reads a record of each root whose time has come; when to look again. What
  // the thread does.
  MonotonicTime Probe();

  struct Trouble {
    std::string root;
    std::string error;
    Duration lasting{};  // since the first failure without a success
  };
  // Those of roots in trouble: kMaxRoots at most.
  std::vector<Trouble> Lasting() const;

 private:
  struct Entry {
    MonotonicTime first;  // failure
    MonotonicTime last;
    MonotonicTime next;  // when a read is let through again
    std::string error;
    std::weak_ptr<const Source> source;
    uint64_t sample = 0;
  };
  static bool InTrouble(const Entry& entry) {
    return entry.last - entry.first >= kInterval;
  }
  void Fail(const std::string& root, const absl::Status& status,
            const std::shared_ptr<const Source>& source, uint64_t sample);
  void Run();

  const Clock& clock_;
  std::atomic<size_t> roots_{0};  // entries: reads of sound roots take no lock
  mutable Mutex mu_;
  CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::map<std::string, Entry> entries_ ABSL_GUARDED_BY(mu_);
  std::thread thread_;
};

}  // namespace leat::worker
