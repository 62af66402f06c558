// SPDX-License-Identifier: Apache-2.0
//
// StorageReader: the records of one dataset as its storage has them. A read is
// tried again after a pause as long as another worker might do better, unless
// the dataset is known to fail; how each read ended is told to
// StorageFailures. Immutable; thread-safe.
#pragma once

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
  // `context` outlives this.
  StorageReader(std::shared_ptr<const Source> source,
                StorageFailures::Dataset dataset, const RuntimeContext* context)
      : source_(std::move(source)),
        dataset_(std::move(dataset)),
        context_(context) {}

  // Tries up to RuntimeContext::read_attempts times. Errors carry their fault;
  // kUnavailable: another worker may do better. kCancelled: the worker stops.
  absl::StatusOr<StoredSample> Read(uint64_t sample) const;
  // Reads samples by one request, once. By sample; empty if the dataset is
  // known to fail. Nothing is told to StorageFailures: call Succeeded
  // for what is used, and Read for what failed.
  std::vector<absl::StatusOr<StoredSample>> ReadMany(
      std::span<const uint64_t> samples) const;
  // The sample came with ReadMany.
  void Succeeded(uint64_t sample) const { Ended(absl::OkStatus(), sample); }

  // Returns an error that another worker may not meet as one that says so;
  // `how` is added to its message.
  static absl::Status Elsewhere(const absl::Status& status,
                                std::string_view how = "");

 private:
  absl::Status Admit() const;
  void Ended(const absl::Status& status, uint64_t sample) const;
  // Waits before another try. False: the worker stops.
  bool Pause(Duration duration) const;

  const std::shared_ptr<const Source> source_;
  const StorageFailures::Dataset dataset_;
  const RuntimeContext* const context_;
};

}  // namespace leat::worker
