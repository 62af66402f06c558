// SPDX-License-Identifier: Apache-2.0
#include "core/observe/worker_statistics.h"

#include <algorithm>

namespace leat {

double BusyShare(const WorkerStatistics& worker) {
  return worker.reading + worker.decoding;
}

WorkerStatistics MeanOf(const std::vector<WorkerStatistics>& workers,
                        std::string_view without) {
  WorkerStatistics mean;
  mean.threads = 0;
  double gpus = 0, gpu_busy = 0;
  for (const WorkerStatistics& worker : workers) {
    if (!without.empty() && worker.name == without) continue;
    const double weight = std::max(worker.threads, 1.0);
    mean.threads += weight;
    mean.rows_per_s += worker.rows_per_s;
    for (const auto share : kWorkerShares)
      mean.*share += weight * (worker.*share);
    if (worker.device < 0) continue;
    gpus += worker.workers;
    gpu_busy += worker.workers * worker.device;
  }
  if (mean.threads > 0)
    for (const auto share : kWorkerShares) mean.*share /= mean.threads;
  if (gpus > 0) mean.device = gpu_busy / gpus;
  return mean;
}

}  // namespace leat
