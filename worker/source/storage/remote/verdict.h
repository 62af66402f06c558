// SPDX-License-Identifier: Apache-2.0
//
// Interprets an HTTP response: done, worth another try, or a permanent error.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "core/clock.h"
#include "worker/source/storage/base/config.h"
#include "worker/source/storage/http/http.h"
#include "worker/source/storage/s3/credentials.h"

namespace leat::worker {

struct Verdict {
  enum class Kind { kDone, kRetry, kFailed };
  Kind kind = Kind::kDone;
  absl::Status status;  // why not kDone
  // kRetry: the server asks for this wait.
  std::optional<StorageMs> wait;
  // kFailed: new credentials may help.
  bool stale_credentials = false;
  // kFailed: the object is not what was opened (412), or is shorter (416).
  bool changed = false;
};

// The request and the credentials used for it, for messages.
struct Asked {
  std::string what;    // "s3://b/k: cannot read 10 bytes at 5"
  std::string region;  // signed for; empty: nothing is signed
  Credentials credentials;
};

// Returns the verdict on a response other than the expected one. Redacted.
Verdict Explain(const HttpResponse& response, const Asked& asked, WallTime now);

// Parses seconds or a date; nullopt: neither.
std::optional<StorageMs> ParseRetryAfter(std::string_view text, WallTime now);

}  // namespace leat::worker
