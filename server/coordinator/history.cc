// SPDX-License-Identifier: Apache-2.0
//
// The history of a job's consumers, for people who look back:
//
//   slots of the history      |2 s|2 s|2 s|2 s|2 s|2 s|
//   steps of the answer       |    6 s    |    6 s    |
//   "c0" waits                  .1  .2  .3  .9   -  .7
//   its strip                       .2          .8
#include <algorithm>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>

#include "core/status.h"
#include "server/coordinator/coordinator.h"
#include "server/coordinator/parts.h"

namespace leat::server {
namespace {

// A consumer whose report is late counts with its last value for this many
// steps: a sum without it would show a stall that did not occur.
constexpr size_t kHeldSteps = 2;

// Computes the mean of the added values; -1 if there are none.
class Means {
 public:
  explicit Means(size_t size) : sums_(size), counts_(size) {}
  void Add(size_t step, double value) {
    sums_[step] += value;
    ++counts_[step];
  }
  std::vector<double> Take() {
    size_t missing = kHeldSteps;
    for (size_t i = 0; i < sums_.size(); ++i) {
      if (counts_[i] > 0) {
        sums_[i] /= counts_[i];
        missing = 0;
      } else {
        sums_[i] = missing++ < kHeldSteps ? sums_[i - 1] : -1;
      }
    }
    return std::move(sums_);
  }

 private:
  std::vector<double> sums_, counts_;
};

double Waited(const JobHistory::Strip& strip) {
  return std::accumulate(
      strip.waiting.begin(), strip.waiting.end(), 0.0,
      [](double sum, double each) { return sum + std::max(each, 0.0); });
}

void KeepWorst(std::vector<JobHistory::Strip>* strips) {
  std::stable_sort(
      strips->begin(), strips->end(),
      [](const auto& a, const auto& b) { return Waited(a) > Waited(b); });
  if (strips->size() > kMaxStrips) strips->resize(kMaxStrips);
}

// Adds known values, or keeps the larger one.
void Fold(const std::vector<double>& from, bool sum, std::vector<double>* to) {
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i] < 0) continue;
    double& into = (*to)[i];
    into = sum ? std::max(into, 0.0) + from[i] : std::max(into, from[i]);
  }
}

}  // namespace

absl::StatusOr<JobHistory> Coordinator::HistoryOf(const std::string& job,
                                                  Duration since,
                                                  Now now) const {
  std::vector<std::pair<std::string, std::string>> consumers;  // with hosts
  {
    MutexLock lock(&mu_);
    if (parts_->state.FindJob(job) == nullptr)
      return NotFound("no job \"{}\"", job);
    for (const SessionId id : parts_->sessions.consumers().OfJob(job)) {
      if (!parts_->sessions.consumers().IsNewest(id)) continue;
      const ConsumerOpening& opening =
          parts_->sessions.consumers().Find(id)->opening;
      consumers.emplace_back(opening.consumer, opening.host);
    }
  }
  const int64_t wanted = std::max<int64_t>(1, since / History::kSlot);
  const int64_t slots = (wanted + kMaxHistorySteps - 1) / kMaxHistorySteps;
  const auto steps = static_cast<size_t>((wanted + slots - 1) / slots);
  // Steps begin at multiples of their length, so that they are the same for a
  // later call.
  const int64_t last = History::SlotOf(now.mono) / slots;
  const int64_t first = last + 1 - static_cast<int64_t>(steps);
  const MonotonicTime from(first * slots * History::kSlot);
  JobHistory history;
  history.step = slots * History::kSlot;
  history.begin = now.wall - std::chrono::duration_cast<WallTime::duration>(
                                 now.mono - from);
  history.consumers = consumers.size();
  for (auto* all :
       {&history.rows_per_s, &history.wait_p50_ms, &history.wait_p95_ms})
    all->assign(steps, -1);
  for (auto& [consumer, host] : consumers) {
    Means waiting(steps), rows(steps), p50(steps), p95(steps);
    statistics_.ForEachOfConsumer(
        consumer, from, [&](const ConsumerMoment& moment) {
          const int64_t step = moment.slot / slots - first;
          if (step < 0 || step >= static_cast<int64_t>(steps)) return;
          const auto at = static_cast<size_t>(step);
          waiting.Add(at, moment.waiting);
          rows.Add(at, moment.rows_per_s);
          p50.Add(at, moment.wait_p50_ms);
          p95.Add(at, moment.wait_p95_ms);
        });
    Fold(rows.Take(), /*sum=*/true, &history.rows_per_s);
    Fold(p50.Take(), /*sum=*/false, &history.wait_p50_ms);
    Fold(p95.Take(), /*sum=*/false, &history.wait_p95_ms);
    history.strips.push_back(
        {std::move(consumer), std::move(host), waiting.Take()});
    if (history.strips.size() >= 4 * kMaxStrips) KeepWorst(&history.strips);
  }
  KeepWorst(&history.strips);
  return history;
}

}  // namespace leat::server
