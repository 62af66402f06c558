// SPDX-License-Identifier: Apache-2.0
#include "worker/scheduler/group_opening.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace leat::worker {
namespace {

// Rows that are written in place form groups of up to this many times the rows
// that are sent by bytes, provided that one thread computes them within this
// time.
constexpr size_t kPlacedGroups = 4;
constexpr double kPlacedGroupNs = 50e6;

size_t BufferBytes(const StreamState& stream, const Group& group) {
  return group.rows.size() * stream.row_bytes;
}

}  // namespace

// Rows that are written in place take no buffer and no bytes of a message, so a
// larger group costs its consumer less per row. The consumer sees the group's
// first row only when the last one is complete, which must not be much later.
size_t GroupOpening::RowsOfNextGroup(const StreamState& stream) const {
  const RowRequest& request = stream.groups.first_request()->request;
  if (request.memory == nullptr ||
      stream.work->groups().staged(DeviceOf(request) >= 0))
    return stream.rows_per_group;
  const double soon = kPlacedGroupNs / std::max(stream.job->mean_ns, 1.0);
  const double most = static_cast<double>(std::min(
      kPlacedGroups * stream.rows_per_group, options_.max_rows_per_group));
  return std::max(stream.rows_per_group,
                  static_cast<size_t>(std::min(soon, most)));
}

bool GroupOpening::MayPlan(const StreamState& stream, size_t most,
                           bool credited) const {
  const uint32_t held = stream.held->load();
  if (!credited && held >= stream.max_groups) return false;
  const PendingRequest& request = *stream.groups.first_request();
  if (request.request.memory != nullptr) return true;
  const size_t rows = std::min(most, request.left());
  const size_t reserve = held == 0 ? 0 : pool_->limit_bytes() / 4;
  // A job books no more than it leaves free, because storage may hold up rows
  // that are booked for.
  const size_t to_others = stream.ahead ? stream.job->booked : 0;
  return pool_->CanReserve(rows * stream.row_bytes,
                           booked_ + std::max(reserve, to_others));
}

StreamGroups::Iterator GroupOpening::Plan(StreamState& stream, size_t most) {
  const StreamGroups::Iterator it = stream.groups.Plan(
      std::make_shared<Group>(clock_, counters_, wake_), most);
  Group& group = *it->second;
  group.room.credit = std::make_shared<const Credit>(stream.held);
  group.sink = stream.sink;
  group.sending = stream.job->sending;
  group.stream = stream.id;
  group.work = stream.work;
  group.shared = stream.shared;
  group.outputs.rows = group.rows.size();
  group.outputs.field_bytes = stream.work->field_bytes();
  if (group.room.placed) UseMemory(group);
  if (group.trace != nullptr) [[unlikely]] {
    group.span = group.trace->RowsId(group.request_id, group.group_id);
    group.planned_at = clock_.Now();
  }
  if (stream.ahead) {
    group.reads =
        std::make_shared<ReadAhead::GroupReads>(&stream, group.rows.size());
    if (!group.room.placed)
      group.booked = BufferPool::ClassBytes(BufferBytes(stream, group));
    stream.job->booked += group.booked;
    booked_ += group.booked;
  }
  return it;
}

void GroupOpening::Reserve(StreamState& stream, Group& group) {
  if (group.room.placed || group.room.buffer.has_memory()) return;
  Unbook(stream, group);
  // There is room: MayPlan checked it, and later bookings came after.
  group.room.buffer = *pool_->Reserve(BufferBytes(stream, group));
}

void GroupOpening::Unbook(StreamState& stream, Group& group) {
  stream.job->booked -= group.booked;
  booked_ -= std::exchange(group.booked, 0);
}

void GroupOpening::Join(StreamState& stream, Groups* groups) {
  const std::shared_ptr<Group> first = groups->front();
  const int device = first->outputs.device;
  size_t room = stream.rows_per_group -
                std::min(stream.rows_per_group, first->rows.size());
  // Other groups would wait for this one's storage.
  if (room == 0 || !IsComplete(*first)) return;
  absl::flat_hash_map<uint64_t, std::shared_ptr<const Credit>> credits;
  credits[stream.id] = first->room.credit;
  const auto add = [&](StreamState& of, const std::shared_ptr<Group>& group) {
    Reserve(of, *group);
    // All groups of a stream in one stage count as one.
    auto& credit = credits.try_emplace(of.id, group->room.credit).first->second;
    group->room.credit = credit;
    room -= group->rows.size();
    groups->push_back(group);
  };
  // Groups that storage or a full device has held up.
  std::vector<std::pair<StreamState*, std::shared_ptr<Group>>> planned;
  using Waiting = std::pair<RequestPosition, StreamState*>;
  std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>> waiting;
  const auto wait = [&](StreamState& of) {
    const PendingRequest* const request = of.groups.first_request();
    if (!of.ahead && request != nullptr && DeviceOf(request->request) == device)
      waiting.emplace(request->position, &of);
  };
  for (const auto& [id, other] : stream.job->streams) {
    if (other->work != stream.work) continue;
    wait(*other);
    for (const auto& [place, group] : other->groups)
      if (group != first && group->phase == Phase::kPlanned &&
          group->outputs.device == device && IsComplete(*group))
        planned.emplace_back(other, group);
  }
  std::sort(planned.begin(), planned.end(), [](const auto& a, const auto& b) {
    return a.second->position < b.second->position;
  });
  for (const auto& [of, group] : planned)
    if (group->rows.size() <= room) add(*of, group);
  while (room > 0 && !waiting.empty()) {
    StreamState& of = *waiting.top().second;
    waiting.pop();
    if (!MayPlan(of, room, credits.contains(of.id))) continue;
    add(of, Plan(of, room)->second);
    wait(of);
  }
}

GroupOpening::Allocated GroupOpening::Allocate(const Groups& groups) {
  Allocated allocated{.statuses = std::vector<absl::Status>(groups.size()),
                      .stage = nullptr};
  Groups ready;
  for (size_t i = 0; i < groups.size(); ++i) {
    Group& group = *groups[i];
    absl::Status& status = allocated.statuses[i];
    if (!group.room.placed) status = group.room.buffer.Allocate();
    if (!status.ok()) continue;
    if (!group.room.placed) UseBuffer(group);
    ready.push_back(groups[i]);
  }
  if (!IsStaged(*groups.front()) || ready.empty()) return allocated;
  allocated.stage = ShareStage(ready);
  allocated.stage->stage =
      allocated.stage->work->BeginGroup(allocated.stage->outputs);
  return allocated;
}

}  // namespace leat::worker
