// SPDX-License-Identifier: Apache-2.0
//
// The settings that operators made, as parts of a State: drained workers,
// access tokens, bounds of pools, muted findings. Each is a map with the events
// that change it.
//
// Thread-compatible.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/status.h"
#include "server/state/events.h"

namespace leat::server {

class KeptDrains {
 public:
  void Apply(WallTime at, const WorkerDrained& drained) {
    since_.try_emplace(drained.name, at);
  }
  void Apply(WallTime, const WorkerUndrained& undrained) {
    since_.erase(undrained.name);
  }
  void AddEvents(std::vector<Event>* events) const {
    for (const auto& [name, at] : since_)
      events->push_back({at, WorkerDrained{name}});
  }
  const std::map<std::string, WallTime>& all() const { return since_; }

 private:
  std::map<std::string, WallTime> since_;  // by worker
};

class KeptTokens {
 public:
  // kAlreadyExists, kNotFound.
  absl::Status Check(const AccessCreated& created) const {
    if (tokens_.contains(created.token.id))
      return AlreadyExists("access token {} exists", created.token.id);
    return absl::OkStatus();
  }
  absl::Status Check(const AccessRevoked& revoked) const {
    if (!tokens_.contains(revoked.id))
      return NotFound("no access token {}", revoked.id);
    return absl::OkStatus();
  }
  void Apply(WallTime at, const AccessCreated& created) {
    AccessToken& token = tokens_[created.token.id] = created.token;
    token.created_at = at;
  }
  void Apply(WallTime, const AccessRevoked& revoked) {
    tokens_.erase(revoked.id);
  }
  void AddEvents(std::vector<Event>* events) const {
    for (const auto& [id, token] : tokens_)
      events->push_back({token.created_at, AccessCreated{token}});
  }
  const std::map<std::string, AccessToken>& all() const { return tokens_; }

 private:
  std::map<std::string, AccessToken> tokens_;  // by id
};

class KeptPools {
 public:
  struct Bounded {
    PoolBounds bounds;
    WallTime at{};
  };
  void Apply(WallTime at, const PoolBounded& bounded) {
    if (bounded.bounds.max == 0)
      pools_.erase(bounded.pool);
    else
      pools_[bounded.pool] = {bounded.bounds, at};
  }
  void AddEvents(std::vector<Event>* events) const {
    for (const auto& [name, pool] : pools_)
      events->push_back({pool.at, PoolBounded{name, pool.bounds}});
  }
  const std::map<std::string, Bounded>& all() const { return pools_; }

 private:
  std::map<std::string, Bounded> pools_;  // by name
};

class KeptMutes {
 public:
  void Apply(WallTime at, const FindingMuted& muted) {
    mutes_[muted.code] = muted;
    since_[muted.code] = at;
  }
  void Apply(WallTime, const FindingUnmuted& unmuted) {
    mutes_.erase(unmuted.code);
    since_.erase(unmuted.code);
  }
  void AddEvents(std::vector<Event>* events) const {
    for (const auto& [code, muted] : mutes_)
      events->push_back({since_.at(code), muted});
  }
  const std::map<std::string, FindingMuted>& all() const { return mutes_; }

 private:
  std::map<std::string, FindingMuted> mutes_;  // by code
  std::map<std::string, WallTime> since_;      // by code
};

}  // namespace leat::server
