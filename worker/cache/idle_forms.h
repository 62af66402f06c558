// SPDX-License-Identifier: Apache-2.0
//
// IdleForms: makes forms in the time in which the worker owes no row, which the
// account of forms does not pay for.
//
//   row's decode ──Offer──► IdleWork ──Take──► clerk ──order──► makers
//   scheduler ──SetOwing──►    │                 ▲                │
//                              └──opened────────►└──────form──────┘
//
// The makers run at the lowest priority of the system (SCHED_IDLE),
// permanently: a thread without privileges cannot leave it again. Any other
// thread may keep them from a processor for long, so they never touch the
// cache, nor hold a lock of ours that a decode thread waits for (they hold
// those of the allocator, which are mostly per thread, for moments). The clerk,
// a thread of usual priority with little to do, takes the work, checks whether
// it is still wanted, gives orders to makers, and keeps what they made.
//
// When a row is requested, makers give up (FormMaker) and the form waits on.
// They begin when the worker has owed nothing for kLinger, so that short gaps
// between rows cost nothing.
//
// Makers have no descriptors but the standard streams, so that the sockets of a
// process that is killed close although a maker waits for a processor.
//
// SCHED_IDLE gives way only within one group of processes (a cgroup, or a
// session if the system makes groups of these). Elsewhere it shows: makers end
// forms while other processes alone could fill all processors (crowd.h). If
// that happens for more than one form in kForms, the makers rest for a hundred
// times as long as they ran for these, but at most kLongestRest: other
// processes lose about 1 %. A group's quota of processors is used up by every
// thread: if that happened while forms were made, the makers rest for a hundred
// of its usual periods.
//
// Memory: a form and a decoder's working memory per maker, in addition to the
// cache's limit, until the cache keeps the form. Thread-safe.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/clock.h"
#include "worker/cache/idle_work.h"
#include "worker/cache/sample_cache.h"
#include "worker/compute/wake_signal.h"
#include "worker/image/jpeg/decode/form_maker.h"

namespace leat::worker {

// IdlePace decides when makers rest. Thread-compatible.
class IdlePace {
 public:
  static constexpr int kForms = 16;
  static constexpr int kRestTimes = 100;
  static constexpr Duration kLongestRest = std::chrono::seconds(30);
  static constexpr Duration kThrottledRest = std::chrono::seconds(10);

  // A form was made, in `ran` of a processor's time; `crowded`: while other
  // processes wanted all processors.
  void Made(MonotonicTime now, Duration ran, bool crowded);
  // A quota of processors was used up meanwhile.
  void Throttled(MonotonicTime now) {
    rests_until_ = std::max(rests_until_, now + kThrottledRest);
  }
  MonotonicTime rests_until() const { return rests_until_; }

 private:
  // These count forms since the last decision on the pace.
  int forms_ = 0, crowded_ = 0;
  Duration ran_crowded_{0};
  MonotonicTime rests_until_ = MonotonicTime::min();
};

struct IdleFormsOptions {
  size_t makers = 1;  // 0: the owner calls MakeOne (tests)
  FormMakerFactory make_maker;
  // Returns whether other processes want all processors (Crowd::IsThere), and
  // how often this process has used up a quota of them; null: never.
  std::function<bool(size_t ours)> crowded;
  std::function<uint64_t()> times_throttled;
};

class IdleForms {
 public:
  static constexpr Duration kLinger = std::chrono::milliseconds(1);

  // `cache` and `work` outlive it. `thread_clock`: the processor time of the
  // calling thread.
  IdleForms(IdleFormsOptions options, SampleCache* cache, IdleWork* work,
            const Clock& clock, const Clock& thread_clock);
  ~IdleForms();  // stops

  // kResourceExhausted: a thread cannot be created.
  const absl::Status& started() const { return started_; }
  // Gives up forms that are being made, and waits for the threads. Idempotent.
  void Stop();

  // Makes a form on the calling thread. Returns false if there is no time, or
  // nothing to do.
  bool MakeOne(FormMaker* maker);

  struct Stats {
    uint64_t made = 0, given_up = 0;
    uint64_t failed = 0;  // for files that have none, or too large to be kept
    Duration took{0};     // of processors
    size_t waiting = 0;
  };
  Stats stats() const;

 private:
  struct Order {
    LackingForm form;
    StoredSample sample;  // keeps its bytes alive
    FormOrder what;
  };
  struct Maker {
    enum Phase : uint32_t { kOff, kFree, kOrdered, kDone };
    std::atomic<uint32_t> phase{kOff};
    WakeSignal ordered;
    // Owned by the clerk while kFree, and by the maker while kOrdered.
    std::optional<Order> order;
    absl::StatusOr<KeptForm> made = absl::UnknownError("not made");
    Duration ran{0};
    std::thread thread;
  };

  std::optional<Order> NextOrder();
  void Make(FormMaker* maker, Maker* at);
  // Takes the result of the maker's order.
  void Collect(Maker* maker);
  void CollectAll();
  uint64_t TimesThrottled() const {
    return options_.times_throttled ? options_.times_throttled() : 0;
  }
  // Gives orders to free makers. Returns the latest time to look again.
  MonotonicTime GiveOrders();
  void ClerkLoop();
  void MakerLoop(Maker* maker);

  const IdleFormsOptions options_;
  SampleCache& cache_;
  IdleWork& work_;
  const Clock &clock_, &thread_clock_;
  std::atomic<bool> stopping_{false}, refused_{false};
  TimedSignal stopped_;
  std::vector<std::unique_ptr<Maker>> makers_;
  std::thread clerk_;
  absl::Status started_;
  // These belong to the clerk.
  IdlePace pace_;
  uint64_t lingered_for_ = 0;  // of work_.closings()
  uint64_t throttled_ = 0;     // times, before the orders that are under way
  std::atomic<uint64_t> made_{0}, given_up_{0}, failed_{0};
  std::atomic<int64_t> took_ns_{0};
};

}  // namespace leat::worker
