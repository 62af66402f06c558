// SPDX-License-Identifier: Apache-2.0
//
// SlowestSources: the sources of mixtures for which storage took the most time
// lately. A job may have 1,000 sources, and a report names kReported of each
// job.
//
// The time of a read counts when it ends, so a slow source has nothing new in
// some reports. What it took in earlier ones counts, too, less with each, so
// that reports name the same sources: only their differences say something.
//
// Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "leat/v1/types.pb.h"

namespace leat::worker {

class SlowestSources {
 public:
  static constexpr size_t kReported = 4;
  // By job: the time that storage took for each source, in nanoseconds.
  using Times = std::map<std::string, std::vector<uint64_t>, std::less<>>;

  // Adds to the jobs in `stats` the sources whose times have grown the most.
  void Add(const Times& now, v1::WorkerStats* stats);

 private:
  struct Job {
    std::vector<uint64_t> times;
    std::vector<double> recent;  // growth, less of it the older it is
  };
  std::map<std::string, Job, std::less<>> last_;
};

}  // namespace leat::worker
