// SPDX-License-Identifier: Apache-2.0
//
// Planner: makes the steps of one iterator, in order: which samples they are
// of, the memory that they go to, and the samples themselves where they are
// supplied and not stored.
//
// Of one thread, the Engine's, which calls without a lock: fresh memory is
// slow.
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

  // The next step; nullptr: there is none, or its samples have not been
  // supplied yet, and the feed tells when. A step whose samples cannot be
  // brought has failed, and is the last. An error is final: there is no memory.
  absl::StatusOr<std::shared_ptr<Step>> Next();

 private:
  absl::StatusOr<BatchPool::Buffer> TakeBuffer();
  // The samples of a step: null where workers read them; nullopt: not yet.
  std::optional<Feed::Result> SuppliedFor(std::span<const uint64_t> samples);

  const EngineOptions& options_;
  Position next_;
  bool feed_failed_ = false;  // no step follows
};

}  // namespace leat::client
