// SPDX-License-Identifier: Apache-2.0
#include "server/coordinator/parts/writes.h"

#include <utility>

#include "core/log.h"
#include "core/status.h"

namespace leat::server {

void Writes::Enqueue(std::unique_ptr<Write> write, Effects* effects) {
  if (stopped_)
    return write->Failed(Unavailable("the coordinator is stopping"), effects);
  if (waiting_.size() >= most_)
    return write->Failed(ResourceExhausted("{} changes wait to be written, the "
                                           "limit",
                                           waiting_.size()),
                         effects);
  waiting_.push_back(std::move(write));
  effects->Add(wake_);
}

bool Writes::Next(Now now, std::optional<Event>* event, Effects* effects) {
  if (current_ != nullptr || waiting_.empty()) return false;
  std::unique_ptr<Write> write = std::move(waiting_.front());
  waiting_.pop_front();
  absl::StatusOr<std::optional<Event>> decided = write->Decide(effects);
  if (!decided.ok()) {
    write->Failed(decided.status(), effects);
    return true;
  }
  if (!decided->has_value()) {
    write->Applied(effects);
    return true;
  }
  (*decided)->at = now.wall;
  // The store must not get an event that cannot be applied.
  if (const absl::Status fits = state_->Check(**decided); !fits.ok()) {
    write->Failed(fits, effects);
    return true;
  }
  current_ = std::move(write);
  *event = *std::move(decided);
  return true;
}

void Writes::End(const Event& event, const absl::Status& appended,
                 Effects* effects) {
  const std::unique_ptr<Write> write = std::move(current_);
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
    effects->Add(
        [appended] { LOG_ERROR("state.not_written {}", Message(appended)); });
  }
  if (status.ok())
    write->Applied(effects);
  else
    write->Failed(status, effects);
}

void Writes::Stop(Effects* effects) {
  stopped_ = true;
  for (const std::unique_ptr<Write>& write : std::exchange(waiting_, {}))
    write->Failed(Unavailable("the coordinator is stopping"), effects);
}

}  // namespace leat::server
