// SPDX-License-Identifier: Apache-2.0
//
// RunTasks: runs HTTP tasks with their tries: a bounded number at a time, again
// after a jittered wait when a try fails temporarily, with a second request
// when the first is late, all of it before a deadline.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "core/mutex.h"
#include "worker/source/storage/base/clock.h"
#include "worker/source/storage/base/config.h"
#include "worker/source/storage/http/http.h"
#include "worker/source/storage/http/late_ranges.h"
#include "worker/source/storage/http/waits.h"
#include "worker/source/storage/remote/verdict.h"

namespace leat::worker {

// Ends the calls that are under way, and later ones. Thread-safe.
class CallStop {
 public:
  void Stop();
  bool stopped() const;
  // Registers `wake` to be called when it stops, if it has not yet. It may be
  // called once more after Remove, from Stop.
  uint64_t Add(std::function<void()> wake);
  void Remove(uint64_t id);

 private:
  mutable Mutex mu_;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  uint64_t last_id_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<uint64_t, std::function<void()>> wakes_ ABSL_GUARDED_BY(mu_);
};

// The parts that all calls of a process share. Thread-safe.
struct CallContext {
  const StorageConfig& config;
  HttpTransport& transport;
  StorageClock& clock;
  const std::function<uint64_t()>& random;
  LateRanges& late;
  std::atomic<uint64_t>& requests;
  std::atomic<uint64_t>& retries;
  std::atomic<uint64_t>& hedges;
  CallStop& stop;
  StorageWaits& waits;
};

// One thing to get from a server. Only the thread that runs it uses it.
class HttpTask {
 public:
  virtual ~HttpTask() = default;
  // Returns for example "s3://b/k: reading 10 bytes at 5".
  virtual std::string Describe() const = 0;
  // Returns the next try. With `other` (hedge_bytes() of memory) it is a second
  // request for the same while the first continues, and its bytes go to
  // `other`.
  virtual HttpRequest Next(std::span<std::byte> other) = 0;
  // 0: it is not requested twice.
  virtual size_t hedge_bytes() const = 0;
  // Judges the answer to the last Next, with the same `other`.
  virtual Verdict Take(const HttpResponse& response,
                       std::span<const std::byte> other) = 0;
  // New credentials may help: returns whether there are any.
  virtual bool Refresh() = 0;
};

// Returns how the run ended: kDone, or the first task's verdict that was
// kFailed or that no time or no try was left for. kCancelled: `stop`.
Verdict RunTasks(const CallContext& context,
                 std::span<const std::unique_ptr<HttpTask>> tasks);

}  // namespace leat::worker
