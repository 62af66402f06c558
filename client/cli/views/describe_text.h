// SPDX-License-Identifier: Apache-2.0
//
// Texts that several descriptions share.
#pragma once

#include <cstdint>
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

// Returns whether a consumer pulls the job's batches, or the position at which
// the last one ended is known.
inline bool HasPosition(const Json& job) {
  return Whole(job, "consumers") > 0 || !Text(job, "position_at").empty();
}

// Returns "120/1251"; "-" before a consumer has pulled a batch.
inline std::string Progress(const Json& item, std::string_view prefix) {
  const uint64_t steps = Whole(item, fmt::format("{}steps_per_epoch", prefix));
  if (steps == 0) return "-";
  return OfSteps(Whole(item, fmt::format("{}step", prefix)), "/", steps);
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
