// SPDX-License-Identifier: Apache-2.0
#include "worker/image/scratch.h"

#include <algorithm>
#include <utility>

#include "core/status.h"
#include "worker/image/scratch_budget.h"

namespace leat::worker {

absl::Status Scratch::State::Reserve(size_t bytes,
                                     std::vector<std::byte>* buffer) {
  const size_t want = bytes + kRowPadding;
  auto it = std::find_if(asked.begin(), asked.end(),
                         [&](const auto& of) { return of.first == buffer; });
  if (it == asked.end()) it = asked.insert(it, {buffer, 0});
  if (want > it->second) {
    const size_t total = asked_bytes - it->second + want;
    if (total > limits.max_scratch_bytes)
      return ResourceExhausted(
          "row needs {} bytes of working memory, over the limit of {}", total,
          limits.max_scratch_bytes);
    it->second = want;
    asked_bytes = total;
    RETURN_IF_ERROR(Afford());
  }
  if (buffer->size() >= want) return absl::OkStatus();
  buffer_bytes += want - buffer->size();
  // Not resize(): the old contents need not be kept while the new are made.
  std::vector<std::byte>().swap(*buffer);
  *buffer = std::vector<std::byte>(want);
  return absl::OkStatus();
}

absl::Status Scratch::State::Charge(uint64_t bytes) {
  charged = std::max(charged, bytes);
  return Afford();
}

absl::Status Scratch::State::Afford() {
  const uint64_t total = asked_bytes + charged;
  if (limits.budget == nullptr || total <= granted) return absl::OkStatus();
  lacked = total;
  return absl::AbortedError("the row lacks working memory");
}

size_t Scratch::State::held() const {
  return buffer_bytes + decoder.scratch_bytes() + resampler.scratch_bytes() +
         dali.scratch_bytes();
}

Scratch::Scratch(const ImageLimits& limits)
    : state_(std::make_unique<State>(limits)) {}

Scratch::~Scratch() = default;

absl::Status Scratch::BeginRow() {
  ScratchBudget* const budget = state_->limits.budget;
  if (budget == nullptr) return absl::OkStatus();
  const uint64_t own = state_->limits.kept_scratch_bytes;
  if (const uint64_t lacked = std::exchange(lacked_, 0); lacked > 0) {
    // Twice as much each time, so that few tries are in vain.
    const uint64_t wanted =
        std::max(lacked - own, std::min(2 * taken_before_, budget->bytes()));
    RETURN_IF_ERROR(budget->Take(wanted));
    taken_ = wanted;
  } else if (needed_ > own && budget->TryTake(needed_ - own)) {
    taken_ = needed_ - own;
  }
  state_->granted = own + taken_;
  return absl::OkStatus();
}

bool Scratch::EndRow() {
  needed_ = state_->asked_bytes + state_->charged;
  lacked_ = state_->lacked;
  state_->asked.clear();
  state_->asked_bytes = 0;
  state_->charged = 0;
  state_->lacked = 0;
  state_->granted = state_->limits.kept_scratch_bytes;
  if (state_->held() > state_->limits.kept_scratch_bytes) {
    const uint64_t steps_run = state_->steps_run;
    state_ = std::make_unique<State>(ImageLimits(state_->limits));
    state_->steps_run = steps_run;
  }
  // Behind that, so that what others take is free.
  taken_before_ = std::exchange(taken_, 0);
  if (taken_before_ > 0) state_->limits.budget->Return(taken_before_);
  if (lacked_ == 0) taken_before_ = 0;
  return lacked_ > 0;
}

}  // namespace leat::worker
