// SPDX-License-Identifier: Apache-2.0
#include "server/coordinator/parts/settling.h"

#include <algorithm>

namespace leat::server {

void Settling::Ask(SessionId consumer) {
  Consumer* const asks = sessions_.consumers().Find(consumer);
  if (asks == nullptr || asks->settles != 0) return;
  asks->settles = ++newest_;
  waiting_.insert(consumer);
  sessions_.WakeWorkersLater();
  Check();
}

uint64_t Settling::Take(WorkerSession* worker) const {
  if (waiting_.empty() || worker->asked == newest_ ||
      worker->asked != worker->answered)
    return 0;
  worker->asked = newest_;
  return newest_;
}

bool Settling::Answered(SessionId session, WorkerSession* worker,
                        uint64_t number) {
  if (number != worker->asked || number == worker->answered) return false;
  worker->answered = number;
  if (number != newest_) sessions_.WakeLater(session);
  return Check() || number != newest_;
}

bool Settling::Check() {
  if (waiting_.empty()) return false;
  uint64_t answered = newest_;
  for (const auto& [name, worker] : membership_.workers()) {
    if (worker.lost) continue;
    const auto session = sessions_.workers().find(worker.session);
    answered = session == sessions_.workers().end()
                   ? 0  // it may come back with what it has not told
                   : std::min(answered, session->second.answered);
    if (answered == 0) return false;
  }
  bool woken = false;
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    Consumer* const consumer = sessions_.consumers().Find(*it);
    if (consumer != nullptr && consumer->settles > answered) {
      ++it;
      continue;
    }
    if (consumer != nullptr) {
      consumer->settled = woken = true;
      sessions_.WakeLater(*it);
    }
    it = waiting_.erase(it);
  }
  return woken;
}

}  // namespace leat::server
