// SPDX-License-Identifier: Apache-2.0
//
// Stages measures how much time threads spend in each kind of work.
//
// An enrolled thread is in one stage at a time. A scope enters a stage and
// returns to the previous one, so a stage's time excludes the stages entered
// inside it:
//
//   StageThread enrolled(&clocks);           // kNone
//   { StageScope read(Stage::kRead);         // kRead
//     { StageScope open(Stage::kOpen); }     // kOpen, then kRead again
//   }                                        // kNone
//
// Each thread counts for itself, without locks; Fold adds up the counts of all
// threads, including time in progress, so a read that hangs is visible while it
// hangs. A scope reads the clock twice. On a thread that is not enrolled it
// does nothing.
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

// The values are those of v1::Stage. A row passes through the stages in this
// order.
enum class Stage : uint8_t {
  kNone = 0,  // none of the following
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

// Returns "decode"; for kNone "other".
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

// Receives each stage that the calling thread has left. Its time includes the
// stages that were entered inside it.
class StageObserver {
 public:
  virtual ~StageObserver() = default;
  virtual void OnStage(Stage stage, MonotonicTime begin, MonotonicTime end) = 0;
};
// Sets the observer of the calling thread's stages; nullptr: none. Returns the
// previous one. A thread that is not enrolled has no stages.
StageObserver* ExchangeStageObserver(StageObserver* observer);

// The clock of one thread, which calls Enter; any thread may call AddTo.
class StageClock {
 public:
  explicit StageClock(const Clock& clock);
  // Returns the previous stage. `count`: the thread begins another item of
  // `stage`.
  Stage Enter(Stage stage, bool count);
  void AddTo(StageTimes* times) const;
  MonotonicTime Now() const { return clock_.Now(); }

 private:
  uint64_t SinceStart() const;

  const Clock& clock_;
  const MonotonicTime start_;
  // The stage in the low byte; above it the time at which it was entered, in ns
  // since the start. kChanging while totals change.
  std::atomic<uint64_t> state_{0};
  std::array<std::atomic<uint64_t>, kStages> busy_ns_{}, items_{};
};

// Returns the times of the calling thread if it is enrolled; otherwise zeros.
StageTimes OwnStages();

// Adds up the times of threads that do the same work. It is thread-safe and
// outlives their enrolments.
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

// Enrols the calling thread for the lifetime of this object.
// REQUIRES: the thread is not enrolled; the same thread destroys this object.
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

// Keeps the calling thread in `stage` for the lifetime of this object.
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
  MonotonicTime begin_{};  // set if it is observed
};

}  // namespace leat
