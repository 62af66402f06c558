// SPDX-License-Identifier: Apache-2.0
//
// Watchdog calls a server periodically, as its clients would, and reports when
// it has not answered for too long. A process that lives and answers no call is
// worse than one that ends: a supervisor restarts the latter.
//
// If a call takes longer than its deadline permits, the process or the machine
// was suspended: this says nothing about the server, and earlier misses no
// longer count.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <thread>

#include "absl/status/statusor.h"
#include "core/clock.h"
#include "core/mutex.h"

namespace leat::rpc {

struct WatchdogOptions {
  Duration interval = std::chrono::seconds(10);  // also the deadline of a call
  int misses = 3;                                // in a row
  // Called on the watchdog's thread after each call that was not missed; empty:
  // not called.
  std::function<void()> on_alive;
};

// Deafness decides from the answers, and from their delays, whether the process
// is deaf. Thread-compatible.
class Deafness {
 public:
  enum class Answer { kCame, kMissed, kCouldNotAsk };
  struct Question {
    MonotonicTime due;      // when it should be sent
    MonotonicTime started;  // when it was sent
    MonotonicTime ended;    // when the answer, or its absence, was known
    Answer answer = Answer::kCame;
  };

  explicit Deafness(const WatchdogOptions& options) : options_(options) {}
  // Returns true if `misses` questions in a row were not answered.
  bool Add(const Question& question);
  int misses() const { return misses_; }

 private:
  const WatchdogOptions options_;
  int misses_ = 0;
};

class Watchdog {
 public:
  // Sends a question, and returns by the deadline.
  using Ask = std::function<Deafness::Answer(MonotonicTime deadline)>;

  // `on_deaf` is called once, on the watchdog's thread, which then ends.
  // kResourceExhausted: no thread is available.
  static absl::StatusOr<std::unique_ptr<Watchdog>> Start(
      const WatchdogOptions& options, Ask ask, std::function<void()> on_deaf);
  // Waits for the question in progress.
  ~Watchdog();
  // Returns the current number of consecutive misses.
  int missed() const { return missed_; }

 private:
  Watchdog(const WatchdogOptions& options, Ask ask,
           std::function<void()> on_deaf);
  void Loop();
  // Returns false if it is to stop.
  bool AwaitUntil(MonotonicTime due);

  const WatchdogOptions options_;
  const Ask ask_;
  const std::function<void()> on_deaf_;
  std::thread thread_;
  std::atomic<int> missed_ = 0;
  Mutex mu_;
  CondVar stopping_;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace leat::rpc
