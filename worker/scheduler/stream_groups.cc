// SPDX-License-Identifier: Apache-2.0
#include "worker/scheduler/stream_groups.h"

#include <algorithm>

#include "core/status.h"

namespace leat::worker {
namespace {

// The group's part of what is parallel to the ask's rows.
template <typename T>
std::vector<T> Cut(const std::vector<T>& of, size_t first, size_t rows) {
  const auto from = of.begin() + static_cast<ptrdiff_t>(first);
  return {from, from + static_cast<ptrdiff_t>(rows)};
}

}  // namespace

absl::Status StreamGroups::Add(RowAsk ask, uint64_t arrival,
                               MonotonicTime now) {
  const AskPosition position{ask.epoch, ask.step, arrival};
  if (!positions_.emplace(ask.ask_id, position).second)
    return InvalidArgument("ask {} is asked already", ask.ask_id);
  asks_.emplace(
      position,
      PendingAsk{.ask = std::move(ask), .position = position, .asked_at = now});
  return absl::OkStatus();
}

StreamGroups::Iterator StreamGroups::Plan(std::shared_ptr<Group> group,
                                          size_t most) {
  const auto it = asks_.begin();
  PendingAsk& pending = it->second;
  const RowAsk& ask = pending.ask;
  const size_t first = pending.next;
  const size_t rows = std::min(most, pending.left());
  group->ask_id = ask.ask_id;
  group->group_id = next_group_id_++;
  group->epoch = ask.epoch;
  group->step = ask.step;
  group->position = pending.position;
  group->asked_at = pending.asked_at;
  group->lease = ask.lease;
  group->trace = ask.trace;
  group->absent = ask.absent;
  group->rows = Cut(ask.rows, first, rows);
  group->samples = Cut(ask.samples, first, rows);
  if (!ask.brought.empty()) group->brought = Cut(ask.brought, first, rows);
  group->room.placed = ask.memory != nullptr;
  if (group->room.placed) {
    group->memory = ask.memory;
    group->places = Cut(ask.places, first, rows);
  }
  pending.next += rows;
  const Place place(group->position, group->group_id);
  if (pending.left() == 0) asks_.erase(it);
  return groups_.emplace(place, std::move(group)).first;
}

StreamGroups::Iterator StreamGroups::FirstUnread() const {
  return std::find_if(groups_.begin(), groups_.end(), [](const auto& each) {
    return each.second->reads->unread();
  });
}

bool StreamGroups::AskIsBefore(Iterator it) const {
  return !asks_.empty() &&
         (it == groups_.end() || asks_.begin()->first < it->first.first);
}

const AskPosition* StreamGroups::Earliest(Iterator it) const {
  if (AskIsBefore(it)) return &asks_.begin()->first;
  return it == groups_.end() ? nullptr : &it->first.first;
}

void StreamGroups::Remove(const Group& group) {
  const AskPosition& position = group.position;
  groups_.erase({position, group.group_id});
  const auto other = groups_.lower_bound({position, 0});
  if ((other == groups_.end() || other->first.first != position) &&
      !asks_.contains(position))
    positions_.erase(group.ask_id);
}

std::optional<StreamGroups::Withdrawn> StreamGroups::Withdraw(uint64_t ask_id) {
  const auto found = positions_.find(ask_id);
  if (found == positions_.end()) return std::nullopt;
  const AskPosition position = found->second;
  positions_.erase(found);
  Withdrawn withdrawn;
  auto it = groups_.lower_bound({position, 0});
  while (it != groups_.end() && it->first.first == position) {
    withdrawn.groups.push_back(std::move(it->second));
    it = groups_.erase(it);
  }
  if (const auto ask = asks_.find(position); ask != asks_.end()) {
    withdrawn.ask = std::move(ask->second);
    asks_.erase(ask);
  }
  return withdrawn;
}

}  // namespace leat::worker
