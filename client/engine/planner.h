// SPDX-License-Identifier: Apache-2.0
//
// Planner creates the steps of one iterator, in order: their samples' numbers,
// their memory, and the samples themselves if these are supplied and not
// stored.
//
// Only the Engine's thread uses it, without a lock: fresh memory is slow.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "absl/status/statusor.h"
#include "client/batch/batch_pool.h"
#include "client/batch/feed.h"
#include "client/batch/step.h"
#include "client/engine/engine_options.h"

namespace leat::client {

class Planner {
 public:
  // `options` outlive this.
  explicit Planner(const EngineOptions& options)
      : options_(options), next_(options.start) {}

  // Returns the next step; nullptr: there is none, or its samples have not been
  // supplied yet, and the feed notifies when they are. A step whose samples are
  // unavailable has failed, and is the last. An error is final: there is no
  // memory.
  absl::StatusOr<std::shared_ptr<Step>> Next();

 private:
  absl::StatusOr<BatchPool::Buffer> TakeBuffer();
  // Returns the supplied samples; null: workers read them; nullopt: not yet.
  std::optional<Feed::Result> SuppliedFor(std::span<const uint64_t> samples);

  const EngineOptions& options_;
  EpochStep next_;
  bool feed_failed_ = false;  // no step follows
};

}  // namespace leat::client
