// SPDX-License-Identifier: Apache-2.0
//
// Settling knows whether all workers have reported the bad samples that they had
// met when a consumer came to its end. Without it a run that is shorter than the
// heartbeat interval would end before the verdict on a job with a budget.
//
//   Ask(consumer 7)         a, b are sent ReportNow 1
//   Answered(a, 1)          b has not answered yet
//   Ask(consumer 8)         a is sent ReportNow 2; b is not, before it answers
//   Answered(b, 1)          7 is settled, and woken; b is sent ReportNow 2
//
// A worker that is lost is not waited for. Consumers bound their wait
// themselves. Thread-compatible; the owner locks.
#pragma once

#include <cstdint>
#include <set>

#include "server/coordinator/parts/sessions.h"
#include "server/membership/membership.h"
#include "server/state/types.h"

namespace leat::server {

class Settling {
 public:
  // Both outlive it.
  Settling(const Membership* membership, Sessions* sessions)
      : membership_(*membership), sessions_(*sessions) {}

  // The consumer is at its end, and requests the verdict. Once per session.
  void Ask(SessionId consumer);
  // Returns the number of the v1.ReportNow to send to the worker; 0: none now.
  uint64_t Take(WorkerSession* worker) const;
  // `number`: as in v1.Heartbeat. Returns whether consumers are to be woken.
  bool Answered(SessionId session, WorkerSession* worker, uint64_t number);
  // Looks for lost workers. Returns whether consumers are to be woken.
  bool Check();
  void Leave(SessionId consumer) { waiting_.erase(consumer); }

 private:
  const Membership& membership_;
  Sessions& sessions_;
  uint64_t newest_ = 0;
  std::set<SessionId> waiting_;  // consumers
};

}  // namespace leat::server
