// SPDX-License-Identifier: Apache-2.0
//
// Stages: where the time of threads goes, told apart by what they do.
//
// A thread that is enrolled is in one stage at a time. A scope enters a stage
// and goes back to the one before, so a stage's time has none of those that are
// entered inside it:
//
//   StageThread enrolled(&clocks);           // kNone
//   { StageScope read(Stage::kRead);         // kRead
//     { StageScope open(Stage::kOpen); }     // kOpen, then kRead again
//   }                                        // kNone
//
// Each thread counts for itself, without locks; Fold adds up what all of them
// have counted, that which is under way included, so a read that hangs is seen
// while it hangs. A scope reads the clock twice. On a thread that is not
// enrolled it does nothing.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/clock.h"
#include "core/mutex.h"

namespace leat {

// The values are the wire's (v1::Stage). A row passes through them in this
// order.
enum class Stage : uint8_t {
  kNone = 0,  // none of these
  kList = 1,
  kOpen = 2,
  kRead = 3,
  kDecode = 4,
  kAugment = 5,
  kDevice = 6,
  kGroup = 7,
  kSend = 8,
  kReceive = 9,
  kTrain = 10,
};
inline constexpr size_t kStages = 11;

// "decode"; of kNone "other".
std::string_view Name(Stage stage);

struct StageTimes {
  struct One {
    uint64_t busy_ns = 0;
    uint64_t items = 0;  // how often it was entered
  };
  const One& of(Stage stage) const { return all[static_cast<size_t>(stage)]; }
  One& of(Stage stage) { return all[static_cast<size_t>(stage)]; }

  std::array<One, kStages> all{};
};

// Is told each stage that the calling thread has left, with the time of those
// that were entered inside it.
class StageObserver {
 public:
  virtual ~StageObserver() = default;
  virtual void OnStage(Stage stage, MonotonicTime begin, MonotonicTime end) = 0;
};
// Sets who is told of the calling thread's stages, null: nobody; returns who
// was. A thread that is not enrolled has no stages.
StageObserver* ExchangeStageObserver(StageObserver* observer);

// One thread's. Enter by that thread; AddTo by any.
class StageClock {
 public:
  explicit StageClock(const Clock& clock);
  // Returns the stage that it was in. `count`: it is another item of `stage`.
  Stage Enter(Stage stage, bool count);
  void AddTo(StageTimes* times) const;
  MonotonicTime Now() const { return clock_.Now(); }

 private:
  uint64_t SinceStart() const;

  const Clock& clock_;
  const MonotonicTime start_;
  // The stage in the low byte; above it, when it was entered, in ns since the
  // start. While totals change: kChanging.
  std::atomic<uint64_t> state_{0};
  std::array<std::atomic<uint64_t>, kStages> busy_ns_{}, items_{};
};

// Of the calling thread, while it is enrolled; else nothing.
StageTimes OwnStages();

// Adds up where the time of threads that do the same work goes. It is
// thread-safe and outlives their enrolments.
class StageClocks {
 public:
  explicit StageClocks(const Clock& clock) : clock_(clock) {}
  // Returns the sum over all threads that are, or were, enrolled.
  StageTimes Fold() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  friend class StageThread;

  const Clock& clock_;
  mutable Mutex mu_;
  std::vector<const StageClock*> running_ ABSL_GUARDED_BY(mu_);
  StageTimes ended_ ABSL_GUARDED_BY(mu_);
};

// Enrols the calling thread for as long as it lives.
// REQUIRES: the thread is not enrolled; it also destroys this.
class StageThread {
 public:
  explicit StageThread(StageClocks* clocks);
  ~StageThread();
  StageThread(const StageThread&) = delete;
  StageThread& operator=(const StageThread&) = delete;

 private:
  StageClocks* const clocks_;
  StageClock own_;
};

// The calling thread is in `stage` for as long as this lives.
class StageScope {
 public:
  explicit StageScope(Stage stage);
  ~StageScope();
  StageScope(const StageScope&) = delete;
  StageScope& operator=(const StageScope&) = delete;

 private:
  StageClock* const clock_;  // null: the thread is not enrolled
  Stage stage_;
  Stage before_ = Stage::kNone;
  StageObserver* observer_ = nullptr;
  MonotonicTime begin_{};  // if it is observed
};

}  // namespace leat
