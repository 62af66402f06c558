// SPDX-License-Identifier: Apache-2.0
#include "worker/image/base/scratch_budget.h"

#include <algorithm>
#include <utility>

#include "core/cluster/fault.h"
#include "core/log.h"
#include "core/status.h"

namespace leat::worker {

absl::Status ScratchBudget::Take(uint64_t bytes) {
  if (bytes > bytes_)
    return WithFault(
        ResourceExhausted(
            "the row needs {} bytes of working memory beside its thread's own, "
            "and all rows of this worker share {}: want more --decode-memory",
            bytes, bytes_),
        Fault::kWorker);
  const MonotonicTime until = Clock::Real().Now() + patience_;
  bool first = false, served = false;
  {
    MutexLock lock(&mu_);
    const uint64_t ticket = next_ticket_++;
    waiting_.push_back(ticket);
    const auto may = [&] {
      mu_.AssertHeld();
      return waiting_.front() == ticket && taken_ + bytes <= bytes_;
    };
    first = !may() && !std::exchange(has_waited_, true);
    while (!stopped_ && !may() && changed_.WaitUntil(&mu_, until)) {
    }
    served = !stopped_ && may();
    waiting_.erase(std::find(waiting_.begin(), waiting_.end(), ticket));
    if (served) taken_ += bytes;
    changed_.NotifyAll();  // another ticket is next
  }
  if (first)
    LOG_WARN(
        "decode_memory.full bytes={} note=\"rows of large images wait for one "
        "another; more --decode-memory helps\"",
        bytes_);
  if (served) return absl::OkStatus();
  return WithFault(
      Unavailable("other rows have all of the {} bytes of working memory "
                  "(--decode-memory) that the row needs {} of",
                  bytes_, bytes),
      Fault::kTransient);
}

bool ScratchBudget::TryTake(uint64_t bytes) {
  MutexLock lock(&mu_);
  if (!waiting_.empty() || taken_ + bytes > bytes_) return false;
  taken_ += bytes;
  return true;
}

void ScratchBudget::Return(uint64_t bytes) {
  MutexLock lock(&mu_);
  taken_ -= bytes;
  changed_.NotifyAll();
}

void ScratchBudget::Stop() {
  MutexLock lock(&mu_);
  stopped_ = true;
  changed_.NotifyAll();
}

uint64_t ScratchBudget::taken() const {
  MutexLock lock(&mu_);
  return taken_;
}

size_t ScratchBudget::waiting() const {
  MutexLock lock(&mu_);
  return waiting_.size();
}

}  // namespace leat::worker
