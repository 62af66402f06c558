// SPDX-License-Identifier: Apache-2.0
//
// The stages of a worker, as v1::StageStats messages.
#pragma once

#include <vector>

#include "core/observe/stages.h"
#include "leat/v1/types.pb.h"
#include "worker/compute/gpu_worker.h"
#include "worker/scheduler/scheduler.h"

namespace leat::worker {

struct StageReport {
  const Scheduler::Stats& scheduler;
  int threads = 0;     // decode threads
  int listers = 0;     // threads that look at datasets and list them
  StageTimes listing;  // of these threads
  const std::vector<GpuStats>& gpus;
};

// Adds LIST to SEND, in this order; DEVICE if there are GPUs.
void AddStages(const StageReport& report,
               google::protobuf::RepeatedPtrField<v1::StageStats>* to);

}  // namespace leat::worker
