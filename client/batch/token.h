// SPDX-License-Identifier: Apache-2.0
//
// Token: a consumer's position, as the bytes that a trainer keeps in its
// checkpoint: a magic, a checksum, and a serialised leat.stored.v1.Token.
//
// Pure functions; thread-safe. Old tokens stay readable for ever.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "client/leat/client.h"
#include "core/hash.h"

namespace leat::client {

// The hashes by which tokens name a job's plan (core/plan/job.h): TokenHash in
// new tokens, PlanHash in tokens of older releases.
struct TokenNames {
  Digest token_hash{};
  Digest plan_hash{};
};

// Encodes the position `position` of a consumer's next step. Under 1,024 bytes.
std::string EncodeToken(std::string_view job, const Digest& token_hash,
                        const Position& position);

// kInvalidArgument: not a token, damaged, of a later format, of another job or
// of another plan of the same job (names both, and the token's position), or a
// step that the job does not have.
absl::StatusOr<Position> DecodeToken(std::string_view token,
                                     std::string_view job,
                                     const TokenNames& own,
                                     uint64_t steps_per_epoch);

}  // namespace leat::client
