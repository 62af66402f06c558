// SPDX-License-Identifier: Apache-2.0
#include "client/engine/planner.h"

#include <utility>
#include <vector>

#include "core/plan/plan.h"
#include "core/status.h"

namespace leat::client {

std::optional<Feed::Result> Planner::SuppliedFor(
    std::span<const uint64_t> samples) {
  if (!options_.feed) return Feed::Result(nullptr);
  std::vector<uint64_t> wanted(samples.begin(), samples.end());
  std::erase(wanted, kNoSample);
  return options_.feed->Take(next_.epoch, wanted);
}

absl::StatusOr<BatchPool::Buffer> Planner::TakeBuffer() {
  absl::StatusOr<BatchPool::Buffer> buffer = options_.pool->Take();
  if (buffer.ok() && options_.fetch.transport == Transport::kShared &&
      buffer->memory()->fd() < 0 &&
      buffer->memory()->reuse() != BatchMemory::Reuse::kNever)
    return FailedPrecondition(
        "LEAT_TRANSPORT=shm: this system gives no memory that can be shared "
        "(memfd_create with sealing)");
  return buffer;
}

absl::StatusOr<std::shared_ptr<Step>> Planner::Next() {
  if (options_.AtEnd(next_) || feed_failed_ ||
      (options_.feed && options_.feed->waiting()))
    return nullptr;
  std::vector<uint64_t> samples(options_.map->rows().size());
  options_.plan(next_.epoch, next_.step, samples);
  std::optional<Feed::Result> supplied = SuppliedFor(samples);
  if (!supplied) return nullptr;
  ASSIGN_OR_RETURN(BatchPool::Buffer buffer, TakeBuffer());
  auto step =
      std::make_shared<Step>(next_.epoch, next_.step, options_.map, samples,
                             options_.layout, std::move(buffer));
  if (supplied->ok()) {
    step->supplied = **std::move(supplied);
  } else {
    feed_failed_ = true;
    step->Fail(supplied->status());
  }
  if (options_.tracer != nullptr) {
    step->trace = options_.tracer->Step(options_.open.plan_hash(), options_.job,
                                        options_.open.consumer(), next_.epoch,
                                        next_.step);
    if (step->trace) step->planned_at = Clock::Real().Now();
  }
  next_ = options_.After(next_);
  return step;
}

}  // namespace leat::client
