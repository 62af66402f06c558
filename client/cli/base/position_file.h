// SPDX-License-Identifier: Apache-2.0
//
// The bytes that Batches::position() returns and BatchesOptions::position
// takes, as in docs/reference/protocol/hashes.md: "LEATTOK1", eight bytes of
// the payload's SHA-256, then a serialised leat.stored.v1.Position.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace leat::cli {

struct PositionInfo {
  uint32_t format = 0;
  std::string job;
  std::string plan_hash;  // hexadecimal
  uint64_t epoch = 0;
  uint64_t step = 0;  // the next to be delivered
};

bool LooksLikePosition(std::string_view bytes);
// kDataLoss: not a position, or damaged.
absl::StatusOr<PositionInfo> ParsePosition(std::string_view bytes);

}  // namespace leat::cli
