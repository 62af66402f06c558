// SPDX-License-Identifier: Apache-2.0
//
// Identity: distinguishes two versions of an object, and has a text.
//
//   size=10 mtime_ns=1700000000123456789      local files
//   size=10 etag="d41d8cd9"                   a strong ETag
//   size=10 modified="Tue, 15 Nov 1994 ..."   http without a strong ETag
//   size=10                                   http with neither
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace leat::worker {

struct Identity {
  enum class Kind { kSize, kMtimeNs, kEtag, kModified };

  uint64_t size = 0;
  Kind kind = Kind::kSize;
  std::string version;  // digits, or the ETag without quotes, or the date

  std::string Text() const;
  bool operator==(const Identity&) const = default;
};

// Returns the identity in http headers: a strong ETag takes precedence over
// Last-Modified; values that are not UTF-8, with control characters or of more
// than 1024 bytes are ignored.
Identity HttpIdentity(uint64_t size, std::string_view etag,
                      std::string_view last_modified);
Identity LocalIdentity(uint64_t size, int64_t mtime_seconds,
                       int64_t mtime_nanoseconds);

// Returns the text of an identity that holds on any machine. For local files
// only the size is kept, because copies differ in time. Any other text is
// returned unchanged.
std::string WithoutTime(std::string_view text);

// kInvalidArgument: not the text of an identity; names `uri` and the text.
absl::StatusOr<Identity> ParseIdentity(std::string_view text,
                                       std::string_view uri);

}  // namespace leat::worker
