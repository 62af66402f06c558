// SPDX-License-Identifier: Apache-2.0
//
// PageModel: the content of the page, from messages that the CLI reads too, so
// that both show the same numbers. Lists are bounded; the counts beside them
// are of all.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "leat/v1/admin.pb.h"
#include "leat/v1/types.pb.h"
#include "server/coordinator/coordinator.h"
#include "server/views/status_view.h"

namespace leat::server {

// Bounds on the entries that are shown individually.
inline constexpr size_t kMaxPageWorkers = 2000;
inline constexpr size_t kMaxPageJobs = 100;
inline constexpr size_t kMaxPageConsumers = 256;
inline constexpr size_t kMaxPageDatasets = 64;
inline constexpr size_t kMaxPageSources = 6;  // of a mixture

struct PageModel {
  // Workers with the same hardware, which are therefore compared with one
  // another.
  struct Class {
    std::string name;  // "CPU, 8 threads", "2 x NVIDIA H100"
    size_t ready = 0;
    // Medians over READY workers: what they deliver, and what they could
    // deliver (over those that know it).
    double median_rows_per_s = 0, median_capacity_rows_per_s = 0;
  };

  WallTime at{};
  // Its jobs start with those in use; a mixture has its first sources, with
  // their present shares as fractions, and an empty dataset for each source.
  // Its workers have the data of a tile, those with problems first.
  v1::GetStatusResponse status;
  std::vector<size_t> class_of;  // of each worker in `status`
  std::vector<Class> classes;
  size_t workers = 0, ready = 0, draining = 0, lost = 0;
  size_t jobs = 0, jobs_in_use = 0, num_consumers = 0;
  v1::WorkerStats total;  // sums over all workers that are not lost
  // Statistics of the last minute, or of its known part; the queues are those
  // of this moment.
  std::vector<v1::StageStats> stages;
  Duration stages_of{0};
  // How full the queues before stages were: Statistics::Queues.
  std::map<v1::Stage, std::vector<double>> queues;
  std::vector<v1::GetBottleneckResponse> verdicts;  // of jobs in use
  std::vector<v1::ConsumerInfo> consumers;
  std::vector<v1::DatasetSummary> datasets;
};

PageModel MakePageModel(const Coordinator& coordinator, const StatusView& view,
                        Now now);

}  // namespace leat::server
