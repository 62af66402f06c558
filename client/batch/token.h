// SPDX-License-Identifier: Apache-2.0
//
// Token: where a consumer is, as the bytes that a trainer keeps in its
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

// What a job's tokens may name (core/plan/job.h): TokenHash, which new ones do,
// and PlanHash, which those of older releases do.
struct TokenNames {
  Digest token_hash{};
  Digest plan_hash{};
};

// Of a consumer whose next step is `position`. Under 1,024 bytes.
std::string EncodeToken(std::string_view job, const Digest& token_hash,
                        const Position& position);

// kInvalidArgument: not a token, damaged, of a later format, of another job or
// of another plan of the same job (names both, and where the token stands), or
// a step that the job does not have.
absl::StatusOr<Position> DecodeToken(std::string_view token,
                                     std::string_view job,
                                     const TokenNames& own,
                                     uint64_t steps_per_epoch);

}  // namespace leat::client
