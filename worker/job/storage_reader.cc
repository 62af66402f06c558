// SPDX-License-Identifier: Apache-2.0
#include "worker/job/storage_reader.h"

#include <algorithm>
#include <optional>

#include "core/cluster/fault.h"
#include "core/counted.h"
#include "core/status.h"
#include "worker/source/faults/fault_rules.h"

namespace leat::worker {
namespace {

constexpr auto kReadBackoff = std::chrono::milliseconds(20);

// Adds the time that it exists to a count.
class Timed {
 public:
  Timed(const Clock& clock, std::atomic<uint64_t>* to)
      : clock_(clock), to_(to), began_(clock.Now()) {}
  ~Timed() {
    to_->fetch_add(static_cast<uint64_t>(
                       std::max(Duration(0), clock_.Now() - began_).count()),
                   std::memory_order_relaxed);
  }

 private:
  const Clock& clock_;
  std::atomic<uint64_t>* const to_;
  const MonotonicTime began_;
};

}  // namespace

absl::Status StorageReader::Elsewhere(const absl::Status& status,
                                      std::string_view how) {
  const Fault fault = FaultOf(status).value_or(Fault::kWorker);
  if (fault == Fault::kSample || fault == Fault::kObject) return status;
  return WithFault(Unavailable("{}{}", Message(status), how), fault);
}

absl::StatusOr<StoredSample> StorageReader::Read(uint64_t sample) const {
  RETURN_IF_ERROR(Admit());
  const Timed timed(context_->cache->clock(), &spent_ns_);
  for (int attempt = 1;; ++attempt) {
    absl::StatusOr<StoredSample> read = source_->Read(sample);
    const absl::Status status = Judged(read.status());
    const std::optional<Fault> fault = FaultOf(status);
    const bool answered = !fault.has_value() || fault == Fault::kSample ||
                          fault == Fault::kObject;
    if (answered || attempt >= context_->read_attempts) Ended(status, sample);
    if (read.ok()) return read;
    if (answered) return status;
    if (attempt >= context_->read_attempts)
      return Elsewhere(status,
                       fmt::format(" (tried {})", Counted(attempt, "time")));
    if (!Pause(kReadBackoff * attempt))
      return WithFault(Cancelled("{} (the worker stops)", Message(status)),
                       Fault::kTransient);
  }
}

std::vector<absl::StatusOr<StoredSample>> StorageReader::ReadMany(
    std::span<const uint64_t> samples) const {
  if (samples.empty() || !Admit().ok()) return {};
  const Timed timed(context_->cache->clock(), &spent_ns_);
  return source_->ReadMany(samples);
}

absl::Status StorageReader::Admit() const {
  return context_->failures == nullptr ? absl::OkStatus()
                                       : context_->failures->Admit(dataset_);
}

void StorageReader::Ended(const absl::Status& status, uint64_t sample) const {
  if (context_->failures != nullptr)
    context_->failures->Ended(dataset_, status, own_, sample - first_);
}

bool StorageReader::Pause(Duration duration) const {
  StopSignal never;
  return (context_->stop == nullptr ? &never : context_->stop)->Pause(duration);
}

}  // namespace leat::worker
