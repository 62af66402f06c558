// SPDX-License-Identifier: Apache-2.0
//
// StreamGroups: the rows that one stream has to compute: requests with rows
// that are in no group yet, and groups with rows that have not begun.
//
// Both are in the order in which they are needed: epoch, then step, then
// arrival; groups of one request in the order of their rows. Groups are cut
// from the front of the first request. A request's id is in use until its last
// row has begun or the request is withdrawn.
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

struct PendingRequest {
  RowRequest request;
  RequestPosition position;
  MonotonicTime asked_at;
  size_t next = 0;  // rows before it are in groups

  size_t left() const { return request.rows.size() - next; }
};

// Thread-compatible: the owner locks. Objects that are returned by value or
// moved out are not destroyed here, so that the owner may destroy them without
// its lock.
class StreamGroups {
 public:
  // The position of a group's request, and the group's id.
  using Place = std::pair<RequestPosition, uint64_t>;
  using Map = std::map<Place, std::shared_ptr<Group>>;
  using Iterator = Map::const_iterator;

  Iterator begin() const { return groups_.begin(); }
  Iterator end() const { return groups_.end(); }
  bool empty() const { return groups_.empty(); }

  // REQUIRES: the request has rows, and the arrays parallel to them are as
  // long. kInvalidArgument: its id is in use.
  absl::Status Add(RowRequest request, uint64_t arrival, MonotonicTime now);

  // Returns the request that the next group is cut from; nullptr if all rows
  // are in groups.
  const PendingRequest* first_request() const {
    return requests_.empty() ? nullptr : &requests_.begin()->second;
  }
  // Moves the next rows of the first request, at most `most`, into `group`,
  // with the request's data for them, and gives it its id. REQUIRES:
  // first_request() is not nullptr, `most` > 0.
  Iterator Plan(std::shared_ptr<Group> group, size_t most);

  // Returns the first group with rows that no thread was given to read; end()
  // if there is none. REQUIRES: the groups are read ahead.
  Iterator FirstUnread() const;
  // True if the first request is needed before the group at `it`, or `it` is
  // the end. Rows of a request that are in a group are needed before its
  // others.
  bool RequestIsBefore(Iterator it) const;
  // Returns the earlier position of the group at `it` and the first request;
  // nullptr if there is neither.
  const RequestPosition* Earliest(Iterator it) const;

  // All rows of the group have begun, or never will. REQUIRES: the caller holds
  // it.
  void Remove(const Group& group);

  struct Withdrawn {
    std::vector<std::shared_ptr<Group>> groups;
    std::optional<PendingRequest>
        request;  // if it had rows that are in no group
  };
  // Forgets the request and its groups. nullopt: the id is not in use.
  std::optional<Withdrawn> Withdraw(uint64_t request_id);

 private:
  std::map<RequestPosition, PendingRequest> requests_;  // with rows to group
  Map groups_;                                          // with rows to begin
  absl::flat_hash_map<uint64_t, RequestPosition> positions_;  // by request_id
  uint64_t next_group_id_ = 1;
};

}  // namespace leat::worker
