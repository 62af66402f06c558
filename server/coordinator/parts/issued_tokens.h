// SPDX-License-Identifier: Apache-2.0
//
// IssuedTokens creates, revokes and distributes access tokens.
//
//   Create, Revoke ─► durable event ─┐
//   Recover ─────────────────────────┼─► Publish: a list with a new version ─►
//   Tick, when a token expires ──────┘   this daemon, and every worker session
//
// Thread-compatible; the owner locks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/coordinator/parts/deferred_actions.h"
#include "server/coordinator/parts/sessions.h"
#include "server/coordinator/parts/transactions.h"
#include "server/state/state.h"

namespace leat::server {

class IssuedTokens {
 public:
  using Told = std::function<void(std::shared_ptr<const AccessTokens>)>;

  // All pointers outlive it.
  IssuedTokens(const State* state, Sessions* sessions,
               Transactions* transactions, uint64_t instance,
               std::function<void()> wake);
  // `told` is called without the lock, with every new list.
  void set_told(Told told) { told_ = std::move(told); }

  // See Coordinator's CreateAccess and RevokeAccess.
  void Create(const AccessToken& token, Now now, AnsweredTransaction::Done done,
              DeferredActions* deferred);
  void Revoke(const std::string& key, Now now, AnsweredTransaction::Done done,
              DeferredActions* deferred);
  // Sends the list, without expired tokens, to the daemon and all worker
  // sessions.
  void Publish(Now now, DeferredActions* deferred);
  // Returns when Publish is due; max(): no token expires.
  MonotonicTime due() const { return due_; }
  // Has version 0 before the first Publish.
  const std::shared_ptr<const AccessTokens>& list() const { return list_; }

 private:
  absl::StatusOr<std::string> Find(const std::string& key) const;
  // Enqueues a change of the tokens. `what`: for the log.
  void Change(PlainTransaction::Decision decide, const std::string& what,
              Now now, AnsweredTransaction::Done done,
              DeferredActions* deferred);

  const State* const state_;
  Sessions* const sessions_;
  Transactions* const transactions_;
  const uint64_t instance_;
  const std::function<void()> wake_;
  Told told_;
  std::shared_ptr<const AccessTokens> list_;
  MonotonicTime due_ = MonotonicTime::max();
};

}  // namespace leat::server
