// SPDX-License-Identifier: Apache-2.0
//
// Sessions: the open streams of workers and consumers, and the queue of those
// to be woken.
//
// Many sessions may have to be woken at once (a table is published): each waits
// in a queue, once, and a few are woken at a time.
//
//   WakeLater(7), WakeLater(9), WakeLater(7)   TakeWakes() = wakes of 7 and 9
//
// Thread-compatible; the owner locks.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "server/membership/consumer_table.h"
#include "server/membership/membership.h"
#include "server/state/types.h"

namespace leat::server {

// Checks text for logs, tables and hashes: short and printable.
absl::Status CheckText(std::string_view what, std::string_view text);

struct WorkerSession : WokenSession {
  std::string name;
  bool replaced = false;
  bool welcomed = false;
  uint64_t access_version = 0;            // of the last list it was sent
  std::string log_level;                  // to be sent; empty: none
  std::deque<IndexDirective> directives;  // at most Indexing's requests
  std::set<std::string> datasets;         // whose owned shards are to be sent
  // A new worker is sent the owned shards of all datasets, in order; `synced`
  // is the last dataset that was sent.
  bool initial_sync = true;
  std::string synced;
  // Numbers of v1.ReportNow: the one that it was sent last, and the one that
  // it has answered.
  uint64_t asked = 0, answered = 0;
};

class Sessions {
 public:
  using Wake = std::function<void()>;

  // `membership` outlives it.
  explicit Sessions(Membership* membership) : membership_(membership) {}

  // Numbers sessions and waiting calls: later ones are larger.
  SessionId NewId() { return next_id_++; }
  SessionId next_id() const { return next_id_; }

  std::map<SessionId, WorkerSession>& workers() { return workers_; }
  ConsumerTable& consumers() { return consumers_; }
  const ConsumerTable& consumers() const { return consumers_; }
  // Returns nullptr if there is no such worker, or it has no stream.
  WorkerSession* OfWorker(std::string_view name);

  void WakeLater(SessionId id);
  void WakeWorkersLater();
  void WakeAllLater();
  // Takes some sessions that are to be woken; empty: there are none.
  std::vector<Wake> TakeWakes();

  // Reports that the table's consumers have a new assignment to take.
  void TellTable(const TableKey& key);
  // Reports that these workers own other shards of the dataset.
  void TellOwned(const std::string& dataset,
                 const std::vector<std::string>& workers);

 private:
  WokenSession* Find(SessionId id);

  Membership* const membership_;
  SessionId next_id_ = 1;
  std::map<SessionId, WorkerSession> workers_;
  ConsumerTable consumers_;
  std::deque<SessionId> to_wake_;  // each once
};

}  // namespace leat::server
