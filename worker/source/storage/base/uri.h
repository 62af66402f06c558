// SPDX-License-Identifier: Apache-2.0
//
// URIs of storage, taken apart.
//
// Keys of s3:// and gs:// are taken as they stand (as Amazon's tools do):
// "s3://b/a b?c%20" has the key "a b?c%20". http and file URIs are escaped.
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
// is no bucket's, or longer than 4096 bytes; names the URI and what is wanted.
absl::StatusOr<StorageUri> ParseUri(std::string_view uri);

// The URI of the entry `name` (as List names it) below `uri`; escapes what the
// scheme wants escaped.
std::string JoinUri(std::string_view uri, std::string_view name);
// Whether it is a path or file:// URI.
bool IsLocalUri(std::string_view uri);

// %XX for all but letters, digits, "-_.~" and what `keep` holds.
std::string PercentEncode(std::string_view text, std::string_view keep = "");
// The reverse; a '%' without two hex digits stays as it is. `plus`: '+' is a
// space.
std::string PercentDecode(std::string_view text, bool plus = false);

}  // namespace leat::worker
