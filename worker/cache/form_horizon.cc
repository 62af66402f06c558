// SPDX-License-Identifier: Apache-2.0
#include "worker/cache/form_horizon.h"

#include <algorithm>
#include <utility>

namespace leat::worker {

FormHorizon::Reading::Reading(std::shared_ptr<FormHorizon> horizon,
                              const Iterator& iterator)
    : horizon_(std::move(horizon)), iterator_(iterator) {
  MutexLock lock(&horizon_->mu_);
  bounded_ = iterator.end_epoch > 0 && horizon_->read_to_end_ < kRead;
  if (bounded_)
    horizon_->bounded_.push_back(this);
  else
    ++horizon_->unbounded_;
  ++horizon_->readings_;
}

FormHorizon::Reading::~Reading() {
  MutexLock lock(&horizon_->mu_);
  --horizon_->readings_;
  const auto end = static_cast<double>(iterator_.end_epoch);
  if (iterator_.end_epoch > 0 && asked_ && position() >= end - 0.5)
    horizon_->read_to_end_ += iterator_.share;
  if (bounded_)
    horizon_->bounded_.remove(this);
  else
    --horizon_->unbounded_;
}

// Rows are requested ahead, and again when a worker is lost: the last step is
// the one that counts.
void FormHorizon::Reading::At(uint64_t epoch, uint64_t step) {
  MutexLock lock(&horizon_->mu_);
  if (asked_ && std::pair(epoch, step) <= std::pair(epoch_, step_)) return;
  asked_ = true;
  epoch_ = epoch;
  step_ = step;
}

double FormHorizon::Reading::position() const {
  const auto steps =
      static_cast<double>(std::max<uint64_t>(1, iterator_.steps_per_epoch));
  return static_cast<double>(epoch_) +
         std::min(1.0, static_cast<double>(step_ + 1) / steps);
}

// An iterator of the same job that is near the epoch delivers the record in the
// epochs after it. For an iterator elsewhere it is not known whether it has
// delivered the record in its present epoch.
double FormHorizon::UsesAfter(const Digest& job, uint64_t epoch) const {
  if (IsWithoutBound()) return kWithoutBound;
  MutexLock lock(&mu_);
  double uses = 0;
  for (const Reading* const each : bounded_) {
    if (!each->asked_) continue;
    const Iterator& iterator = each->iterator_;
    const auto end = static_cast<double>(iterator.end_epoch);
    const bool near = iterator.job == job && each->epoch_ <= epoch + 1 &&
                      epoch <= each->epoch_ + 1;
    const double left =
        end - (near ? static_cast<double>(epoch) + 1 : each->position());
    uses += iterator.share * std::max(0.0, left);
  }
  return uses;
}

double FormHorizon::UsesLeft() const {
  if (readings_ == 0) return 0;
  if (unbounded_ > 0) return kWithoutBound;
  MutexLock lock(&mu_);
  double uses = 0;
  for (const Reading* const each : bounded_) {
    if (!each->asked_) continue;
    const auto end = static_cast<double>(each->iterator_.end_epoch);
    uses += each->iterator_.share * std::max(0.0, end - each->position());
  }
  return uses;
}

}  // namespace leat::worker
