// SPDX-License-Identifier: Apache-2.0
#include "worker/scheduler/device_stages.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "core/observe/tracing.h"

namespace leat::worker {
namespace {

// Joins the end of a stage with the return of the call that made it finish:
// whichever comes last delivers the groups, so that a stage is never destroyed
// within its own Finish.
class StageEnd {
 public:
  explicit StageEnd(GroupStage::Done last) : last_(std::move(last)) {}
  void OnDone(std::vector<absl::Status> rows) {
    rows_ = std::move(rows);
    Leave();
  }
  void Leave() {
    if (left_.fetch_sub(1) == 1) std::exchange(last_, {})(std::move(rows_));
  }

 private:
  GroupStage::Done last_;
  std::vector<absl::Status> rows_;
  std::atomic<int> left_{2};
};

absl::Status FirstError(const std::vector<absl::Status>& rows,
                        const Group& group) {
  for (size_t row = 0; row < group.rows.size() && !rows.empty(); ++row)
    if (!rows[group.first + row].ok()) return rows[group.first + row];
  return absl::OkStatus();
}

// Records that a stage finished the group's rows, from `begin` until now.
void RecordDevice(const Group& group, MonotonicTime begin) {
  group.trace->Record({.of = nullptr,
                       .kind = SpanKind::kDevice,
                       .failed = !group.status.ok(),
                       .parent = group.span,
                       .begin_ns = group.trace->Unix(begin),
                       .end_ns = group.trace->Unix(group.clock.Now()),
                       .rows = group.rows.size()});
}

}  // namespace

std::shared_ptr<SharedStage> ShareStage(const Groups& groups) {
  auto shared = std::make_shared<SharedStage>();
  Group& first = *groups.front();
  shared->work = first.work;
  if (groups.size() == 1) {
    first.first = 0;
    shared->outputs = first.outputs;
    return shared;
  }
  const size_t fields = first.outputs.field_bytes.size();
  shared->offsets.reserve(groups.size() * fields);
  for (const std::shared_ptr<Group>& group : groups) {
    const GroupOutputs& outputs = group->outputs;
    const uint64_t* const offsets =
        shared->offsets.data() + shared->offsets.size();
    shared->offsets.insert(shared->offsets.end(), outputs.offsets.begin(),
                           outputs.offsets.end());
    group->first = shared->targets.size();
    for (size_t row = 0; row < outputs.rows; ++row)
      shared->targets.push_back(
          {outputs.base, offsets,
           outputs.slots.empty() ? row : outputs.slots[row]});
  }
  shared->outputs = {.rows = shared->targets.size(),
                     .device = first.outputs.device,
                     .field_bytes = first.outputs.field_bytes,
                     .targets = shared->targets};
  return shared;
}

void FinishStage(std::shared_ptr<SharedStage> shared, const Clock& clock,
                 std::function<void(Groups)> deliver) {
  GroupStage* const stage = shared->stage.get();
  for (const size_t row : shared->unwanted) stage->Forget(row);
  const MonotonicTime begin = clock.Now();
  const auto end = std::make_shared<StageEnd>(
      [begin, shared = std::move(shared), deliver = std::move(deliver)](
          const std::vector<absl::Status>& rows) mutable {
        shared->stage.reset();
        Groups groups = std::exchange(shared->groups, {});
        shared.reset();
        for (const std::shared_ptr<Group>& group : groups) {
          group->status = FirstError(rows, *group);
          if (group->trace != nullptr) [[unlikely]]
            RecordDevice(*group, begin);
        }
        deliver(std::move(groups));
      });
  stage->Finish(
      [end](std::vector<absl::Status> rows) { end->OnDone(std::move(rows)); });
  end->Leave();
}

void DeviceStages::Enter(const std::shared_ptr<SharedStage>& shared,
                         const std::shared_ptr<Group>& group) {
  group->stage = shared;
  shared->groups.push_back(group);
  shared->left += group->rows.size();
}

void DeviceStages::EndOpening(const std::shared_ptr<SharedStage>& shared) {
  opening_ = false;
  if (shared != nullptr && shared->left > 0) stages_.insert(shared);
}

std::shared_ptr<SharedStage> DeviceStages::Prepared(Group& group, size_t rows,
                                                    bool leaves) {
  if (leaves) Leave(group, 0);
  SharedStage& shared = *group.stage;
  shared.left -= rows;
  if (shared.left > 0) return nullptr;
  stages_.erase(group.stage);
  if (shared.groups.empty()) return nullptr;  // it goes with the group
  ++in_work_;
  return group.stage;
}

bool DeviceStages::Leave(Group& group, size_t rows) {
  if (group.stage == nullptr) return false;
  SharedStage& shared = *group.stage;
  for (size_t row = 0; row < group.rows.size(); ++row)
    shared.unwanted.push_back(group.first + row);
  std::erase_if(shared.groups,
                [&](const auto& each) { return each.get() == &group; });
  shared.left -= rows;
  if (shared.left > 0) return false;
  stages_.erase(group.stage);
  if (shared.groups.empty()) return false;  // it goes with the group
  to_finish_.push_back(group.stage);
  return true;
}

std::shared_ptr<SharedStage> DeviceStages::TakeToFinish() {
  if (to_finish_.empty()) return nullptr;
  std::shared_ptr<SharedStage> shared = std::move(to_finish_.front());
  to_finish_.pop_front();
  ++in_work_;
  return shared;
}

Groups DeviceStages::TakeGroups() {
  Groups groups;
  const auto part = [&](SharedStage& shared) {
    for (std::shared_ptr<Group>& group : std::exchange(shared.groups, {}))
      groups.push_back(std::move(group));
  };
  for (const auto& shared : stages_) part(*shared);
  for (const auto& shared : to_finish_) part(*shared);
  stages_.clear();
  to_finish_.clear();
  return groups;
}

}  // namespace leat::worker
