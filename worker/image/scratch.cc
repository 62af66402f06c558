// SPDX-License-Identifier: Apache-2.0
#include "worker/image/scratch.h"

#include "core/status.h"

namespace leat::worker {

absl::Status Scratch::State::Reserve(size_t bytes,
                                     std::vector<std::byte>* buffer) {
  const size_t want = bytes + kRowPadding;
  if (buffer->size() >= want) return absl::OkStatus();
  const size_t total = held() - buffer->size() + want;
  if (total > limits.max_scratch_bytes)
    return ResourceExhausted(
        "row needs {} bytes of working memory, over the limit of {}", total,
        limits.max_scratch_bytes);
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

}  // namespace leat::worker
