// SPDX-License-Identifier: Apache-2.0
#include "server/coordinator/pool_decisions.h"

#include <algorithm>
#include <utility>

namespace leat::server {
namespace {

// Statistics of a shorter period are meaningless.
constexpr Duration kLeastSeen = std::chrono::seconds(6);
// A wait that was not seen for this long is over.
constexpr Duration kStillWaits = std::chrono::seconds(6);
constexpr double kWaits = 0.02;
// The period of the demand of a pool that is not scaled.
constexpr Duration kDemandOf = std::chrono::seconds(20);

double WeightOf(const std::map<DecoderClass, double>& weights,
                DecoderClass decoder_class) {
  const auto found = weights.find(decoder_class);
  return found == weights.end() ? 0 : found->second;
}

// Returns what a job's consumers did since then, as one pool sees it, without
// whether it stalls. nullopt: no reports yet.
std::optional<PoolJob> PoolJobSince(const Statistics& statistics,
                                    const PoolJobSeen& from,
                                    const std::map<DecoderClass, double>& all,
                                    const std::map<DecoderClass, double>& own,
                                    MonotonicTime since) {
  std::optional<PoolJob> job;
  for (const std::string& name : from.consumers) {
    const auto did = statistics.OfConsumer(name, since);
    if (!did) continue;
    if (!job) job = PoolJob{.name = from.name};
    job->rows_per_s += did->rows_per_s;
    job->waiting = std::max(job->waiting, did->waiting);
  }
  if (!job) return std::nullopt;
  const double weight = WeightOf(all, from.decoder_class);
  if (weight > 0) job->share = WeightOf(own, from.decoder_class) / weight;
  return job;
}

}  // namespace

void PoolDecisions::Decide(MonotonicTime now, const WorkersSince& workers_since,
                           PoolsSeen* seen) {
  std::erase_if(policies_, [&](const auto& each) {
    return !seen->pools.contains(each.first);
  });
  for (auto& [name, pool] : seen->pools) {
    PoolPolicy& policy =
        policies_.try_emplace(name, scale_down_after_).first->second;
    pool.target = policy.Decide(
        pool.bounds, pool.workers,
        Jobs(*seen, pool, policy.LookFrom(now), now, workers_since), now);
  }
}

// Returns what the jobs did since then, as one pool sees it. nullopt: no
// reports yet.
std::optional<std::vector<PoolJob>> PoolDecisions::Jobs(
    const PoolsSeen& seen, const PoolSeen& pool, MonotonicTime since,
    MonotonicTime now, const WorkersSince& workers_since) const {
  if (now < since + kLeastSeen) return std::nullopt;
  std::vector<PoolJob> jobs;
  std::optional<WorkerSlots> workers;
  for (const PoolJobSeen& from : seen.jobs) {
    std::optional<PoolJob> told =
        PoolJobSince(*statistics_, from, seen.weights, pool.weights, since);
    if (!told) continue;
    PoolJob job = *std::move(told);
    std::optional<ConsumerPast> slowest;
    double lately = 0;
    for (const std::string& name : from.consumers) {
      if (const auto last = statistics_->OfConsumer(name, now - kStillWaits))
        lately = std::max(lately, last->waiting);
      std::optional<ConsumerPast> past = statistics_->PastOf(name, since);
      if (past && !past->waits.empty() &&
          (!slowest || past->mean.waiting > slowest->mean.waiting))
        slowest = *std::move(past);
    }
    job.stalls = lately > kWaits && (job.share > 0 || pool.workers.empty());
    if (job.stalls && job.waiting > kWaits && slowest) {
      if (!workers || slowest->begin < workers->since())
        workers = workers_since(std::min(since, slowest->begin));
      const Limit limit =
          statistics_->Judge({.name = from.name}, *slowest, *workers).limit;
      job.stalls = limit != Limit::kWindow && limit != Limit::kSource;
    }
    jobs.push_back(std::move(job));
  }
  if (jobs.empty() && !seen.jobs.empty()) return std::nullopt;
  return jobs;
}

double DemandOf(const Statistics& statistics, const PoolsSeen& seen,
                const std::string& pool, MonotonicTime now) {
  std::vector<PoolJob> jobs;
  for (const PoolJobSeen& job : seen.jobs)
    if (auto of = PoolJobSince(statistics, job, seen.weights,
                               seen.pools.at(pool).weights, now - kDemandOf))
      jobs.push_back(*std::move(of));
  return leat::DemandOf(jobs);
}

}  // namespace leat::server
