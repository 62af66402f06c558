// SPDX-License-Identifier: Apache-2.0
//
// The bytes that Batches::token() returns and BatchesOptions::token takes, as
// in docs/PROTOCOL.md: "LEATTOK1", eight bytes of the payload's SHA-256, then a
// serialised leat.stored.v1.Token.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace leat::cli {

struct TokenInfo {
  uint32_t format = 0;
  std::string job;
  std::string plan_hash;  // hexadecimal
  uint64_t epoch = 0;
  uint64_t step = 0;  // the next to be delivered
};

bool LooksLikeToken(std::string_view bytes);
// kDataLoss: not a token, or damaged.
absl::StatusOr<TokenInfo> ParseToken(std::string_view bytes);

}  // namespace leat::cli
