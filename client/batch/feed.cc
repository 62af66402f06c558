// SPDX-License-Identifier: Apache-2.0
#include "client/batch/feed.h"

#include <algorithm>
#include <span>
#include <utility>

#include "core/plan/job.h"
#include "core/shapes/field_type.h"
#include "core/status.h"

namespace leat::client {

Supplied::Supplied(std::span<const uint64_t> samples)
    : samples_(samples.begin(), samples.end()) {
  std::sort(samples_.begin(), samples_.end());
  samples_.erase(std::unique(samples_.begin(), samples_.end()), samples_.end());
  fields_.resize(samples_.size());
  there_.resize(samples_.size());
  missing_ = samples_.size();
}

size_t Supplied::IndexOf(uint64_t sample) const {
  const auto at = std::lower_bound(samples_.begin(), samples_.end(), sample);
  if (at == samples_.end() || *at != sample) return samples_.size();
  return static_cast<size_t>(at - samples_.begin());
}

const Supplied::Fields& Supplied::Of(uint64_t sample) const {
  return fields_[IndexOf(sample)];
}

uint64_t Supplied::BytesOf(const Fields& fields) {
  uint64_t bytes = 0;
  for (const SampleField& field : fields) bytes += field.bytes.size();
  return bytes;
}

bool Supplied::Set(uint64_t sample, Fields fields) {
  const size_t index = IndexOf(sample);
  if (index == samples_.size() || there_[index]) return false;
  bytes_ += BytesOf(fields);
  fields_[index] = std::move(fields);
  there_[index] = true;
  --missing_;
  return true;
}

Feed::Feed(std::vector<ValueType> types, std::string name)
    : types_(std::move(types)), name_(std::move(name)) {}

void Feed::SetOnReady(std::function<void()> on_ready) {
  on_ready_.Set(std::move(on_ready));
}

bool Feed::waiting() const {
  MutexLock lock(&mu_);
  return supplied_ != nullptr && !supplied_->complete() && error_.ok();
}

bool Feed::closed() const {
  MutexLock lock(&mu_);
  return closed_;
}

std::optional<Feed::Result> Feed::Take(uint64_t epoch,
                                       std::span<const uint64_t> samples) {
  MutexLock lock(&mu_);
  if (!error_.ok()) return error_;
  if (supplied_ == nullptr) {
    supplied_ = std::make_shared<Supplied>(samples);
    epoch_ = epoch;
    told_ = false;
    if (!supplied_->complete()) {
      if (abandoned_) {
        FailLocked(FailedPrecondition(
            "source \"{}\" was closed before it supplied all samples", name_));
        return error_;
      }
      wanted_.NotifyAll();
    }
  }
  if (!supplied_->complete()) return std::nullopt;
  return std::exchange(supplied_, nullptr);
}

void Feed::Close() {
  MutexLock lock(&mu_);
  closed_ = true;
  wanted_.NotifyAll();
}

absl::StatusOr<std::optional<Feed::Want>> Feed::Next(MonotonicTime deadline) {
  MutexLock lock(&mu_);
  while (!closed_) {
    if (supplied_ != nullptr && !supplied_->complete() && error_.ok() &&
        !std::exchange(told_, true)) {
      const std::span<const uint64_t> samples = supplied_->samples();
      return Want{epoch_, {samples.begin(), samples.end()}};
    }
    if (!wanted_.WaitUntil(&mu_, deadline) && !closed_)
      return DeadlineExceeded("source \"{}\": no sample is wanted yet", name_);
  }
  return std::nullopt;
}

absl::Status Feed::Check(const Supplied::Fields& fields) const {
  if (fields.size() != types_.size())
    return InvalidArgument("{} fields, want {}", fields.size(), types_.size());
  for (size_t i = 0; i < fields.size(); ++i)
    if (const absl::Status status =
            CheckStored(types_[i], std::as_bytes(std::span(fields[i].bytes)),
                        fields[i].shape);
        !status.ok())
      return Annotate(status, fmt::format("field {}", i));
  if (const uint64_t bytes = Supplied::BytesOf(fields);
      bytes > kMaxSuppliedBytes)
    return InvalidArgument("{} bytes: the limit is {}", bytes,
                           kMaxSuppliedBytes);
  return absl::OkStatus();
}

absl::Status Feed::Supply(uint64_t sample, Supplied::Fields fields) {
  absl::Status wrong = Check(fields);
  if (!wrong.ok()) {
    Fail(sample, wrong);
    return Annotate(wrong,
                    fmt::format("source \"{}\" sample {}", name_, sample));
  }
  {
    MutexLock lock(&mu_);
    if (closed_ || !error_.ok()) return Cancelled("nothing is wanted any more");
    if (supplied_ == nullptr || !supplied_->Set(sample, std::move(fields)))
      return InvalidArgument("source \"{}\" sample {}: it is not wanted now",
                             name_, sample);
    if (!supplied_->complete()) return absl::OkStatus();
  }
  on_ready_.Call();
  return absl::OkStatus();
}

void Feed::Fail(uint64_t sample, const absl::Status& status) {
  absl::Status error =
      Annotate(status.ok() ? MakeStatus(absl::StatusCode::kUnknown, "no fields")
                           : status,
               fmt::format("source \"{}\" sample {}", name_, sample));
  {
    MutexLock lock(&mu_);
    if (!FailLocked(std::move(error))) return;
  }
  on_ready_.Call();
}

bool Feed::FailLocked(absl::Status status) {
  if (!error_.ok()) return false;
  error_ = std::move(status);
  return true;
}

void Feed::Abandon() {
  {
    MutexLock lock(&mu_);
    abandoned_ = true;
    if (supplied_ == nullptr || supplied_->complete() ||
        !FailLocked(FailedPrecondition(
            "source \"{}\" was closed before it supplied all samples", name_)))
      return;
  }
  on_ready_.Call();
}

void Feed::Serve(SampleSource& source) {
  while (true) {
    const absl::StatusOr<std::optional<Want>> want = Next(MonotonicTime::max());
    if (!want.ok() || !want->has_value()) return;
    for (const uint64_t sample : (*want)->samples) {
      if (closed()) return;
      absl::StatusOr<Supplied::Fields> fields =
          source.Read((*want)->epoch, sample);
      absl::Status status = fields.status();
      if (!status.ok())
        Fail(sample, status);
      else
        status = Supply(sample, *std::move(fields));
      if (!status.ok()) break;
    }
  }
}

}  // namespace leat::client
