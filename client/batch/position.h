// SPDX-License-Identifier: Apache-2.0
//
// Position: the step that a consumer delivers next, as the bytes that a trainer
// keeps in its checkpoint: a magic, a checksum, and a serialised
// leat.stored.v1.Position.
//
// Pure functions; thread-safe. Old positions stay readable for ever.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "client/batch/position_shares.h"
#include "client/leat/client.h"
#include "core/hash.h"

namespace leat::client {

// The hashes by which positions name a job's plan (core/plan/job.h):
// PositionHash in new positions, PlanHash in positions of older releases.
struct PositionHashes {
  Digest position_hash{};
  Digest plan_hash{};
  PositionShares shares{};
};

// Encodes a consumer's next step. Under 1,024 bytes.
// A mixture's has its shares, if there is room.
std::string EncodePosition(std::string_view job, const Digest& position_hash,
                           const EpochStep& next,
                           const PositionShares& shares = {});

// Returns the hashes of a job's plan up to a step. Those of a mixture depend on
// it, since segments and sources may be appended later.
using HashesAt = absl::FunctionRef<PositionHashes(const EpochStep& next)>;

// kInvalidArgument: not a position, damaged, of a later format, of another job
// or of another plan of the same job (names both, the position's step, and of
// mixtures the step from which the shares differ), or a step that the job does
// not have.
absl::StatusOr<EpochStep> DecodePosition(std::string_view position,
                                         std::string_view job, HashesAt own,
                                         uint64_t steps_per_epoch);

}  // namespace leat::client
