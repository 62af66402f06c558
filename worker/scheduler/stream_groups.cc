// SPDX-License-Identifier: Apache-2.0
#include "worker/scheduler/stream_groups.h"

#include <algorithm>

#include "core/status.h"

namespace leat::worker {
namespace {

// Returns the group's part of an array that is parallel to the request's rows.
template <typename T>
std::vector<T> Cut(const std::vector<T>& of, size_t first, size_t rows) {
  const auto from = of.begin() + static_cast<ptrdiff_t>(first);
  return {from, from + static_cast<ptrdiff_t>(rows)};
}

}  // namespace

absl::Status StreamGroups::Add(RowRequest request, uint64_t arrival,
                               MonotonicTime now) {
  const RequestPosition position{request.epoch, request.step, arrival};
  if (!positions_.emplace(request.request_id, position).second)
    return InvalidArgument("request {} is asked already", request.request_id);
  requests_.emplace(position, PendingRequest{.request = std::move(request),
                                             .position = position,
                                             .asked_at = now});
  return absl::OkStatus();
}

StreamGroups::Iterator StreamGroups::Plan(std::shared_ptr<Group> group,
                                          size_t most) {
  const auto it = requests_.begin();
  PendingRequest& pending = it->second;
  const RowRequest& request = pending.request;
  const size_t first = pending.next;
  const size_t rows = std::min(most, pending.left());
  group->request_id = request.request_id;
  group->group_id = next_group_id_++;
  group->epoch = request.epoch;
  group->step = request.step;
  group->position = pending.position;
  group->asked_at = pending.asked_at;
  group->lease = request.lease;
  group->trace = request.trace;
  group->absent = request.absent;
  group->rows = Cut(request.rows, first, rows);
  group->samples = Cut(request.samples, first, rows);
  if (!request.supplied.empty())
    group->supplied = Cut(request.supplied, first, rows);
  group->room.placed = request.memory != nullptr;
  if (group->room.placed) {
    group->memory = request.memory;
    group->slots = Cut(request.slots, first, rows);
  }
  pending.next += rows;
  const Place place(group->position, group->group_id);
  if (pending.left() == 0) requests_.erase(it);
  return groups_.emplace(place, std::move(group)).first;
}

StreamGroups::Iterator StreamGroups::FirstUnread() const {
  return std::find_if(groups_.begin(), groups_.end(), [](const auto& each) {
    return each.second->reads->unread();
  });
}

bool StreamGroups::RequestIsBefore(Iterator it) const {
  return !requests_.empty() &&
         (it == groups_.end() || requests_.begin()->first < it->first.first);
}

const RequestPosition* StreamGroups::Earliest(Iterator it) const {
  if (RequestIsBefore(it)) return &requests_.begin()->first;
  return it == groups_.end() ? nullptr : &it->first.first;
}

void StreamGroups::Remove(const Group& group) {
  const RequestPosition& position = group.position;
  groups_.erase({position, group.group_id});
  const auto other = groups_.lower_bound({position, 0});
  if ((other == groups_.end() || other->first.first != position) &&
      !requests_.contains(position))
    positions_.erase(group.request_id);
}

std::optional<StreamGroups::Withdrawn> StreamGroups::Withdraw(
    uint64_t request_id) {
  const auto found = positions_.find(request_id);
  if (found == positions_.end()) return std::nullopt;
  const RequestPosition position = found->second;
  positions_.erase(found);
  Withdrawn withdrawn;
  auto it = groups_.lower_bound({position, 0});
  while (it != groups_.end() && it->first.first == position) {
    withdrawn.groups.push_back(std::move(it->second));
    it = groups_.erase(it);
  }
  if (const auto request = requests_.find(position);
      request != requests_.end()) {
    withdrawn.request = std::move(request->second);
    requests_.erase(request);
  }
  return withdrawn;
}

}  // namespace leat::worker
