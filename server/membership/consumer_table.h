// SPDX-License-Identifier: Apache-2.0
//
// ConsumerTable: the connected consumers, with indexes.
//
// Every query over consumers uses an index, so that its cost does not grow with
// the number of other consumers:
//
//   Add(7, {job "cats", tables {(d1, exact)}, plan P, consumer "host/1"})
//   OfTable((d1, exact)) = {7}    these get a new assignment
//   OfJob("cats") = {7}           their reports make the job's line in a list
//   UsesPlan(P) = true            the job is in use, and does not expire
//   by_name() = {"host/1 …7": 7}  the order of lists, page by page
//   IsNewest(7) = true            no later session has the name "host/1"
//   Remove(7): all four forget it
//
// Invariant: an index names a consumer if and only if it is in the table.
// Thread-compatible; the owner locks.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/membership/assignments.h"
#include "server/state/types.h"

namespace leat::server {

// A session that pulls its messages after it was woken.
struct WokenSession {
  std::function<void()> wake;
  bool waking = false;  // is in the queue of sessions to be woken
};

struct Consumer : WokenSession {
  ConsumerOpening opening;
  std::string job;
  std::vector<TableKey> keys;  // of its job's tables
  ConsumerReport report;
  bool reported = false;       // false: `report` is empty
  std::set<TableKey> pending;  // tables to be sent
  bool told_failure = false;   // that its job was given up
  uint64_t settles = 0;        // number of the v1.ReportNow; 0: none requested
  bool settled = false;        // all workers have answered; to be sent
  WallTime opened_at, last_report_at;
  std::optional<MonotonicTime> stalled_since;
};

class ConsumerTable {
 public:
  // All tables are pending then. REQUIRES: `id` is new; opening and job do not
  // change afterwards, and keys change only by Move.
  Consumer& Add(SessionId id, Consumer consumer);
  // Gives a consumer other tables, which are pending then. REQUIRES: `id` is
  // known.
  void Move(SessionId id, std::span<const TableKey> keys);
  // Return nullptr if there is none.
  Consumer* Find(SessionId id);
  const Consumer* Find(SessionId id) const;
  std::optional<Consumer> Remove(SessionId id);

  const std::set<SessionId>& OfTable(const TableKey& key) const;
  const std::set<SessionId>& OfJob(std::string_view job) const;
  // The number of consumers, where a name counts once.
  size_t NumConsumers(std::string_view job) const;
  // Returns false if a later session has the same consumer's name. The stream
  // of this one has broken then, which the coordinator has not noticed yet, and
  // its reports are old. REQUIRES: `id` is known.
  bool IsNewest(SessionId id) const;
  const std::set<SessionId>& OfPlan(const Digest& plan_hash) const;
  bool UsesPlan(const Digest& plan_hash) const {
    return by_plan_.contains(plan_hash);
  }
  const std::map<SessionId, Consumer>& all() const { return consumers_; }
  const std::map<std::string, SessionId>& by_name() const { return by_name_; }
  size_t size() const { return consumers_.size(); }

 private:
  std::map<SessionId, Consumer> consumers_;
  std::map<TableKey, std::set<SessionId>> by_table_;
  std::map<std::string, std::set<SessionId>, std::less<>> by_job_;
  std::map<Digest, std::set<SessionId>> by_plan_;
  std::map<std::string, SessionId> by_name_;
};

}  // namespace leat::server
