// SPDX-License-Identifier: Apache-2.0
#include "server/observe/worker_slots.h"

#include <algorithm>

namespace leat::server {
void WorkerSlots::Add(int64_t slot, const WorkerStatistics& did) {
  const auto [found, is_new] = slots_.try_emplace(slot);
  Sum& sum = found->second;
  if (is_new) sum.of.workers = sum.of.threads = sum.of.device = 0;
  const double threads = std::max(did.threads, 1.0);
  sum.of.workers += did.workers;
  sum.of.threads += threads;
  sum.of.rows_per_s += did.rows_per_s;
  sum.of.of_gpus += did.rows_per_s * did.of_gpus;
  for (const auto share : kWorkerShares)
    sum.of.*share += threads * (did.*share);
  if (did.device < 0) return;
  sum.gpus += did.workers;
  sum.of.device += did.workers * did.device;
}

std::optional<WorkerStatistics> WorkerSlots::Mean(
    const WaitsBySlot& waits, const WorkerSlots& without) const {
  const bool alike = std::all_of(waits.begin(), waits.end(),
                                 [](const auto& at) { return at.second <= 0; });
  WorkerStatistics mean;
  mean.workers = mean.threads = 0;
  double weights = 0, gpu_weights = 0, device = 0;
  for (const auto& [slot, waiting] : waits) {
    const double weight = alike ? 1 : waiting;
    // Reports of workers and of the consumer arrive at different times, so a
    // slot may have none.
    const auto at = slots_.lower_bound(slot);
    if (weight <= 0 || at == slots_.end() || at->first > slot + 1) continue;
    Sum sum = at->second;
    if (const auto less = without.slots_.find(at->first);
        less != without.slots_.end()) {
      sum.of.workers -= less->second.of.workers;
      sum.of.threads -= less->second.of.threads;
      sum.of.rows_per_s -= less->second.of.rows_per_s;
      for (const auto share : kWorkerShares)
        sum.of.*share = std::max(0.0, sum.of.*share - less->second.of.*share);
      sum.gpus -= less->second.gpus;
      sum.of.device -= less->second.of.device;
    }
    if (sum.of.threads <= 0) continue;
    weights += weight;
    mean.workers += weight * sum.of.workers;
    mean.threads += weight * sum.of.threads;
    mean.rows_per_s += weight * std::max(0.0, sum.of.rows_per_s);
    mean.of_gpus += weight * sum.of.of_gpus;
    for (const auto share : kWorkerShares)
      mean.*share += weight * (sum.of.*share) / sum.of.threads;
    if (sum.gpus <= 0) continue;
    gpu_weights += weight;
    device += weight * sum.of.device / sum.gpus;
  }
  if (weights <= 0) return std::nullopt;
  mean.of_gpus = mean.rows_per_s > 0 ? mean.of_gpus / mean.rows_per_s : 0;
  for (double* each : {&mean.workers, &mean.threads, &mean.rows_per_s})
    *each /= weights;
  for (const auto share : kWorkerShares) mean.*share /= weights;
  mean.device = gpu_weights > 0 ? device / gpu_weights : -1;
  return mean;
}

}  // namespace leat::server
