// SPDX-License-Identifier: Apache-2.0
#include "worker/session/known_tokens.h"

#include <algorithm>
#include <chrono>

#include "core/log.h"
#include "rpc/wire/times.h"

namespace leat::worker {
namespace {

bool Read(const v1::KnownAccessToken& from, AccessToken* to) {
  const absl::StatusOr<Role> role = RoleFrom(from.role());
  if (!role.ok() || !CheckTokenName(from.name()).ok() ||
      !CheckTokenName(from.id()).ok())
    return false;
  const absl::StatusOr<Digest> hash = DigestOf("sha256", from.sha256());
  if (!hash.ok()) return false;
  to->id = from.id();
  to->name = from.name();
  to->role = *role;
  to->sha256 = *hash;
  if (from.has_expires_at()) to->expires_at = rpc::FromProto(from.expires_at());
  return true;
}

}  // namespace

std::shared_ptr<const AccessTokens> TokensIn(
    const v1::KnownAccessTokens& message) {
  auto list = std::make_shared<AccessTokens>();
  list->instance = message.instance();
  list->version = message.version();
  for (const v1::KnownAccessToken& each : message.tokens()) {
    AccessToken token;
    if (list->tokens.size() >= kMaxAccessTokens) break;
    if (Read(each, &token)) list->tokens.push_back(std::move(token));
  }
  if (const size_t taken = list->tokens.size();
      taken < static_cast<size_t>(message.tokens_size()))
    LOG_WARN("access.tokens_left_out taken={} told={}", taken,
             message.tokens_size());
  std::ranges::stable_sort(list->tokens, {}, &AccessToken::id);
  return list;
}

}  // namespace leat::worker
