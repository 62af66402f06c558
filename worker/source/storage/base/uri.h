// SPDX-License-Identifier: Apache-2.0
//
// Parses URIs of storage.
//
// Keys of s3:// and gs:// are used unchanged (as Amazon's tools do): "s3://b/a
// b?c%20" has the key "a b?c%20". http and file URIs are escaped.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace leat::worker {

enum class UriScheme { kLocal, kHttp, kS3, kGs };

struct StorageUri {
  UriScheme scheme = UriScheme::kLocal;
  // kLocal: the path. kHttp: the whole URI. kS3, kGs: the key, maybe empty.
  std::string path;
  std::string bucket;  // kS3, kGs
  std::string name;    // for messages
};

// kInvalidArgument: an unknown scheme, an empty path, a zero byte, a name that
// no bucket can have, or longer than 4096 bytes; names the URI and what is
// wanted.
absl::StatusOr<StorageUri> ParseUri(std::string_view uri);

// Returns the URI of the entry `name` (as List names it) below `uri`; escapes
// it if the scheme requires that.
std::string JoinUri(std::string_view uri, std::string_view name);
// True if it is a path or file:// URI.
bool IsLocalUri(std::string_view uri);

// Escapes as %XX all but letters, digits, "-_.~" and the characters of `keep`.
std::string PercentEncode(std::string_view text, std::string_view keep = "");
// Reverses PercentEncode; a '%' without two hex digits is unchanged. `plus`:
// '+' is a space.
std::string PercentDecode(std::string_view text, bool plus = false);

}  // namespace leat::worker
