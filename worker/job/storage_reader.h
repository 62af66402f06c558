// SPDX-License-Identifier: Apache-2.0
//
// StorageReader: reads the records of one dataset from its storage. A read is
// tried again after a pause if its fault is the worker's or transient, unless
// the dataset is known to fail; StorageFailures is informed how each read
// ended. Thread-safe; immutable except for a count of the time spent.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/job/runtime_context.h"
#include "worker/job/storage_failures.h"
#include "worker/source/source.h"

namespace leat::worker {

class StorageReader {
 public:
  // `source` has the job's numbers, which begin at `first`; `own` is the same
  // source with the dataset's (worker/job/numbered_source.h). `context` outlives
  // this.
  StorageReader(std::shared_ptr<const Source> source,
                std::shared_ptr<const Source> own, uint64_t first,
                StorageFailures::Dataset dataset, const RuntimeContext* context)
      : source_(std::move(source)),
        own_(std::move(own)),
        first_(first),
        dataset_(std::move(dataset)),
        context_(context) {}

  // Tries up to RuntimeContext::read_attempts times. Errors carry their fault.
  // kUnavailable: another worker may succeed. kCancelled: the worker stops.
  absl::StatusOr<StoredSample> Read(uint64_t sample) const;
  // Reads samples by one request, once. Returns one result per sample; empty if
  // the dataset is known to fail. Does not inform StorageFailures: call
  // Succeeded for the samples that are used, and Read for those that failed.
  std::vector<absl::StatusOr<StoredSample>> ReadMany(
      std::span<const uint64_t> samples) const;
  // The sample came with ReadMany.
  void Succeeded(uint64_t sample) const { Ended(absl::OkStatus(), sample); }

  // The time of all reads, with their pauses, as far as they have ended.
  uint64_t spent_ns() const {
    return spent_ns_.load(std::memory_order_relaxed);
  }

  // Marks an error that another worker may not meet as such; adds `how` to its
  // message.
  static absl::Status Elsewhere(const absl::Status& status,
                                std::string_view how = "");

 private:
  absl::Status Admit() const;
  void Ended(const absl::Status& status, uint64_t sample) const;
  // Waits before another try. Returns false if the worker stops.
  bool Pause(Duration duration) const;

  const std::shared_ptr<const Source> source_;
  const std::shared_ptr<const Source> own_;  // which probes read
  const uint64_t first_;
  const StorageFailures::Dataset dataset_;
  const RuntimeContext* const context_;
  mutable std::atomic<uint64_t> spent_ns_{0};
};

}  // namespace leat::worker
