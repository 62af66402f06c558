// SPDX-License-Identifier: Apache-2.0
//
// PageSessions: the sign-ins to the page. A browser cannot send an access token
// when a person follows a link, so the person enters it once, and a cookie with
// a random number replaces it from then on. The token itself is in no cookie:
// cookies of one server on a machine are sent to all servers there.
//
// Sessions are in memory, expire, and are bounded: the least recently used one
// makes room for a new one. The caller checks for each request whether the
// token is still valid.
//
// Thread-compatible. Time: callers pass `now`.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "core/clock.h"

namespace leat::server {

class PageSessions {
 public:
  static constexpr size_t kMost = 256;
  static constexpr Duration kLifetime = std::chrono::hours(12);

  // Returns the number of a new session. kUnavailable: no random bytes.
  absl::StatusOr<std::string> Open(std::string_view token, MonotonicTime now);
  // Returns the session's token; empty: there is no such session.
  std::string TokenOf(std::string_view number, MonotonicTime now);
  void Close(std::string_view number);
  size_t size() const { return sessions_.size(); }

 private:
  struct Session {
    std::string token;
    MonotonicTime opened{}, used{};
  };
  // Keyed by the hash of the number, so that the time of a search reveals
  // nothing.
  std::map<std::string, Session, std::less<>> sessions_;
};

}  // namespace leat::server
