// SPDX-License-Identifier: Apache-2.0
//
// Example: a worker computes 100 rows/s, and a trainer could take 420. With one
// worker it receives 100 and waits for 76 % of its time, so demand is 100 /
// 0.24 = 417, and need is 5. The first raise is to 2 × 1 + 1 = 3; when these
// serve, the trainer still waits, and 5 are desired. Then it no longer waits:
// demand is 420, and 5 × 100 × 0.7 = 350 is less, so 5 stay.
#include "core/cluster/pool_policy.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <tuple>
#include <utility>

#include "absl/time/time.h"
#include "core/status.h"

namespace leat {
namespace {

constexpr size_t kMaxName = 63;
constexpr double kStall = 0.02;  // fraction of a trainer's time
// Fraction of a worker's rate that the plan uses.
constexpr double kFull = 0.85;
constexpr double kLow = 0.7;       // fraction of the pool's rate
constexpr double kMostWait = 0.9;  // demand is not derived from a longer wait
constexpr Duration kBetweenChanges = std::chrono::minutes(1);
// Figures cover at most this time.
constexpr Duration kLookBack = std::chrono::seconds(20);
// New workers receive shards, and consumers send them requests, within this
// time.
constexpr Duration kSettle = std::chrono::seconds(4);
// Workers that are present when the policy begins stay: the earlier target is
// unknown, and workers arrive one by one.
constexpr Duration kAdopt = std::chrono::minutes(1);
// Rates that differ by less than a factor of 2^(1/2) count as equal.
constexpr double kRateSteps = 2;

double MedianRate(const std::vector<PoolWorker>& workers) {
  std::vector<double> rates;
  for (const PoolWorker& worker : workers)
    if (worker.capacity_rows_per_s > 0)
      rates.push_back(worker.capacity_rows_per_s);
  if (rates.empty()) return 0;
  const auto middle = rates.begin() + static_cast<int64_t>(rates.size() / 2);
  std::nth_element(rates.begin(), middle, rates.end());
  return *middle;
}

int RateStep(double rate) {
  return rate > 0 ? static_cast<int>(std::floor(kRateSteps * std::log2(rate)))
                  : -1'000'000;
}

std::string Plural(uint32_t workers) {
  return fmt::format("{} worker{}", workers, workers == 1 ? "" : "s");
}

// Says why a pool wants more workers. A rate of 0 is not known yet.
std::string WhyMore(const PoolJob& job, uint32_t serving, double demand,
                    double rate) {
  const std::string waits = fmt::format("job {} waits for {:.0f} % of its time",
                                        job.name, 100 * job.waiting);
  if (serving == 0)
    return waits +
           ", and this pool has no worker: start one by leat-worker --pool "
           "NAME, or look at what scales the pool";
  if (rate == 0)
    return fmt::format(
        "{} with {}, which has computed too little to be "
        "measured",
        waits, Plural(serving));
  return fmt::format(
      "{} with {}: trainers want {:.0f} rows/s, and one worker makes {:.0f}",
      waits, Plural(serving), demand, rate);
}

}  // namespace

double DemandOf(const std::vector<PoolJob>& jobs) {
  double demand = 0;
  for (const PoolJob& job : jobs)
    demand += job.share * job.rows_per_s /
              (1 - std::clamp(job.waiting, 0.0, kMostWait));
  return demand;
}

absl::Status CheckPoolName(std::string_view name) {
  const auto plain = [](unsigned char c) { return std::isalnum(c) != 0; };
  const bool fits = !name.empty() && name.size() <= kMaxName &&
                    plain(static_cast<unsigned char>(name.front())) &&
                    std::all_of(name.begin(), name.end(), [&](char c) {
                      return plain(static_cast<unsigned char>(c)) || c == '-' ||
                             c == '_' || c == '.';
                    });
  if (fits) return absl::OkStatus();
  const bool printable = std::all_of(name.begin(), name.end(), [](char c) {
    return static_cast<unsigned char>(c) > 31 &&
           static_cast<unsigned char>(c) < 127;
  });
  return InvalidArgument(
      "a pool's name \"{}\": want 1 to {} letters, digits, '-', '_' or '.', "
      "with a letter or digit in front",
      printable ? name.substr(0, kMaxName) : "(unprintable)", kMaxName);
}

absl::Status CheckPoolBounds(const PoolBounds& bounds) {
  if (bounds.min > bounds.max)
    return InvalidArgument("min {} and max {}: want min to be at most max",
                           bounds.min, bounds.max);
  if (bounds.max > kMaxPoolWorkers)
    return InvalidArgument("max {}: want at most {}", bounds.max,
                           kMaxPoolWorkers);
  return absl::OkStatus();
}

MonotonicTime PoolPolicy::LookFrom(MonotonicTime now) const {
  return begun_ ? std::max(now - kLookBack, members_at_ + kSettle)
                : now - kLookBack;
}

void PoolPolicy::Change(uint32_t desired, std::string reason,
                        MonotonicTime now) {
  target_.desired = desired;
  target_.reason = std::move(reason);
  changed_at_ = now;
  low_since_.reset();
}

void PoolPolicy::Begin(const PoolBounds& bounds, uint32_t serving,
                       MonotonicTime now) {
  if (!begun_) {
    begun_ = true;
    began_at_ = members_at_ = now;
    Change(std::clamp(serving, bounds.min, bounds.max),
           serving < bounds.min ? "the least that the bounds allow"
                                : fmt::format("{} serve", Plural(serving)),
           now);
  } else if (now < began_at_ + kAdopt && serving > target_.desired &&
             target_.desired < bounds.max) {
    Change(std::min(serving, bounds.max),
           fmt::format("{} came back", Plural(serving)), now);
  }
  const uint32_t bounded = std::clamp(target_.desired, bounds.min, bounds.max);
  if (bounded != target_.desired)
    Change(bounded,
           fmt::format("the bounds are {} to {}", bounds.min, bounds.max), now);
}

void PoolPolicy::Judge(const PoolBounds& bounds,
                       const std::vector<PoolWorker>& workers,
                       const std::vector<PoolJob>& jobs, MonotonicTime now) {
  const auto serving = static_cast<uint32_t>(workers.size());
  const double demand = target_.demand_rows_per_s = DemandOf(jobs);
  const double rate = MedianRate(workers);
  const uint32_t need =
      rate > 0 ? static_cast<uint32_t>(std::min<double>(
                     std::ceil(demand / (kFull * rate)), kMaxPoolWorkers))
               : 0;
  const PoolJob* worst = nullptr;
  for (const PoolJob& job : jobs)
    if (job.stalls && job.waiting > kStall &&
        (worst == nullptr || job.waiting > worst->waiting))
      worst = &job;
  if (worst != nullptr) {
    low_since_.reset();
    const uint32_t wanted =
        std::min({std::max(need, serving + 1), 2 * serving + 1, bounds.max});
    if (wanted > target_.desired)
      Change(wanted, WhyMore(*worst, serving, demand, rate), now);
    return;
  }
  // Without a rate the demand cannot be compared with the pool.
  const bool low =
      demand == 0 || (rate > 0 && demand < kLow * rate * target_.desired);
  if (!low) {
    low_since_.reset();
    return;
  }
  if (!low_since_) low_since_ = now;
  const uint32_t wanted = std::clamp(need, bounds.min, bounds.max);
  if (wanted < target_.desired && now >= *low_since_ + low_for_ &&
      now >= changed_at_ + kBetweenChanges)
    Change(wanted,
           fmt::format(
               "trainers have wanted less than {:.0f} % of the pool for "
               "{}, now {:.0f} rows/s, and one worker makes {:.0f}",
               100 * kLow, absl::FormatDuration(absl::FromChrono(low_for_)),
               demand, rate),
           now);
}

void PoolPolicy::ChooseVictims(const std::vector<PoolWorker>& workers) {
  const std::set<std::string> before(target_.drain.begin(),
                                     target_.drain.end());
  target_.drain.clear();
  if (workers.size() <= target_.desired) return;
  std::vector<const PoolWorker*> order;
  for (const PoolWorker& worker : workers) order.push_back(&worker);
  std::sort(order.begin(), order.end(), [&](const auto* a, const auto* b) {
    const auto key = [&](const PoolWorker& worker) {
      return std::tuple(!before.contains(worker.name),
                        RateStep(worker.capacity_rows_per_s),
                        worker.cache_bytes, std::string_view(worker.name));
    };
    return key(*a) < key(*b);
  });
  order.resize(workers.size() - target_.desired);
  for (const PoolWorker* victim : order) target_.drain.push_back(victim->name);
  std::sort(target_.drain.begin(), target_.drain.end());
}

PoolTarget PoolPolicy::Decide(const PoolBounds& bounds,
                              const std::vector<PoolWorker>& workers,
                              const std::optional<std::vector<PoolJob>>& jobs,
                              MonotonicTime now) {
  Begin(bounds, static_cast<uint32_t>(workers.size()), now);
  // Workers that are to leave do not count for the target.
  const std::set<std::string> going(target_.drain.begin(), target_.drain.end());
  std::vector<PoolWorker> serving;
  std::set<std::string> names;
  for (const PoolWorker& worker : workers) {
    if (going.contains(worker.name)) continue;
    serving.push_back(worker);
    names.insert(worker.name);
  }
  const bool came =
      !std::includes(known_.begin(), known_.end(), names.begin(), names.end());
  known_ = std::move(names);
  if (came)
    members_at_ = now;
  else if (jobs)
    Judge(bounds, serving, *jobs, now);
  ChooseVictims(workers);
  return target_;
}

}  // namespace leat
