// SPDX-License-Identifier: Apache-2.0
#include "server/page/sessions.h"

#include <algorithm>

#include "core/hash.h"
#include "core/status.h"
#include "rpc/access/access.h"

namespace leat::server {
namespace {

std::string KeyOf(std::string_view number) { return ToHex(HashOf(number)); }

}  // namespace

absl::StatusOr<std::string> PageSessions::Open(std::string_view token,
                                               MonotonicTime now) {
  ASSIGN_OR_RETURN(const std::string random, rpc::RandomTokenText());
  std::erase_if(sessions_, [now](const auto& each) {
    return now >= each.second.opened + kLifetime;
  });
  if (sessions_.size() >= kMost)
    sessions_.erase(std::min_element(sessions_.begin(), sessions_.end(),
                                     [](const auto& a, const auto& b) {
                                       return a.second.used < b.second.used;
                                     }));
  std::string number = ToHex(HashOf(random));
  sessions_[KeyOf(number)] = {std::string(token), now, now};
  return number;
}

std::string PageSessions::TokenOf(std::string_view number, MonotonicTime now) {
  if (number.empty()) return "";
  const auto found = sessions_.find(KeyOf(number));
  if (found == sessions_.end()) return "";
  if (now >= found->second.opened + kLifetime) {
    sessions_.erase(found);
    return "";
  }
  found->second.used = now;
  return found->second.token;
}

void PageSessions::Close(std::string_view number) {
  sessions_.erase(KeyOf(number));
}

}  // namespace leat::server
