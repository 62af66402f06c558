// SPDX-License-Identifier: Apache-2.0
#include "worker/index_command/report_sink.h"

#include "core/status.h"

namespace leat::worker {
namespace {

constexpr size_t kMaxKeptBlocks = 8;

}  // namespace

absl::Status ReportSink::Add(std::string bytes, uint64_t samples) {
  bytes_ += bytes.size();
  ++blocks_;
  progress_->index_bytes = bytes_;
  progress_->index_records = samples_ + samples;
  if (samples == 0) {
    if (bytes_ > max_whole_bytes_)
      return ResourceExhausted(
          "an index of more than {} bytes, which is read whole: the limit",
          max_whole_bytes_);
    whole_ += bytes;
    return absl::OkStatus();
  }
  if (use_ != nullptr) RETURN_IF_ERROR(use_(whole_, bytes));
  const uint64_t number = with_samples_++;
  if (number % every_ == 0) {
    kept_.push_back({number, samples_, samples, std::move(bytes)});
    if (kept_.size() > kMaxKeptBlocks) {
      every_ *= 2;
      std::erase_if(kept_, [this](const Block& block) {
        return block.number % every_ != 0;
      });
    }
  }
  samples_ += samples;
  return absl::OkStatus();
}

}  // namespace leat::worker
