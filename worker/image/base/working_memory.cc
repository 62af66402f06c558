// SPDX-License-Identifier: Apache-2.0
#include "worker/image/base/working_memory.h"

#include <algorithm>

#include "core/status.h"
#include "worker/image/base/pixel_rows.h"

namespace leat::worker {

absl::Status WorkingMemory::Reserve(size_t bytes,
                                    std::vector<std::byte>* buffer) {
  const size_t want = bytes + kRowPadding;
  if (bytes > limits_.max_scratch_bytes || want < bytes)
    return ResourceExhausted(
        "row needs {} bytes of working memory, over the limit of {}", bytes,
        limits_.max_scratch_bytes);
  auto it = std::find_if(asked_.begin(), asked_.end(),
                         [&](const auto& of) { return of.first == buffer; });
  if (it == asked_.end()) it = asked_.insert(it, {buffer, 0});
  if (want > it->second) {
    const size_t total = asked_bytes_ - it->second + want;
    if (total > limits_.max_scratch_bytes)
      return ResourceExhausted(
          "row needs {} bytes of working memory, over the limit of {}", total,
          limits_.max_scratch_bytes);
    it->second = want;
    asked_bytes_ = total;
    RETURN_IF_ERROR(Afford());
  }
  if (buffer->size() >= want) return absl::OkStatus();
  buffer_bytes_ += want - buffer->size();
  // Not resize(): the old contents need not be kept while the new are made.
  std::vector<std::byte>().swap(*buffer);
  *buffer = std::vector<std::byte>(want);
  return absl::OkStatus();
}

absl::Status WorkingMemory::Charge(uint64_t bytes) {
  charged_ = std::max(charged_, bytes);
  return Afford();
}

absl::Status WorkingMemory::ChargeOperator(uint64_t bytes) {
  if (bytes > limits_.max_scratch_bytes - asked_bytes_)
    return ResourceExhausted(
        "row needs {} bytes of working memory, and {} in an operator, over the "
        "limit of {}",
        asked_bytes_, bytes, limits_.max_scratch_bytes);
  return Charge(bytes);
}

absl::Status WorkingMemory::Afford() {
  if (limits_.budget == nullptr || needed() <= granted_)
    return absl::OkStatus();
  lacked_ = needed();
  return absl::AbortedError("the row lacks working memory");
}

void WorkingMemory::EndRow() {
  asked_.clear();
  asked_bytes_ = 0;
  charged_ = 0;
  lacked_ = 0;
  granted_ = limits_.kept_scratch_bytes;
}

}  // namespace leat::worker
