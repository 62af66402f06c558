// SPDX-License-Identifier: Apache-2.0
#include "server/coordinator/parts/transactions.h"

#include <utility>

#include "core/log.h"
#include "core/status.h"

namespace leat::server {

void Transactions::Enqueue(std::unique_ptr<Transaction> transaction,
                           DeferredActions* deferred) {
  if (stopped_)
    return transaction->Failed(Unavailable("the coordinator is stopping"),
                               deferred);
  if (waiting_.size() >= most_)
    return transaction->Failed(
        ResourceExhausted("{} changes wait to be written, the "
                          "limit",
                          waiting_.size()),
        deferred);
  waiting_.push_back(std::move(transaction));
  deferred->Add(wake_);
}

bool Transactions::Next(Now now, std::optional<Event>* event,
                        DeferredActions* deferred) {
  if (current_ != nullptr || waiting_.empty()) return false;
  std::unique_ptr<Transaction> transaction = std::move(waiting_.front());
  waiting_.pop_front();
  absl::StatusOr<std::optional<Event>> decided = transaction->Decide(deferred);
  if (!decided.ok()) {
    transaction->Failed(decided.status(), deferred);
    return true;
  }
  if (!decided->has_value()) {
    transaction->Applied(deferred);
    return true;
  }
  (*decided)->at = now.wall;
  // The store must not get an event that cannot be applied.
  if (const absl::Status fits = state_->Check(**decided); !fits.ok()) {
    transaction->Failed(fits, deferred);
    return true;
  }
  current_ = std::move(transaction);
  *event = *std::move(decided);
  return true;
}

void Transactions::End(const Event& event, const absl::Status& appended,
                       DeferredActions* deferred) {
  const std::unique_ptr<Transaction> transaction = std::move(current_);
  last_ = appended;
  absl::Status status = appended;
  if (appended.ok()) {
    status = state_->Apply(event);
  } else if (absl::IsInternal(appended)) {
    status = Unavailable(
        "the coordinator cannot keep its state, and ends: {}; ask again when "
        "it is back",
        Message(appended));
  } else {
    deferred->Add(
        [appended] { LOG_ERROR("state.not_written {}", Message(appended)); });
  }
  if (status.ok())
    transaction->Applied(deferred);
  else
    transaction->Failed(status, deferred);
}

void Transactions::Stop(DeferredActions* deferred) {
  stopped_ = true;
  for (const std::unique_ptr<Transaction>& transaction :
       std::exchange(waiting_, {}))
    transaction->Failed(Unavailable("the coordinator is stopping"), deferred);
}

}  // namespace leat::server
