// SPDX-License-Identifier: Apache-2.0
//
// What an Engine does with the lending sockets, and the moves of steps that
// they bring about.
#include <string>
#include <utility>

#include "client/engine/engine.h"
#include "core/log.h"
#include "core/status.h"

namespace leat::client {
namespace {

std::shared_ptr<Lane> LaneOf(const Lender::Key& key) {
  return std::static_pointer_cast<Lane>(key);
}

}  // namespace

Lender::Events Engine::LenderEvents() {
  // The lender is stopped before the engine goes: `this` is safe.
  return {
      .ready =
          [this](const Lender::Key& key) {
            MutexLock lock(&mu_);
            fetcher_.leases().LendingReady(*LaneOf(key));
            Settle();
          },
      .failed =
          [this](const Lender::Key& key, const absl::Status& status) {
            OnLendingFailed(*LaneOf(key), status);
          },
      .lent =
          [this](const Lender::Key& key, uint64_t memory_id,
                 const absl::Status& status) {
            MutexLock lock(&mu_);
            fetcher_.leases().Lent(*LaneOf(key), memory_id, status);
            Settle();
          },
      .returned =
          [this](const Lender::Key& key, uint64_t memory_id) {
            MutexLock lock(&mu_);
            fetcher_.leases().Returned(*LaneOf(key), memory_id);
          },
      .closed =
          [this](const Lender::Key& key) { OnLendingClosed(*LaneOf(key)); }};
}

void Engine::OnLendingFailed(Lane& lane, const absl::Status& status) {
  std::string worker;
  {
    MutexLock lock(&mu_);
    worker = fetcher_.table().WorkerOf(lane).name;
    fetcher_.leases().LendingFailed(lane, status);
    Settle();
  }
  LOG_DEBUG("lending.unavailable worker={} reason=\"{}\"", worker,
            Message(status));
}

void Engine::OnLendingClosed(Lane& lane) {
  std::shared_ptr<Link> link;
  std::string worker;
  {
    MutexLock lock(&mu_);
    if (!lane.closed && !cancelled_)
      worker = fetcher_.table().WorkerOf(lane).name;
    fetcher_.leases().LendingClosed(lane);
    Settle();
    if (lane.broken) link = lane.link;
  }
  if (!worker.empty()) LOG_DEBUG("lending.closed worker={}", worker);
  if (link) link->Cancel();
}

// Gives the step memory that no silent worker can write to. Not by the links'
// threads: fresh memory is slow.
void Engine::MoveStep(const std::shared_ptr<Step>& step) {
  absl::StatusOr<BatchPool::Buffer> buffer = options_.pool->Take();
  std::optional<MovePiece> piece;
  {
    MutexLock lock(&mu_);
    if (cancelled_) return;
    if (!buffer.ok()) {
      error_ = buffer.status();
      ready_.NotifyAll();
      return;
    }
    piece = fetcher_.leases().Evacuate(step, &*buffer);
    Settle();
  }
  if (piece) Move(*piece);
}

}  // namespace leat::client
