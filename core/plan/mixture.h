// SPDX-License-Identifier: Apache-2.0
//
// The parts of a JobSpec (job.h) that describe a mixture: several pipelines
// whose rows one job deals out in shares.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/pipeline/graph.h"
#include "core/plan/selection.h"

namespace leat {

inline constexpr size_t kMaxSources = 1000;  // of a mixture
inline constexpr size_t kMaxSegments = 1024;

// MixedSource is one pipeline of a mixture. People read its name; no row
// depends on it.
struct MixedSource {
  std::string name;
  Graph pipeline;
  Selection selection;

  friend bool operator==(const MixedSource&, const MixedSource&) = default;
};

// The weights that are in force from a step on, until the next segment begins.
// Steps are counted over all epochs.
struct SharesFrom {
  uint64_t from_step = 0;
  std::vector<double> weights;  // one per source

  friend bool operator==(const SharesFrom&, const SharesFrom&) = default;
};

// When an epoch of a mixture ends. The values are those of leat.v1.
enum class MixEnd : uint8_t {
  kStream = 1,  // never
  kFirst = 2,   // before a source begins its second pass
  kAll = 3,     // when every source has ended its first pass
};
std::string_view Name(MixEnd ends);  // "stream", "first", "all"

}  // namespace leat
