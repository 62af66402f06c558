// SPDX-License-Identifier: Apache-2.0
//
// PositionShares: the shares that a mixture dealt its rows by up to a position.
// A position contains them if they fit, so that a job that does not fit it can
// say from which step on its shares are others.
//
// Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/plan/mixture.h"
#include "core/plan/share_schedule.h"
#include "leat/stored/v1/records.pb.h"

namespace leat::client {

struct PositionShares {
  const ShareSchedule* schedule = nullptr;  // nullptr: the job is no mixture
  const std::vector<MixedSource>* sources = nullptr;
  uint64_t step = 0;  // the position's, counted over all epochs
};

// Adds the segments that begin before the position's step, and always the
// first; none if they certainly do not fit.
void AddShares(const PositionShares& shares, stored::v1::Position* position);

// Returns, for people, from which step on the position's shares differ from
// those of this job, with both: "from step 6 on its shares are web 0.7,
// books 0.3, here web 0.5, books 0.5". Empty: they are equal before the
// position's step, or not known. The position may have any content.
std::string SharesDifference(const stored::v1::Position& position,
                             const PositionShares& own);

}  // namespace leat::client
