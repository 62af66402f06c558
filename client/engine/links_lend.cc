// SPDX-License-Identifier: Apache-2.0
//
// The lending sockets: what is lent, and what the Lender tells.
#include <string>
#include <utility>

#include "client/engine/links.h"
#include "core/log.h"
#include "core/status.h"

namespace leat::client {
namespace {

std::shared_ptr<WorkerStream> StreamOf(const Lender::Key& key) {
  return std::static_pointer_cast<WorkerStream>(key);
}

}  // namespace

void Links::Lend(std::vector<Loan> loans) {
  for (Loan& loan : loans)
    lender_.Lend(std::move(loan.stream), std::move(loan.memory));
}

Lender::Events Links::LenderEvents() {
  // The lender is a part of this: `this` is safe.
  return {
      .ready =
          [this](const Lender::Key& key) {
            MutexLock lock(&state_.mu);
            state_.fetcher.leases().LendingReady(*StreamOf(key));
            state_.Settle();
          },
      .failed =
          [this](const Lender::Key& key, const absl::Status& status) {
            OnLendingFailed(*StreamOf(key), status);
          },
      .lent =
          [this](const Lender::Key& key, uint64_t memory_id,
                 const absl::Status& status) {
            MutexLock lock(&state_.mu);
            state_.fetcher.leases().Lent(*StreamOf(key), memory_id, status);
            state_.Settle();
          },
      .returned =
          [this](const Lender::Key& key, uint64_t memory_id) {
            MutexLock lock(&state_.mu);
            state_.fetcher.leases().Returned(*StreamOf(key), memory_id);
          },
      .closed =
          [this](const Lender::Key& key) { OnLendingClosed(*StreamOf(key)); }};
}

void Links::OnLendingFailed(WorkerStream& stream, const absl::Status& status) {
  std::string worker;
  {
    MutexLock lock(&state_.mu);
    worker = state_.fetcher.table().WorkerOf(stream).name;
    state_.fetcher.leases().LendingFailed(stream, status);
    state_.Settle();
  }
  LOG_DEBUG("lending.unavailable worker={} reason=\"{}\"", worker,
            Message(status));
}

void Links::OnLendingClosed(WorkerStream& stream) {
  std::shared_ptr<Link> link;
  std::string worker;
  {
    MutexLock lock(&state_.mu);
    if (!stream.closed && !state_.cancelled)
      worker = state_.fetcher.table().WorkerOf(stream).name;
    state_.fetcher.leases().LendingClosed(stream);
    state_.Settle();
    if (stream.broken) link = stream.link;
  }
  if (!worker.empty()) LOG_DEBUG("lending.closed worker={}", worker);
  if (link) link->Cancel();
}

}  // namespace leat::client
