// SPDX-License-Identifier: Apache-2.0
//
// IdleForms: makes forms in the time in which the worker owes no row, which the
// account of forms does not pay for.
//
//   row's decode ──Offer──► IdleWork ──Take──► clerk ──order──► makers
//   scheduler ──SetOwing──►    │                 ▲                │
//                              └──opened────────►└──────form──────┘
//
// The makers run at the lowest priority of the system (SCHED_IDLE), for good:
// a thread without rights cannot leave it again. Anybody may keep them from a
// processor for long, so they never touch the cache, nor hold a lock of ours
// that a decode thread waits for (those of the allocator, which are mostly a
// thread's own, they hold for moments). The clerk, a thread of usual priority
// with next to nothing to do, takes the work, looks whether it is still wanted,
// gives orders to makers, and keeps what they made.
//
// When a row is asked for, makers give up (FormMaker) and the form waits on.
// They begin when the worker has owed nothing for kLinger, so that short gaps
// between rows cost nothing.
//
// SCHED_IDLE is less than others within one group of processes only (a cgroup,
// or a session where the system makes groups of these). So makers that are kept
// from processors for more than an eighth of their time take it that others
// want them: all rest for a hundred times as long as they were kept, and then
// half as many work. After some forms that nobody disturbed one more works
// again; where that was too many, it is tried less often.
//
// Memory: a form and a decoder's working memory for each maker, beside the
// cache's limit, until the cache keeps the form.
// Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/clock.h"
#include "core/mutex.h"
#include "worker/idle_work.h"
#include "worker/image/jpeg_forms/form_maker.h"
#include "worker/sample_cache.h"
#include "worker/wake_signal.h"

namespace leat::worker {

// IdlePace decides how many makers work, from kForms forms at a time.
// Thread-compatible.
class IdlePace {
 public:
  static constexpr int kForms = 16;
  static constexpr int kRestTimes = 100;
  static constexpr Duration kLongestRest = std::chrono::seconds(30);
  // Times kForms forms that are undisturbed, before one more works.
  static constexpr int kCalm = 4, kMostCalm = 1024;

  explicit IdlePace(size_t makers) : most_(makers), makers_(makers) {}
  // A form took so long, of which its thread was on a processor for `ran`.
  void Made(MonotonicTime now, Duration took, Duration ran);
  // How many may work now: 0 until `rests_until`.
  size_t makers(MonotonicTime now) const {
    return now < rests_until_ ? 0 : makers_;
  }
  MonotonicTime rests_until() const { return rests_until_; }

 private:
  const size_t most_;
  size_t makers_;
  // Of forms since it was decided last.
  int forms_ = 0;
  Duration took_{0}, kept_from_{0};
  int calm_ = 0, calm_needed_ = kCalm;
  MonotonicTime rests_until_ = MonotonicTime::min();
};

struct IdleFormsOptions {
  size_t makers = 1;  // 0: the owner calls MakeOne (tests)
  FormMakerFactory make_maker;
};

class IdleForms {
 public:
  static constexpr Duration kLinger = std::chrono::milliseconds(1);

  // `cache` and `work` outlive it. `thread_clock`: the processor time of the
  // thread that asks.
  IdleForms(IdleFormsOptions options, SampleCache* cache, IdleWork* work,
            const Clock& clock, const Clock& thread_clock);
  ~IdleForms();  // stops

  // kResourceExhausted: a thread cannot be had.
  const absl::Status& started() const { return started_; }
  // Gives up what is being made, and waits for the threads. Idempotent.
  void Stop();

  // Makes a form on the calling thread. False: there is no time, or nothing to
  // do.
  bool MakeOne(FormMaker* maker);

  struct Stats {
    uint64_t made = 0, given_up = 0;
    uint64_t failed = 0;  // of files that have none, or too large to be kept
    Duration took{0};     // of processors
    size_t waiting = 0;
  };
  Stats stats() const;

 private:
  struct Order {
    LackingForm form;
    StoredSample sample;  // its bytes
    FormOrder what;
  };
  struct Maker {
    enum Phase : uint32_t { kOff, kFree, kOrdered, kDone };
    std::atomic<uint32_t> phase{kOff};
    WakeSignal ordered;
    // The clerk's while kFree, and the maker's while kOrdered.
    std::optional<Order> order;
    absl::StatusOr<KeptForm> made = absl::UnknownError("not made");
    Duration took{0}, ran{0};
    std::thread thread;
  };

  std::optional<Order> NextOrder();
  void Make(FormMaker* maker, Maker* at);
  // What became of the maker's order.
  void Collect(Maker* maker);
  void CollectAll();
  // Gives orders to free makers. When to look again, whatever happens.
  MonotonicTime GiveOrders();
  void ClerkLoop();
  void MakerLoop(Maker* maker);

  const IdleFormsOptions options_;
  SampleCache& cache_;
  IdleWork& work_;
  const Clock &clock_, &thread_clock_;
  std::atomic<bool> stopping_{false};
  TimedSignal stopped_;
  std::vector<std::unique_ptr<Maker>> makers_;
  std::thread clerk_;
  absl::Status started_;
  IdlePace pace_;              // the clerk's
  uint64_t lingered_for_ = 0;  // the clerk's: of work_.closings()
  std::atomic<uint64_t> made_{0}, given_up_{0}, failed_{0};
  std::atomic<int64_t> took_ns_{0};
};

}  // namespace leat::worker
