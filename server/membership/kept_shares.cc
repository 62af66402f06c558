// SPDX-License-Identifier: Apache-2.0
#include "server/membership/kept_shares.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace leat::server {
namespace {

int StepOf(double share, std::optional<int> before) {
  if (!(share > 0)) return 0;
  constexpr double kSteps = KeptShares::kSteps;
  const int step =
      static_cast<int>(std::clamp(std::ceil(share * kSteps), 1.0, kSteps));
  if (!before || *before == 0) return step;
  const double top = *before / kSteps;
  const bool stays = share > top - 1 / kSteps - KeptShares::kBeyond &&
                     share <= top + KeptShares::kBeyond;
  return stays ? *before : step;
}

// Adds the datasets of `of` whose step differs in `in`, or is missing there.
template <typename Steps>
void AddDifferent(const Steps& of, const Steps& in,
                  std::set<std::string>* datasets) {
  for (const auto& [dataset, step] : of)
    if (const auto it = in.find(dataset); it == in.end() || it->second != step)
      datasets->insert(dataset);
}

}  // namespace

void KeptShares::Note(const std::string& worker,
                      const std::map<std::string, double>& shares,
                      MonotonicTime now) {
  MutexLock lock(&mu_);
  Steps& known = workers_[worker];
  Steps steps;
  for (const auto& [dataset, share] : shares) {
    const auto before = known.find(dataset);
    steps[dataset] =
        StepOf(share, before == known.end() ? std::nullopt
                                            : std::optional(before->second));
  }
  std::set<std::string> changed;
  AddDifferent(steps, known, &changed);
  AddDifferent(known, steps, &changed);
  for (const std::string& dataset : changed) changes_[dataset].insert(worker);
  known = std::move(steps);
  if (!changed.empty() && due_ == MonotonicTime::max()) due_ = now + kPause;
}

void KeptShares::Forget(const std::string& worker) {
  MutexLock lock(&mu_);
  workers_.erase(worker);
}

std::optional<double> KeptShares::Of(std::string_view dataset,
                                     const std::string& worker) const {
  MutexLock lock(&mu_);
  const auto it = workers_.find(worker);
  if (it == workers_.end()) return std::nullopt;
  const auto step = it->second.find(dataset);
  if (step == it->second.end()) return std::nullopt;
  return static_cast<double>(step->second) / kSteps;
}

MonotonicTime KeptShares::due() const {
  MutexLock lock(&mu_);
  return due_;
}

bool KeptShares::Release(MonotonicTime now) {
  MutexLock lock(&mu_);
  if (now < due_) return false;
  due_ = MonotonicTime::max();
  for (auto& [dataset, workers] : std::exchange(changes_, {}))
    released_[dataset].merge(workers);
  return true;
}

KeptShares::Changes KeptShares::Take() {
  MutexLock lock(&mu_);
  return std::exchange(released_, {});
}

}  // namespace leat::server
