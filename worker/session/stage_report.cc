// SPDX-License-Identifier: Apache-2.0
#include "worker/session/stage_report.h"

#include <algorithm>

namespace leat::worker {
namespace {

using Stages = google::protobuf::RepeatedPtrField<v1::StageStats>;

v1::StageStats& AddStage(Stage stage, uint64_t places,
                         const StageTimes::One& times, Stages* to) {
  v1::StageStats& proto = *to->Add();
  proto.set_stage(static_cast<v1::Stage>(stage));
  proto.set_places(static_cast<uint32_t>(places));
  proto.set_items_total(times.items);
  proto.set_busy_ns_total(times.busy_ns);
  return proto;
}

void SetWaits(const Scheduler::Stats::Waits& waits, v1::StageStats* proto) {
  proto->set_input_ns_total(waits.input_ns);
  proto->set_output_ns_total(waits.output_ns);
  proto->set_idle_ns_total(waits.idle_ns);
}

void AddDevices(const std::vector<GpuStats>& gpus, Stages* to) {
  StageTimes::One times;
  uint64_t slots = 0, in_use = 0;
  for (const GpuStats& gpu : gpus) {
    times.items += gpu.groups_total;
    times.busy_ns += gpu.busy_ns_total;
    slots += static_cast<uint64_t>(gpu.slots);
    in_use += static_cast<uint64_t>(gpu.slots_in_use);
  }
  // A GPU counts as busy once, however many groups are on it.
  v1::StageStats& device = AddStage(Stage::kDevice, gpus.size(), times, to);
  device.set_queue_depth(in_use);
  device.set_queue_capacity(slots);
}

}  // namespace

void AddStages(const StageReport& report, Stages* to) {
  const Scheduler::Stats& now = report.scheduler;
  const auto threads = static_cast<uint64_t>(report.threads);
  const auto readers = static_cast<uint64_t>(now.readers);
  const auto sum = [&](Stage stage) {
    StageTimes::One all = report.listing.of(stage);
    for (const StageTimes* each : {&now.decode_stages, &now.read_stages}) {
      all.busy_ns += each->of(stage).busy_ns;
      all.items += each->of(stage).items;
    }
    return all;
  };
  AddStage(Stage::kList, static_cast<uint64_t>(report.listers),
           sum(Stage::kList), to);
  AddStage(Stage::kOpen, threads + readers, sum(Stage::kOpen), to);
  v1::StageStats& read = AddStage(Stage::kRead, readers > 0 ? readers : threads,
                                  sum(Stage::kRead), to);
  SetWaits(now.read_waits, &read);
  read.set_queue_depth(now.read_depth);
  v1::StageStats& decode =
      AddStage(Stage::kDecode, threads, sum(Stage::kDecode), to);
  SetWaits(now.decode_waits, &decode);
  decode.set_queue_depth(now.rows_queued -
                         std::min(now.rows_queued, uint64_t{now.read_depth}));
  AddStage(Stage::kAugment, threads, sum(Stage::kAugment), to);
  if (!report.gpus.empty()) AddDevices(report.gpus, to);
  AddStage(Stage::kGroup, threads, sum(Stage::kGroup), to);
  v1::StageStats& send = AddStage(
      Stage::kSend, now.streams,
      {.busy_ns = now.sending_ns_total, .items = now.groups_sent_total}, to);
  send.set_queue_depth(now.groups_unsent);
  send.set_queue_capacity(now.groups_unsent_limit);
}

}  // namespace leat::worker
