// SPDX-License-Identifier: Apache-2.0
//
// Access tokens: made, revoked, and told.
//
//   CreateAccess, RevokeAccess ─► durable event ─┐
//   Recover ─────────────────────────────────────┼─► PublishAccess: a list with
//   Tick, when a token expires ──────────────────┘   a new version ─► this
//                                  daemon (on_access), and every worker session
#include <algorithm>
#include <utility>

#include "core/log.h"
#include "core/status.h"
#include "server/coordinator/coordinator.h"
#include "server/coordinator/internal.h"

namespace leat::server {
namespace {

// An expiry is looked at again after so long: the wall clock may be set.
constexpr Duration kLookAtExpiries = std::chrono::minutes(1);

}  // namespace

// Sends the list to whoever needs it, without those that have expired.
void Coordinator::PublishAccess(Now now, Effects* effects) {
  auto list = std::make_shared<AccessTokens>();
  list->instance = instance_;
  list->version = access_->version + 1;
  access_due_ = MonotonicTime::max();
  for (const auto& [id, token] : state_.access()) {
    if (token.ExpiredAt(now.wall)) continue;
    list->tokens.push_back(token);
    if (!token.expires_at) continue;
    // At the start nothing is known of the time: the first Tick looks.
    const MonotonicTime due =
        now.mono == MonotonicTime::min()
            ? now.mono
            : now.mono + std::min<Duration>(kLookAtExpiries,
                                            *token.expires_at - now.wall);
    access_due_ = std::min(access_due_, due);
  }
  const auto same = [](const AccessToken& a, const AccessToken& b) {
    return a.id == b.id;
  };
  if (access_->version > 0 &&
      std::ranges::equal(access_->tokens, list->tokens, same))
    return;
  access_ = std::move(list);
  for (auto& [id, session] : worker_sessions_) WakeLater(id, &session);
  effects->Add(wake_);
  if (on_access_)
    effects->Add([call = on_access_, told = access_] { call(told); });
}

void Coordinator::EnqueueAccess(
    std::function<absl::StatusOr<std::optional<Event>>()> decide,
    std::string what, Now now, Done done) {
  Effects effects;
  MutexLock lock(&mu_);
  Write write;
  write.decide = [decide = std::move(decide)](Effects*) { return decide(); };
  write.finish = [this, what = std::move(what), now, done = std::move(done)](
                     const absl::Status& status, Effects* inner) {
    mu_.AssertHeld();
    if (status.ok()) {
      inner->Add([what] { LOG_INFO("access.{}", what); });
      PublishAccess(now, inner);
    }
    inner->Add([done, status] { done(status); });
  };
  Enqueue(std::move(write), &effects);
}

void Coordinator::CreateAccess(const AccessToken& token, Now now, Done done) {
  absl::Status fits = CheckTokenName(token.name);
  if (fits.ok() && token.ExpiredAt(now.wall))
    fits = InvalidArgument("access token \"{}\": it would have expired already",
                           token.name);
  if (!fits.ok()) return done(fits);
  const auto decide = [this, token]() -> absl::StatusOr<std::optional<Event>> {
    mu_.AssertHeld();
    if (state_.access().size() >= kMaxAccessTokens)
      return ResourceExhausted(
          "there are {} access tokens, the limit: revoke those that nobody "
          "uses, expired ones too",
          state_.access().size());
    return Event{{}, AccessCreated{token}, {}};
  };
  EnqueueAccess(decide,
                fmt::format("created token={} name={} role={}", token.id,
                            token.name, Name(token.role)),
                now, std::move(done));
}

absl::StatusOr<std::string> Coordinator::FindAccess(
    const std::string& key) const {
  if (state_.access().contains(key)) return key;
  std::vector<std::string> ids;
  for (const auto& [id, token] : state_.access())
    if (token.name == key) ids.push_back(id);
  if (ids.size() == 1) return ids.front();
  if (ids.empty()) return NotFound("no access token \"{}\"", key);
  return InvalidArgument(
      "{} access tokens have the name \"{}\": want an id: {}", ids.size(), key,
      fmt::join(ids, ", "));
}

void Coordinator::RevokeAccess(const std::string& key, Now now, Done done) {
  const auto decide = [this, key]() -> absl::StatusOr<std::optional<Event>> {
    mu_.AssertHeld();
    ASSIGN_OR_RETURN(const std::string id, FindAccess(key));
    return Event{{}, AccessRevoked{id}, {}};
  };
  absl::Status fits = CheckTokenName(key);
  if (!fits.ok()) return done(fits);
  EnqueueAccess(decide, fmt::format("revoked token={}", key), now,
                std::move(done));
}

std::vector<AccessToken> Coordinator::Access() const {
  MutexLock lock(&mu_);
  std::vector<AccessToken> tokens;
  for (const auto& [id, token] : state_.access()) tokens.push_back(token);
  return tokens;
}

}  // namespace leat::server
