// SPDX-License-Identifier: Apache-2.0
//
// Watchdog: asks a server again and again, as its clients would, and says when
// it has not answered for too long. A process that lives and answers nobody is
// worse than one that ends: a supervisor starts the latter again.
//
// A question that takes longer than its deadline allows was asked by a process
// that was stopped, or on a machine that was: it says nothing about the server,
// and the misses before it do not count any more.
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
  Duration interval = std::chrono::seconds(10);  // also a question's deadline
  int misses = 3;                                // in a row
  // Is told on the watchdog's thread after each question that was not missed;
  // empty: nobody is.
  std::function<void()> on_alive;
};

// Deafness: decides from the answers, and from how late they are, whether the
// process is deaf. Thread-compatible.
class Deafness {
 public:
  enum class Answer { kCame, kMissed, kCouldNotAsk };
  struct Question {
    MonotonicTime due;      // when it was to be asked
    MonotonicTime started;  // when it was
    MonotonicTime ended;    // when the answer, or its want, was known
    Answer answer = Answer::kCame;
  };

  explicit Deafness(const WatchdogOptions& options) : options_(options) {}
  // True: nobody has been answered for `misses` questions in a row.
  bool Add(const Question& question);
  int misses() const { return misses_; }

 private:
  const WatchdogOptions options_;
  int misses_ = 0;
};

class Watchdog {
 public:
  // Asks, and returns by the deadline.
  using Ask = std::function<Deafness::Answer(MonotonicTime deadline)>;

  // `on_deaf` is called once, on the watchdog's thread, which ends then.
  // kResourceExhausted: no thread can be had.
  static absl::StatusOr<std::unique_ptr<Watchdog>> Start(
      const WatchdogOptions& options, Ask ask, std::function<void()> on_deaf);
  // Waits for the question that is being asked.
  ~Watchdog();
  // In a row, until now.
  int missed() const { return missed_; }

 private:
  Watchdog(const WatchdogOptions& options, Ask ask,
           std::function<void()> on_deaf);
  void Loop();
  // False: to stop.
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
