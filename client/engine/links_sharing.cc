// SPDX-License-Identifier: Apache-2.0
//
// The memory sockets: sharing memory, and the events of the MemorySharer.
#include <string>
#include <utility>

#include "client/engine/links.h"
#include "core/log.h"
#include "core/status.h"

namespace leat::client {
namespace {

std::shared_ptr<WorkerStream> StreamOf(const MemorySharer::Key& key) {
  return std::static_pointer_cast<WorkerStream>(key);
}

}  // namespace

void Links::Share(std::vector<Offer> offers) {
  for (Offer& offer : offers)
    sharer_.Share(std::move(offer.stream), std::move(offer.memory));
}

MemorySharer::Events Links::SharerEvents() {
  // The sharer is a member: `this` is safe.
  return {.ready =
              [this](const MemorySharer::Key& key) {
                MutexLock lock(&state_.mu);
                state_.fetcher.leases().SharingReady(*StreamOf(key));
                state_.Settle();
              },
          .failed =
              [this](const MemorySharer::Key& key, const absl::Status& status) {
                OnSharingFailed(*StreamOf(key), status);
              },
          .shared =
              [this](const MemorySharer::Key& key, uint64_t memory_id,
                     const absl::Status& status) {
                MutexLock lock(&state_.mu);
                state_.fetcher.leases().Shared(*StreamOf(key), memory_id,
                                               status);
                state_.Settle();
              },
          .returned =
              [this](const MemorySharer::Key& key, uint64_t memory_id) {
                MutexLock lock(&state_.mu);
                state_.fetcher.leases().Returned(*StreamOf(key), memory_id);
              },
          .closed =
              [this](const MemorySharer::Key& key) {
                OnSharingClosed(*StreamOf(key));
              }};
}

void Links::OnSharingFailed(WorkerStream& stream, const absl::Status& status) {
  std::string worker;
  {
    MutexLock lock(&state_.mu);
    worker = state_.fetcher.table().WorkerOf(stream).name;
    state_.fetcher.leases().SharingFailed(stream, status);
    state_.Settle();
  }
  LOG_DEBUG("sharing.unavailable worker={} reason=\"{}\"", worker,
            Message(status));
}

void Links::OnSharingClosed(WorkerStream& stream) {
  std::shared_ptr<Link> link;
  std::string worker;
  {
    MutexLock lock(&state_.mu);
    if (!stream.closed && !state_.cancelled)
      worker = state_.fetcher.table().WorkerOf(stream).name;
    state_.fetcher.leases().SharingClosed(stream);
    state_.Settle();
    if (stream.broken) link = stream.link;
  }
  if (!worker.empty()) LOG_DEBUG("sharing.closed worker={}", worker);
  if (link) link->Cancel();
}

}  // namespace leat::client
