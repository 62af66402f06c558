// SPDX-License-Identifier: Apache-2.0
//
// StreamGroups: what one stream has to compute: asks with rows that are in no
// group yet, and groups with rows that have not begun.
//
// Both are in the order in which they are needed: epoch, then step, then
// arrival; groups of one ask in that of their rows. Groups are cut from the
// first ask, from its front. An ask's id is in use until its last row has
// begun or the ask is withdrawn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "core/clock.h"
#include "worker/compute/row_work.h"
#include "worker/scheduler/group.h"

namespace leat::worker {

struct PendingAsk {
  RowAsk ask;
  AskPosition position;
  MonotonicTime asked_at;
  size_t next = 0;  // rows before it are in groups

  size_t left() const { return ask.rows.size() - next; }
};

// Thread-compatible: the owner locks. Nothing that is returned by value or
// moved out is destroyed here, so that the owner may do so without its lock.
class StreamGroups {
 public:
  // A group's ask, and the group's id.
  using Place = std::pair<AskPosition, uint64_t>;
  using Map = std::map<Place, std::shared_ptr<Group>>;
  using Iterator = Map::const_iterator;

  Iterator begin() const { return groups_.begin(); }
  Iterator end() const { return groups_.end(); }
  bool empty() const { return groups_.empty(); }

  // REQUIRES: the ask has rows, and what is parallel to them is as long.
  // kInvalidArgument: its id is in use.
  absl::Status Add(RowAsk ask, uint64_t arrival, MonotonicTime now);

  // The ask that the next group is made of; null: all rows are in groups.
  const PendingAsk* first_ask() const {
    return asks_.empty() ? nullptr : &asks_.begin()->second;
  }
  // Puts the next rows of the first ask, `most` or what is left, into `group`,
  // with all that the ask says of them, and gives it its id.
  // REQUIRES: first_ask() is not null, `most` > 0.
  Iterator Plan(std::shared_ptr<Group> group, size_t most);

  // The first group of which threads were not given all rows to read; end():
  // none. REQUIRES: the groups are read ahead.
  Iterator FirstUnread() const;
  // Whether the first ask is needed before the group at `it`, or that is the
  // end. Of rows of one ask, those in a group are needed first.
  bool AskIsBefore(Iterator it) const;
  // What is needed first, of the group at `it` and the first ask; null: neither
  // is there.
  const AskPosition* Earliest(Iterator it) const;

  // All rows of the group have begun, or never will.
  // REQUIRES: the caller holds it.
  void Remove(const Group& group);

  struct Withdrawn {
    std::vector<std::shared_ptr<Group>> groups;
    std::optional<PendingAsk> ask;  // if it had rows that are in no group
  };
  // Forgets the ask and its groups. nullopt: the id is not in use.
  std::optional<Withdrawn> Withdraw(uint64_t ask_id);

 private:
  std::map<AskPosition, PendingAsk> asks_;                // with rows to group
  Map groups_;                                            // with rows to begin
  absl::flat_hash_map<uint64_t, AskPosition> positions_;  // by ask_id
  uint64_t next_group_id_ = 1;
};

}  // namespace leat::worker
