// SPDX-License-Identifier: Apache-2.0
#include "worker/image/program/scratch.h"

#include <algorithm>
#include <utility>

#include "core/status.h"
#include "worker/image/base/scratch_budget.h"
#include "worker/image/program/scratch_state.h"

namespace leat::worker {

Scratch::Scratch(const ImageLimits& limits)
    : state_(std::make_unique<State>(limits)) {}

Scratch::~Scratch() = default;

absl::Status Scratch::BeginRow() {
  ScratchBudget* const budget = state_->limits().budget;
  if (budget == nullptr) return absl::OkStatus();
  const uint64_t own = state_->limits().kept_scratch_bytes;
  if (const uint64_t lacked = std::exchange(lacked_, 0); lacked > 0) {
    // Doubles each time, so that few attempts fail.
    const uint64_t wanted =
        std::max(lacked - own, std::min(2 * taken_before_, budget->bytes()));
    RETURN_IF_ERROR(budget->Take(wanted));
    taken_ = wanted;
  } else if (needed_ > own && budget->TryTake(needed_ - own)) {
    taken_ = needed_ - own;
  }
  state_->Grant(own + taken_);
  return absl::OkStatus();
}

bool Scratch::EndRow() {
  needed_ = state_->needed();
  lacked_ = state_->lacked();
  state_->EndRow();
  if (state_->held() > state_->limits().kept_scratch_bytes) {
    const uint64_t steps_run = state_->steps_run;
    state_ = std::make_unique<State>(ImageLimits(state_->limits()));
    state_->steps_run = steps_run;
  }
  // Returned only now, so that the memory that others take is really free.
  taken_before_ = std::exchange(taken_, 0);
  if (taken_before_ > 0) state_->limits().budget->Return(taken_before_);
  if (lacked_ == 0) taken_before_ = 0;
  return lacked_ > 0;
}

}  // namespace leat::worker
