// SPDX-License-Identifier: Apache-2.0
//
// The stages of a worker, as messages: what v1::StageStats says of each.
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
  StageTimes listing;  // theirs
  const std::vector<GpuStats>& gpus;
};

// LIST to SEND, in this order; DEVICE where there are GPUs.
void AddStages(const StageReport& report,
               google::protobuf::RepeatedPtrField<v1::StageStats>* to);

}  // namespace leat::worker
