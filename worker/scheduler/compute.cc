// SPDX-License-Identifier: Apache-2.0
//
// Computes a task's rows, or takes one from a thread that computes the same row
// for another stream.
#include <cstring>
#include <optional>
#include <utility>

#include "core/observe/stages.h"
#include "worker/scheduler/state.h"

namespace leat::worker {
namespace {

using Outputs = absl::InlinedVector<std::span<std::byte>, 4>;

Outputs OutputsOf(const Group& group, size_t index) {
  Outputs outputs;
  for (size_t field = 0; field < group.outputs.field_bytes.size(); ++field)
    outputs.emplace_back(group.outputs.At(field, index),
                         group.outputs.field_bytes[field]);
  return outputs;
}

RowOf RowAt(const Group& group, size_t index, const RowRecords* records) {
  return {.epoch = group.epoch,
          .step = group.step,
          .row = group.rows[index],
          .sample = group.samples[index],
          .supplied = group.supplied.empty() ? nullptr : &group.supplied[index],
          .records = group.reads == nullptr ? nullptr : records,
          .absent = group.absent};
}

}  // namespace

// Owns a task of one row.
class Scheduler::State::SharedRow : public SharedRows::Waiter {
 public:
  SharedRow(std::shared_ptr<State> state, Task task)
      : state_(std::move(state)), task_(std::move(task)) {}

  void OnRow(const SharedRows::Outcome& outcome) override {
    const MonotonicTime start = state_->clock.Now();
    const Computed computed = Take(outcome);
    EndTask(state_, std::move(task_), computed, state_->clock.Now() - start);
    MutexLock lock(&state_->mu);
    --state_->tasks_waiting;
  }

 private:
  // An error, and the handling of a bad sample, belong to the work that met
  // them: another work meets and counts them itself.
  Computed Take(const SharedRows::Outcome& outcome) const {
    const Group& group = *task_.group;
    const TaskRow& row = task_.rows.front();
    SpanScope span(group.trace, SpanKind::kRow, group.span, 1, group.clock);
    const bool same = outcome.work == group.work.get();
    absl::Status status = outcome.status;
    const bool copies = status.ok() && (same || outcome.sound);
    if (copies) {
      const StageScope handing(Stage::kGroup);
      const Outputs outputs = OutputsOf(group, row.index);
      for (size_t field = 0; field < outputs.size(); ++field)
        std::memcpy(outputs[field].data(), outcome.outputs[field].data(),
                    outputs[field].size());
    } else if (!same) {
      status = ComputeRow(group, row, outcome.thread);
    }
    if (!status.ok()) span.set_failed();
    return {std::move(status), row.index, copies};
  }

  const std::shared_ptr<State> state_;
  Task task_;
};

std::optional<Scheduler::State::Computed> Scheduler::State::Compute(
    const std::shared_ptr<State>& state, Task* task, ThreadState* thread) {
  const Group& group = *task->group;
  // Samples that others find absent may change the row.
  if (group.shared != nullptr && task->rows.size() == 1 &&
      group.stage == nullptr && group.supplied.empty() && group.absent.empty())
    return ComputeShared(state, task, thread);
  Computed computed;
  for (const TaskRow& row : task->rows) {
    SpanScope span(group.trace, SpanKind::kRow, group.span, 1, group.clock);
    absl::Status status = ComputeRow(group, row, thread);
    if (status.ok()) continue;
    span.set_failed();
    if (computed.status.ok()) computed = {std::move(status), row.index};
  }
  return computed;
}

std::optional<Scheduler::State::Computed> Scheduler::State::ComputeShared(
    const std::shared_ptr<State>& state, Task* task, ThreadState* thread) {
  // Another thread may own the task after Begin.
  const std::shared_ptr<Group> group = task->group;
  const std::shared_ptr<SharedRows> shared = group->shared;
  const size_t index = task->rows.front().index;
  const Outputs outputs = OutputsOf(*group, index);
  const RowKey key = group->work->KeyOf(RowAt(*group, index, nullptr));
  const SharedRows::Claim claim = shared->Begin(key, outputs, [&] {
    return std::make_unique<SharedRow>(state, std::move(*task));
  });
  if (claim == SharedRows::Claim::kWaits) {
    MutexLock lock(&state->mu);
    ++state->tasks_waiting;
    return std::nullopt;
  }
  SpanScope span(group->trace, SpanKind::kRow, group->span, 1, group->clock);
  if (claim == SharedRows::Claim::kCopied)
    return Computed{.status = absl::OkStatus(), .copied = true};
  bool bad = false;
  RowOf row = RowAt(*group, index, &task->rows.front().records);
  row.bad = &bad;
  absl::Status status = group->work->Compute(row, thread, outputs);
  if (!status.ok()) span.set_failed();
  if (claim == SharedRows::Claim::kCompute)
    shared->End(key, {.work = group->work.get(),
                      .status = status,
                      .sound = !bad,
                      .outputs = outputs,
                      .thread = thread});
  return Computed{.status = std::move(status), .failed_at = index};
}

absl::Status Scheduler::State::ComputeRow(const Group& group,
                                          const TaskRow& task_row,
                                          ThreadState* thread) {
  const size_t index = task_row.index;
  const RowOf row = RowAt(group, index, &task_row.records);
  if (group.stage != nullptr)
    return group.stage->stage->Prepare(group.first + index, row, thread);
  return group.work->Compute(row, thread, OutputsOf(group, index));
}

}  // namespace leat::worker
