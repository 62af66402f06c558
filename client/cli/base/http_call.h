// SPDX-License-Identifier: Apache-2.0
//
// CallHttp: one HTTP or HTTPS request, and its answer, within a time limit.
//
// The answer's size is bounded, redirects are not followed, and a server's
// certificate must be valid for its name. Thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace leat::cli {

struct HttpCall {
  std::string method = "GET";
  std::string url;
  std::vector<std::string> headers;  // "Name: value"
  std::string body;                  // empty: none
  // PEM. Without `ca` the machine's certificate authorities are trusted.
  std::string ca, cert, key;
  absl::Duration limit = absl::Seconds(10);
};

struct HttpReply {
  int status = 0;
  std::string body;
  absl::Duration retry_after;  // requested by the server; zero: none
};

// Bound on the bytes of an answer's body.
inline constexpr size_t kMaxHttpBody = 16 << 20;

// Returns errors of reaching the server only; any answer is OK, whatever its
// status. kUnavailable: no connection, or it broke. kDeadlineExceeded: `limit`.
// kResourceExhausted: the answer is too large. kFailedPrecondition: a
// certificate is wrong, the server's or the caller's own. kInvalidArgument: the
// URL.
absl::StatusOr<HttpReply> CallHttp(const HttpCall& call);

}  // namespace leat::cli
