// SPDX-License-Identifier: Apache-2.0
#include "worker/session/slowest_sources.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace leat::worker {
namespace {

// A growth counts so much of what it did in the report before.
constexpr double kRemains = 0.75;

}  // namespace

void SlowestSources::Add(const Times& now, v1::WorkerStats* stats) {
  std::map<std::string, Job, std::less<>> jobs;
  for (v1::JobRows& proto : *stats->mutable_job_rows()) {
    const auto found = now.find(proto.job());
    if (found == now.end()) continue;
    const std::vector<uint64_t>& times = found->second;
    Job& job = jobs[proto.job()];
    // Another job may have had the name.
    if (auto last = last_.find(proto.job());
        last != last_.end() && last->second.times.size() == times.size())
      job = std::move(last->second);
    job.times.resize(times.size());
    job.recent.resize(times.size());
    for (size_t i = 0; i < times.size(); ++i)
      job.recent[i] =
          kRemains * job.recent[i] +
          static_cast<double>(times[i] - std::min(times[i], job.times[i]));
    job.times = times;
    std::vector<uint32_t> order(times.size());
    std::iota(order.begin(), order.end(), 0);
    const size_t most = std::min(kReported, order.size());
    std::partial_sort(order.begin(), order.begin() + static_cast<long>(most),
                      order.end(), [&job](uint32_t a, uint32_t b) {
                        return job.recent[a] > job.recent[b];
                      });
    proto.set_storage_ns_total(
        std::accumulate(times.begin(), times.end(), uint64_t{0}));
    for (size_t i = 0; i < most; ++i) {
      v1::SourceReads& reads = *proto.add_slowest_sources();
      reads.set_source(order[i]);
      reads.set_storage_ns_total(times[order[i]]);
    }
  }
  last_ = std::move(jobs);
}

}  // namespace leat::worker
