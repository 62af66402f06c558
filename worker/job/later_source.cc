// SPDX-License-Identifier: Apache-2.0
#include "worker/job/later_source.h"

#include <algorithm>
#include <utility>

#include "core/cluster/fault.h"
#include "core/log.h"
#include "core/status.h"

namespace leat::worker {
namespace {

// A dataset that the coordinator does not know now may be listed again.
bool MayPass(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsCancelled(status) || absl::IsNotFound(status);
}

}  // namespace

LaterSource::LaterSource(Known known, const Options& options, Open open)
    : known_(std::move(known)), options_(options), open_(std::move(open)) {}

absl::StatusOr<LaterSource::Ptr> LaterSource::Opened() const {
  {
    MutexLock lock(&mu_);
    const uint64_t before = attempts_;
    while (opening_ && attempts_ == before) ended_.Wait(&mu_);
    if (source_ != nullptr) return source_;
    if (attempts_ != before || options_.clock->Now() < again_) return error_;
    opening_ = true;
  }
  return Try();
}

void LaterSource::AwaitAttempt(MonotonicTime deadline) const {
  MutexLock lock(&mu_);
  while (attempts_ == 0 && ended_.WaitUntil(&mu_, deadline)) continue;
}

absl::StatusOr<LaterSource::Ptr> LaterSource::Try() const {
  absl::StatusOr<Ptr> source = open_();
  if (source.ok() && (*source)->num_samples() != known_.samples)
    source = DataLoss("its index has {} samples, want {}",
                      (*source)->num_samples(), known_.samples);
  Open done;  // may own a lot
  {
    MutexLock lock(&mu_);
    opening_ = false;
    ++attempts_;
    ended_.NotifyAll();
    if (source.ok()) {
      source_ = *source;
      now_.store(source_.get(), std::memory_order_release);
      done = std::move(open_);
      return source;
    }
    error_ = source.status();
    pause_ = std::clamp(pause_ * 2, options_.first_pause, options_.max_pause);
    again_ = options_.clock->Now() + pause_;
  }
  LOG_WARN("source.not_opened dataset=\"{}\" error=\"{}\"", known_.name,
           Message(source.status()));
  if (options_.failures != nullptr)
    if (const absl::Status status = OfRow(source.status());
        FaultOf(status) == Fault::kWorker)
      options_.failures->Ended({known_.root, known_.fingerprint}, status,
                               shared_from_this(), 0);
  return source;
}

absl::Status LaterSource::OfRow(const absl::Status& status) const {
  const absl::Status named =
      Annotate(status, fmt::format("cannot open dataset {}", known_.name));
  if (FaultOf(named).has_value()) return named;
  return WithFault(Unavailable("{}", Message(named)),
                   MayPass(status) ? Fault::kTransient : Fault::kWorker);
}

absl::StatusOr<const Source*> LaterSource::ForRow() const {
  if (const Source* const now = Now()) return now;
  const absl::StatusOr<Ptr> opened = Opened();
  if (!opened.ok()) return OfRow(opened.status());
  return opened->get();
}

uint64_t LaterSource::RecordOf(uint64_t sample) const {
  const Source* const now = Now();
  return now == nullptr ? kNoRecord : now->RecordOf(sample);
}

absl::StatusOr<uint64_t> LaterSource::FindRecord(uint64_t sample) const {
  ASSIGN_OR_RETURN(const Source* const source, ForRow());
  return source->FindRecord(sample);
}

absl::StatusOr<StoredSample> LaterSource::Read(uint64_t sample) const {
  ASSIGN_OR_RETURN(const Source* const source, ForRow());
  return source->Read(sample);
}

std::vector<absl::StatusOr<StoredSample>> LaterSource::ReadMany(
    std::span<const uint64_t> samples) const {
  const absl::StatusOr<const Source*> source = ForRow();
  if (source.ok()) return (*source)->ReadMany(samples);
  return {samples.size(), source.status()};
}

std::vector<absl::StatusOr<StoredPart>> LaterSource::ReadParts(
    std::span<const RecordPart> parts) const {
  const absl::StatusOr<const Source*> source = ForRow();
  if (source.ok()) return (*source)->ReadParts(parts);
  return {parts.size(), source.status()};
}

absl::StatusOr<RecordPlace> LaterSource::Locate(uint64_t sample) const {
  ASSIGN_OR_RETURN(const Source* const source, ForRow());
  return source->Locate(sample);
}

absl::StatusOr<std::optional<RowDocuments>> LaterSource::DocumentsOf(
    uint64_t sample, uint64_t first, uint64_t most) const {
  ASSIGN_OR_RETURN(const Source* const source, ForRow());
  return source->DocumentsOf(sample, first, most);
}

absl::StatusOr<int64_t> LaterSource::IndexedColumn(std::string_view column,
                                                   uint64_t sample) const {
  ASSIGN_OR_RETURN(const Source* const source, ForRow());
  return source->IndexedColumn(column, sample);
}

absl::StatusOr<std::unique_ptr<StoredColumns>> LaterSource::OpenColumns(
    std::span<const std::string> names) const {
  ASSIGN_OR_RETURN(const Source* const source, ForRow());
  return source->OpenColumns(names);
}

size_t LaterSource::Nearby(std::span<const uint64_t> samples,
                           const NearbyLimits& limits) const {
  const Source* const now = Now();
  return now == nullptr ? 1 : now->Nearby(samples, limits);
}

std::string LaterSource::Describe(uint64_t sample) const {
  const Source* const now = Now();
  return now == nullptr ? fmt::format("sample {} of {}", sample, known_.name)
                        : now->Describe(sample);
}

bool LaterSource::waits() const {
  const Source* const now = Now();
  return now == nullptr || now->waits();
}

}  // namespace leat::worker
