// SPDX-License-Identifier: Apache-2.0
//
// Texts that several descriptions share.
#pragma once

#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "client/cli/base/fields.h"
#include "client/cli/base/text.h"
#include "fmt/format.h"

namespace leat::cli {

// "2026-11-21T02:00:00Z (12m ago)".
inline std::string When(const Json& json, std::string_view path,
                        absl::Time now) {
  const std::string time = Text(json, path);
  if (time.empty()) return "";
  return fmt::format("{} ({} ago)", TimeText(time), AgeSince(time, now));
}

// Describes decoders: "1a2b3c4d5e6f (libjpeg-turbo 2.1.5)"; empty: not
// reported.
inline std::string DecodersText(const Json& decoders) {
  const std::string digest = HexOfBase64(Text(decoders, "digest"));
  if (digest.empty()) return "";
  return fmt::format("{} ({})", digest.substr(0, 12),
                     Text(decoders, "libraries"));
}

}  // namespace leat::cli
