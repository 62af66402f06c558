// SPDX-License-Identifier: Apache-2.0
#include "worker/session/slowest_sources.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace leat::worker {

void SlowestSources::Add(Times now, v1::WorkerStats* stats) {
  for (v1::JobRows& job : *stats->mutable_job_rows()) {
    const auto found = now.find(job.job());
    if (found == now.end()) continue;
    const std::vector<uint64_t>& times = found->second;
    std::vector<uint64_t> grown = times;
    // Another job may have had the name.
    if (const auto last = last_.find(job.job());
        last != last_.end() && last->second.size() == times.size())
      for (size_t source = 0; source < times.size(); ++source)
        grown[source] -= std::min(times[source], last->second[source]);
    std::vector<uint32_t> order(times.size());
    std::iota(order.begin(), order.end(), 0);
    const size_t most = std::min(kReported, order.size());
    std::partial_sort(
        order.begin(), order.begin() + static_cast<long>(most), order.end(),
        [&grown](uint32_t a, uint32_t b) { return grown[a] > grown[b]; });
    job.set_storage_ns_total(
        std::accumulate(times.begin(), times.end(), uint64_t{0}));
    for (size_t i = 0; i < most && grown[order[i]] > 0; ++i) {
      v1::SourceReads& reads = *job.add_slowest_sources();
      reads.set_source(order[i]);
      reads.set_storage_ns_total(times[order[i]]);
    }
  }
  last_ = std::move(now);
}

}  // namespace leat::worker
