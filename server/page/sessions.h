// SPDX-License-Identifier: Apache-2.0
//
// PageSessions: who has signed in to the page. A browser cannot show an access
// token when somebody follows a link, so a person gives it once, and a cookie
// with a random number stands for it from then on. The token itself is in no
// cookie: on one machine, cookies of one server are sent to all of them.
//
// Sessions are in memory, end with their time, and are bounded: the one that
// was used the longest ago goes for a new one. Whether the token still opens
// anything is asked for each request, by others.
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

  // The number of a new session. kUnavailable: no random bytes.
  absl::StatusOr<std::string> Open(std::string_view token, MonotonicTime now);
  // The token that was given; empty: there is no such session.
  std::string TokenOf(std::string_view number, MonotonicTime now);
  void Close(std::string_view number);
  size_t size() const { return sessions_.size(); }

 private:
  struct Session {
    std::string token;
    MonotonicTime opened{}, used{};
  };
  // By the hash of the number, so that a search tells nothing by its time.
  std::map<std::string, Session, std::less<>> sessions_;
};

}  // namespace leat::server
