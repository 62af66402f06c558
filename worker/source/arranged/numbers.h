// SPDX-License-Identifier: Apache-2.0
//
// Walks the numbers of an arrangement (core/plan/arrangement.h). A file may have
// any count of them: they are never in memory all at once.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "core/plan/arrangement.h"
#include "worker/source/source.h"

namespace leat::worker {

// Numbers of a file that are not ascending are compared with all others in a
// map of a bit per sample, of this many at most.
inline constexpr uint64_t kMaxUnorderedSamples = uint64_t{1} << 32;

// Calls `use` with each number, in order; ends with its error. `samples`: how
// many the dataset has, which messages call `name`. Without numbers: all of
// them. kInvalidArgument: a number of `samples` or more, or one that comes
// twice (names it); a file without numbers, of several axes, or of other than
// whole numbers. kResourceExhausted: over kMaxUnorderedSamples. kCancelled:
// SourceLimits::cancelled. Others: storage's.
absl::Status ForEachNumber(const Numbers& numbers, const std::string& name,
                           uint64_t samples, const SourceLimits& limits,
                           const std::function<absl::Status(uint64_t)>& use);

}  // namespace leat::worker
