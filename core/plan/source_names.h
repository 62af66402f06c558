// SPDX-License-Identifier: Apache-2.0
//
// The source of a mixture that a sample is of, for people.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/plan/job.h"

namespace leat {

// Returns the name of the source that a sample of the job is of; empty: the job
// is no mixture, or has no such sample. O(sources).
inline std::string_view SourceNameOf(const JobInfo& job, uint64_t sample) {
  uint64_t end = 0;
  for (size_t i = 0; i < job.spec.sources.size(); ++i) {
    end += job.datasets[i].shards.num_samples();
    if (sample < end) return job.spec.sources[i].name;
  }
  return "";
}

}  // namespace leat
