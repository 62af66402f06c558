// SPDX-License-Identifier: Apache-2.0
//
// LaterSource: a dataset's source that is opened when a row first needs it, or
// before that by a thread that opens ahead (worker/job/source_table.h). A job
// of many sources so begins with the rows of those that are open, and one that
// cannot be opened fails its own rows only.
//
//   the first caller   opens it, without a lock
//   others             wait for the result of the caller that opens it
//   after an error     that error is the answer until a pause is over, which
//                      doubles each time; the next caller then tries again
//
// An opened source stays open as long as this object. An error of opening is an
// error of the row that needs the source: its fault is storage's, if storage
// gave one. A coordinator that does not answer is a transient fault, and any
// other error is this worker's fault. StorageFailures counts faults of the
// worker, so that a dataset that cannot be opened is found as one that cannot be
// read. No sample is bad because the index of its dataset is.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/clock.h"
#include "core/mutex.h"
#include "worker/job/storage_failures.h"
#include "worker/source/source.h"

namespace leat::worker {

class LaterSource final : public Source,
                          public std::enable_shared_from_this<LaterSource> {
 public:
  using Ptr = std::shared_ptr<const Source>;
  // Returns within bounds of its own.
  using Open = std::function<absl::StatusOr<Ptr>()>;

  // The numbers and names of a dataset, before it is opened.
  struct Known {
    std::string name;  // for messages
    Digest fingerprint{};
    std::string root;  // RootOf its reader
    uint64_t samples = 0;
    uint64_t records = 0;
  };
  struct Options {
    Duration first_pause = std::chrono::milliseconds(50);
    Duration max_pause = std::chrono::seconds(2);
    StorageFailures* failures = nullptr;  // outlives it; nullptr: none are kept
    const Clock* clock = &Clock::Real();  // outlives it
  };
  LaterSource(Known known, const Options& options, Open open);

  // Opens it, or waits for the thread that does. Errors: those of Open.
  absl::StatusOr<Ptr> Opened() const;

  // Waits until it has been tried once, or the deadline passes.
  void AwaitAttempt(MonotonicTime deadline) const;

  uint64_t num_samples() const override { return known_.samples; }
  uint64_t num_records() const override { return known_.records; }
  const Digest& fingerprint() const override { return known_.fingerprint; }
  uint64_t RecordOf(uint64_t sample) const override;
  // Opens it, as do all of those that may wait.
  absl::StatusOr<uint64_t> FindRecord(uint64_t sample) const override;
  absl::StatusOr<StoredSample> Read(uint64_t sample) const override;
  std::vector<absl::StatusOr<StoredSample>> ReadMany(
      std::span<const uint64_t> samples) const override;
  std::vector<absl::StatusOr<StoredPart>> ReadParts(
      std::span<const RecordPart> parts) const override;
  absl::StatusOr<RecordPlace> Locate(uint64_t sample) const override;
  absl::StatusOr<std::optional<RowDocuments>> DocumentsOf(
      uint64_t sample, uint64_t first, uint64_t most) const override;
  absl::StatusOr<int64_t> IndexedColumn(std::string_view column,
                                        uint64_t sample) const override;
  absl::StatusOr<std::unique_ptr<StoredColumns>> OpenColumns(
      std::span<const std::string> names) const override;
  // Returns 1 as long as it is not open.
  size_t Nearby(std::span<const uint64_t> samples,
                const NearbyLimits& limits) const override;
  // Without its path as long as it is not open.
  std::string Describe(uint64_t sample) const override;
  // True as long as it is not open: opening waits for the coordinator.
  bool waits() const override;

 private:
  // Returns nullptr if it is not open.
  const Source* Now() const { return now_.load(std::memory_order_acquire); }
  // Opens it for a row. Errors: as OfRow.
  absl::StatusOr<const Source*> ForRow() const;
  // Calls open_. REQUIRES: this thread has set opening_.
  absl::StatusOr<Ptr> Try() const;
  // Returns the error of a row that meets this error of opening.
  absl::Status OfRow(const absl::Status& status) const;

  const Known known_;
  const Options options_;
  mutable std::atomic<const Source*> now_{nullptr};  // source_, once it is open

  mutable Mutex mu_;
  mutable CondVar ended_;
  mutable Open open_;  // is called by the thread that set opening_
  mutable bool opening_ ABSL_GUARDED_BY(mu_) = false;
  mutable uint64_t attempts_ ABSL_GUARDED_BY(mu_) = 0;  // that have ended
  mutable Ptr source_ ABSL_GUARDED_BY(mu_);
  mutable absl::Status error_ ABSL_GUARDED_BY(mu_);
  mutable Duration pause_ ABSL_GUARDED_BY(mu_){};
  mutable MonotonicTime again_ ABSL_GUARDED_BY(mu_){};
};

}  // namespace leat::worker
