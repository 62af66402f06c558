// SPDX-License-Identifier: Apache-2.0
#include "server/coordinator/parts/issued_tokens.h"

#include <algorithm>
#include <utility>

#include "core/log.h"
#include "core/status.h"

namespace leat::server {
namespace {

// Expiry is checked again after this long, since the wall clock may be set.
constexpr Duration kLookAtExpiries = std::chrono::minutes(1);

}  // namespace

IssuedTokens::IssuedTokens(const State* state, Sessions* sessions,
                           Transactions* transactions, uint64_t instance,
                           std::function<void()> wake)
    : state_(state),
      sessions_(sessions),
      transactions_(transactions),
      instance_(instance),
      wake_(std::move(wake)),
      list_(std::make_shared<AccessTokens>()) {}

void IssuedTokens::Publish(Now now, DeferredActions* deferred) {
  auto list = std::make_shared<AccessTokens>();
  list->instance = instance_;
  list->version = list_->version + 1;
  due_ = MonotonicTime::max();
  for (const auto& [id, token] : state_->access()) {
    if (token.ExpiredAt(now.wall)) continue;
    list->tokens.push_back(token);
    if (!token.expires_at) continue;
    // At the start the time is unknown: the first Tick checks.
    const MonotonicTime due =
        now.mono == MonotonicTime::min()
            ? now.mono
            : now.mono + std::min<Duration>(kLookAtExpiries,
                                            *token.expires_at - now.wall);
    due_ = std::min(due_, due);
  }
  const auto same = [](const AccessToken& a, const AccessToken& b) {
    return a.id == b.id;
  };
  if (list_->version > 0 &&
      std::ranges::equal(list_->tokens, list->tokens, same))
    return;
  list_ = std::move(list);
  sessions_->WakeWorkersLater();
  deferred->Add(wake_);
  if (told_) deferred->Add([call = told_, told = list_] { call(told); });
}

void IssuedTokens::Create(const AccessToken& token, Now now,
                          AnsweredTransaction::Done done,
                          DeferredActions* deferred) {
  const auto decide = [this, token]() -> absl::StatusOr<std::optional<Event>> {
    const size_t count = state_->access().size();
    if (count >= kMaxAccessTokens)
      return ResourceExhausted(
          "there are {} access tokens, the limit: revoke expired and "
          "unused ones",
          count);
    return Event{{}, AccessCreated{token}, {}};
  };
  Change(decide,
         fmt::format("created token={} name={} role={}", token.id, token.name,
                     Name(token.role)),
         now, std::move(done), deferred);
}

void IssuedTokens::Revoke(const std::string& key, Now now,
                          AnsweredTransaction::Done done,
                          DeferredActions* deferred) {
  const auto decide = [this, key]() -> absl::StatusOr<std::optional<Event>> {
    ASSIGN_OR_RETURN(const std::string id, Find(key));
    return Event{{}, AccessRevoked{id}, {}};
  };
  Change(decide, fmt::format("revoked token={}", key), now, std::move(done),
         deferred);
}

void IssuedTokens::Change(PlainTransaction::Decision decide,
                          const std::string& what, Now now,
                          AnsweredTransaction::Done done,
                          DeferredActions* deferred) {
  const auto changed = [=, this](DeferredActions* actions) {
    actions->Add([what] { LOG_INFO("access.{}", what); });
    Publish(now, actions);
  };
  transactions_->Enqueue(std::make_unique<PlainTransaction>(
                             std::move(decide), changed, std::move(done)),
                         deferred);
}

absl::StatusOr<std::string> IssuedTokens::Find(const std::string& key) const {
  if (state_->access().contains(key)) return key;
  std::vector<std::string> ids;
  for (const auto& [id, token] : state_->access())
    if (token.name == key) ids.push_back(id);
  if (ids.size() == 1) return ids.front();
  if (ids.empty()) return NotFound("no access token \"{}\"", key);
  return InvalidArgument(
      "{} access tokens have the name \"{}\": want an id: {}", ids.size(), key,
      fmt::join(ids, ", "));
}

}  // namespace leat::server
