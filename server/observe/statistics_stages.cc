// SPDX-License-Identifier: Apache-2.0
//
// The stages of all workers and consumers, and how full the queues before them
// were.
#include <algorithm>
#include <cmath>

#include "server/observe/counts.h"
#include "server/observe/statistics.h"

namespace leat::server {

Statistics::AllStages Statistics::CountsOf(const Reported& stages) {
  AllStages counts;
  for (const v1::StageStats& each : stages) {
    if (each.stage() <= 0 || !v1::Stage_IsValid(each.stage())) continue;
    counts.at(static_cast<size_t>(each.stage())) = {
        .items = each.items_total(),
        .busy_ns = each.busy_ns_total(),
        .input_ns = each.input_ns_total(),
        .output_ns = each.output_ns_total(),
        .idle_ns = each.idle_ns_total()};
  }
  return counts;
}

void Statistics::QueueCounts::Add(uint64_t queued, uint64_t capacity) {
  depth += static_cast<double>(queued);
  room += static_cast<double>(capacity);
  reports += 1;
}

Statistics::StageSlot& Statistics::AddStages(const Totals& before,
                                             const Totals& now,
                                             const Reported& told) {
  const int64_t slot = History::SlotOf(now.at);
  StageSlot& sum = stages_[static_cast<size_t>(slot) % kStageSlots];
  if (sum.slot != slot) sum = {.slot = slot};
  const double ns = SecondsOf(now.at - before.at) * 1e9;
  for (const v1::StageStats& each : told) {
    if (each.stage() <= 0 || !v1::Stage_IsValid(each.stage())) continue;
    const auto index = static_cast<size_t>(each.stage());
    const StageCounts& from = before.stages.at(index);
    const StageCounts& to = now.stages.at(index);
    StageCounts& into = sum.stages.at(index);
    const double places = std::min(each.places(), kMostThreads);
    const auto most = static_cast<uint64_t>(places * ns);
    into.items += Grown(from.items, to.items);
    into.busy_ns += std::min(most, Grown(from.busy_ns, to.busy_ns));
    into.input_ns += std::min(most, Grown(from.input_ns, to.input_ns));
    into.output_ns += std::min(most, Grown(from.output_ns, to.output_ns));
    into.idle_ns += std::min(most, Grown(from.idle_ns, to.idle_ns));
    into.place_ns += places * ns;
    sum.queues.at(index).Add(each.queue_depth(), each.queue_capacity());
  }
  return sum;
}

std::map<v1::Stage, std::vector<double>> Statistics::Queues(
    MonotonicTime since, MonotonicTime now) const {
  const int64_t last = History::SlotOf(now);
  const int64_t first =
      std::max(History::SlotOf(since), last + 1 - int64_t{kStageSlots});
  std::map<v1::Stage, std::vector<double>> levels;
  MutexLock lock(&mu_);
  for (const StageSlot& slot : stages_) {
    if (slot.slot < first || slot.slot > last) continue;
    for (size_t i = 0; i < kStages; ++i) {
      const QueueCounts& from = slot.queues.at(i);
      if (from.reports == 0) continue;
      std::vector<double>& into = levels[static_cast<v1::Stage>(i)];
      into.resize(static_cast<size_t>(last + 1 - first), -1);
      into[static_cast<size_t>(slot.slot - first)] =
          from.room > 0 ? std::min(1.0, from.depth / from.room)
                        : from.depth / from.reports;
    }
  }
  return levels;
}

std::vector<v1::StageStats> Statistics::Stages(MonotonicTime since,
                                               Duration* seen) const {
  // Slots that were never used have the number -1.
  const int64_t first = std::max<int64_t>(0, History::SlotOf(since));
  AllStages sum;
  int64_t slots = 0;
  {
    MutexLock lock(&mu_);
    for (const StageSlot& slot : stages_) {
      if (slot.slot < first) continue;
      ++slots;
      for (size_t i = 0; i < kStages; ++i) {
        const StageCounts& from = slot.stages.at(i);
        StageCounts& into = sum.at(i);
        into.items += from.items;
        into.busy_ns += from.busy_ns;
        into.input_ns += from.input_ns;
        into.output_ns += from.output_ns;
        into.idle_ns += from.idle_ns;
        into.place_ns += from.place_ns;
      }
    }
  }
  std::vector<v1::StageStats> stages;
  *seen = slots * History::kSlot;
  const double ns = SecondsOf(*seen) * 1e9;
  for (size_t i = 0; i < kStages; ++i) {
    const StageCounts& from = sum.at(i);
    if (from.place_ns <= 0) continue;
    v1::StageStats& stage = stages.emplace_back();
    stage.set_stage(static_cast<v1::Stage>(i));
    stage.set_places(static_cast<uint32_t>(std::lround(from.place_ns / ns)));
    stage.set_items_total(from.items);
    stage.set_busy_ns_total(from.busy_ns);
    stage.set_input_ns_total(from.input_ns);
    stage.set_output_ns_total(from.output_ns);
    stage.set_idle_ns_total(from.idle_ns);
  }
  return stages;
}

}  // namespace leat::server
