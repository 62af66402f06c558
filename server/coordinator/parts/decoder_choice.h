// SPDX-License-Identifier: Apache-2.0
//
// DecoderChoice chooses the decoders that a plan begins with
// (server/state/decoders.h).
//
//   job written, workers changed ─► Soon ─► Tick
//     ─► a durable event: these plans began with the digest of the READY
//        workers that have the most threads in all
//     ─► their jobs and consumers leave the table of plans that have not begun
//        for the one of the digest
//
// Until then a plan's table contains none of the workers that report a digest:
// two workers with different digests could both serve it.
//
// Thread-compatible; the owner locks.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/plan/abilities.h"
#include "server/coordinator/parts/deferred_actions.h"
#include "server/coordinator/parts/tables.h"
#include "server/coordinator/parts/transactions.h"
#include "server/membership/membership.h"
#include "server/state/state.h"

namespace leat::server {

class DecoderChoice {
 public:
  // All pointers outlive it.
  DecoderChoice(const State* state, const Membership* membership,
                Sessions* sessions, Tables* tables, Transactions* transactions,
                std::function<void()> wake)
      : state_(state),
        membership_(membership),
        sessions_(sessions),
        tables_(tables),
        transactions_(transactions),
        wake_(std::move(wake)) {}

  // The state was loaded: its plans that have not begun wait as long as tables.
  void Recover();
  // Reports that there are plans that have not begun.
  void Soon(DeferredActions* deferred);
  // `changed`: the set of workers has changed.
  void Tick(bool changed, Now now, DeferredActions* deferred);
  MonotonicTime NextDeadline() const;  // max(): never

 private:
  class PinTransaction;
  // By what workers must be able to do for the plan's jobs.
  using PlansToPin = std::map<Abilities, std::vector<Digest>>;
  PlansToPin ToPin(DecoderClass decoder_class) const;
  std::optional<Decoders> MostThreads(DecoderClass decoder_class,
                                      const Abilities& needed) const;
  void MoveTables(const Digest& plan_hash, DeferredActions* deferred);

  const State* const state_;
  const Membership* const membership_;
  Sessions* const sessions_;
  Tables* const tables_;
  Transactions* const transactions_;
  const std::function<void()> wake_;
  std::optional<MonotonicTime> pin_at_;
  std::set<Digest> loaded_;  // not begun, waiting
};

}  // namespace leat::server
