// SPDX-License-Identifier: Apache-2.0
//
// A thread that changes its stage writes three times: a mark that it changes,
// the total, and the new stage. A reader that saw the same stage before and
// after reading the totals has consistent totals, without the piece in
// progress; otherwise it reads again:
//
//   writer   state = changing   busy[decode] += 5   state = (read, since 105)
//   reader   state, totals, state again: equal and not changing, or once more
#include "core/observe/stages.h"

#include <algorithm>
#include <utility>

namespace leat {
namespace {

constexpr uint64_t kChanging = 0xff;
// After these, the piece in progress is left out.
constexpr int kStageTries = 8;

constexpr std::array<std::string_view, kStages> kStageNames = {
    "other",  "list",  "open", "read",    "decode", "augment",
    "device", "group", "send", "receive", "train"};

thread_local StageClock* stage_clock = nullptr;
thread_local StageObserver* stage_observer = nullptr;

}  // namespace

std::string_view Name(Stage stage) {
  return kStageNames.at(static_cast<size_t>(stage));
}

StageClock::StageClock(const Clock& clock)
    : clock_(clock), start_(clock.Now()) {}

uint64_t StageClock::SinceStart() const {
  return static_cast<uint64_t>(
      std::max<int64_t>(0, Duration(clock_.Now() - start_).count()));
}

Stage StageClock::Enter(Stage stage, bool count) {
  const uint64_t now = SinceStart();
  const uint64_t state = state_.load(std::memory_order_relaxed);
  const uint64_t before = state & 0xff, since = state >> 8;
  state_.store(kChanging, std::memory_order_relaxed);
  // Only this thread writes these: no read-modify-write is needed.
  std::atomic<uint64_t>& busy = busy_ns_[before];
  busy.store(busy.load(std::memory_order_relaxed) + (now - since),
             std::memory_order_release);
  const auto entered = static_cast<size_t>(stage);
  if (count) {
    std::atomic<uint64_t>& items = items_[entered];
    items.store(items.load(std::memory_order_relaxed) + 1,
                std::memory_order_release);
  }
  state_.store(now << 8 | entered, std::memory_order_release);
  return static_cast<Stage>(before);
}

void StageClock::AddTo(StageTimes* times) const {
  StageTimes own;
  for (int attempt = 0; attempt < kStageTries; ++attempt) {
    const uint64_t state = state_.load(std::memory_order_acquire);
    for (size_t i = 0; i < kStages; ++i)
      own.all[i] = {busy_ns_[i].load(std::memory_order_acquire),
                    items_[i].load(std::memory_order_acquire)};
    const uint64_t now = SinceStart();
    if ((state & 0xff) == kChanging ||
        state != state_.load(std::memory_order_relaxed))
      continue;
    own.all[state & 0xff].busy_ns += now - std::min(now, state >> 8);
    break;
  }
  for (size_t i = 0; i < kStages; ++i) {
    times->all[i].busy_ns += own.all[i].busy_ns;
    times->all[i].items += own.all[i].items;
  }
}

StageTimes OwnStages() {
  StageTimes times;
  if (stage_clock != nullptr) stage_clock->AddTo(&times);
  return times;
}

StageTimes StageClocks::Fold() const {
  MutexLock lock(&mu_);
  StageTimes times = ended_;
  for (const StageClock* clock : running_) clock->AddTo(&times);
  return times;
}

StageThread::StageThread(StageClocks* clocks)
    : clocks_(clocks), own_(clocks->clock_) {
  stage_clock = &own_;
  MutexLock lock(&clocks_->mu_);
  clocks_->running_.push_back(&own_);
}

StageThread::~StageThread() {
  stage_clock = nullptr;
  MutexLock lock(&clocks_->mu_);
  own_.AddTo(&clocks_->ended_);
  std::erase(clocks_->running_, &own_);
}

StageObserver* ExchangeStageObserver(StageObserver* observer) {
  return std::exchange(stage_observer, observer);
}

StageScope::StageScope(Stage stage) : clock_(stage_clock), stage_(stage) {
  if (clock_ == nullptr) return;
  before_ = clock_->Enter(stage, /*count=*/true);
  observer_ = stage_observer;
  if (observer_ != nullptr) [[unlikely]]
    begin_ = clock_->Now();
}

StageScope::~StageScope() {
  if (clock_ == nullptr) return;
  clock_->Enter(before_, /*count=*/false);
  if (observer_ != nullptr) [[unlikely]]
    observer_->OnStage(stage_, begin_, clock_->Now());
}

}  // namespace leat
