// SPDX-License-Identifier: Apache-2.0
#include "worker/image/scratch.h"

#include <algorithm>

#include "core/status.h"

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
  }
  if (buffer->size() >= want) return absl::OkStatus();
  buffer_bytes += want - buffer->size();
  // Not resize(): the old contents need not be kept while the new are made.
  std::vector<std::byte>().swap(*buffer);
  *buffer = std::vector<std::byte>(want);
  return absl::OkStatus();
}

size_t Scratch::State::held() const {
  return buffer_bytes + decoder.scratch_bytes() + resampler.scratch_bytes() +
         dali.scratch_bytes();
}

Scratch::Scratch(const ImageLimits& limits)
    : state_(std::make_unique<State>(limits)) {}

Scratch::~Scratch() = default;

void Scratch::EndRow() {
  state_->asked.clear();
  state_->asked_bytes = 0;
  if (state_->held() <= state_->limits.kept_scratch_bytes) return;
  const uint64_t steps_run = state_->steps_run;
  state_ = std::make_unique<State>(ImageLimits(state_->limits));
  state_->steps_run = steps_run;
}

}  // namespace leat::worker
