// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu/resources/watch.h"

#include <algorithm>

#include "fmt/format.h"

namespace leat::worker {
namespace {

// How often the thread checks while a turn is open, in the machine's time, not
// the clock's.
constexpr Duration kLook = std::chrono::milliseconds(250);

double SecondsOf(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

GpuWatch::Turn::Turn(GpuWatch* watch, const char* what)
    : watch_(*watch), what_(what), since_(watch->clock_.Now()) {
  MutexLock lock(&watch_.mu_);
  place_ = watch_.open_.insert(watch_.open_.end(), this);
  if (watch_.asleep_) watch_.changed_.NotifyOne();
}

GpuWatch::Turn::~Turn() {
  const MonotonicTime now = watch_.clock_.Now();
  MutexLock lock(&watch_.mu_);
  watch_.open_.erase(place_);
  watch_.all_ += now - since_;
  ++watch_.turns_;
}

void GpuWatch::Run() {
  std::string stuck;
  {
    MutexLock lock(&mu_);
    while (!stopped_ && stuck.empty()) {
      asleep_ = open_.empty();
      if (asleep_)
        changed_.Wait(&mu_);
      else
        changed_.WaitUntil(&mu_, Clock::Real().Now() + kLook);
      asleep_ = false;
      stuck = Stuck();
    }
  }
  if (!stuck.empty()) on_stuck_(stuck);
}

void GpuWatch::Stop() {
  MutexLock lock(&mu_);
  stopped_ = true;
  changed_.NotifyAll();
}

std::string GpuWatch::Stuck() {
  const Duration mean = turns_ == 0 ? Duration(0) : all_ / turns_;
  const Duration most = kLeast + kTimesMean * mean;
  const MonotonicTime now = clock_.Now();
  for (const Turn* turn : open_)
    if (now - turn->since_ > most)
      return fmt::format(
          "{} has not ended within {:.0f} s, where such took {:.3g} s on "
          "average",
          turn->what_, SecondsOf(most), SecondsOf(mean));
  return "";
}

}  // namespace leat::worker
