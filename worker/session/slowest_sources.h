// SPDX-License-Identifier: Apache-2.0
//
// SlowestSources: the sources of mixtures for which storage took the most time
// since the last report. A job may have 1,000 sources, and a report names
// kReported of each job.
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

  // Adds to the jobs in `stats` the sources whose times have grown the most
  // since the last call.
  void Add(Times now, v1::WorkerStats* stats);

 private:
  Times last_;
};

}  // namespace leat::worker
