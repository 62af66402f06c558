// SPDX-License-Identifier: Apache-2.0
//
// Sessions: the streams of workers and consumers that are open, and those of
// them that are to be woken.
//
// Many sessions may have to be woken at once (a table is published): they wait
// in a queue, each once, and are woken a few at a time.
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

// Checks what goes into logs, tables and hashes: short and printable.
absl::Status CheckText(std::string_view what, std::string_view text);

struct WorkerSession : WokenSession {
  std::string name;
  bool replaced = false;
  bool welcomed = false;
  uint64_t access_version = 0;            // of the list that it was sent
  std::string log_level;                  // to be sent; empty: none
  std::deque<IndexDirective> directives;  // at most Indexing's requests
  std::set<std::string> datasets;         // whose owned shards are to be sent
  // A new worker is told of all datasets, in their order: it has been told of
  // those up to `swept`.
  bool sweeping = true;
  std::string swept;
};

class Sessions {
 public:
  using Wake = std::function<void()>;

  // `membership` outlives it.
  explicit Sessions(Membership* membership) : membership_(membership) {}

  // Numbers of sessions, and of calls that wait: later ones are larger.
  SessionId NewId() { return next_id_++; }
  SessionId next_id() const { return next_id_; }

  std::map<SessionId, WorkerSession>& workers() { return workers_; }
  ConsumerTable& consumers() { return consumers_; }
  const ConsumerTable& consumers() const { return consumers_; }
  // nullptr: no such worker, or it has no stream.
  WorkerSession* OfWorker(std::string_view name);

  void WakeLater(SessionId id);
  void WakeWorkersLater();
  void WakeAllLater();
  // Takes some of those that are to be woken; none: there is none.
  std::vector<Wake> TakeWakes();

  // The consumers of the table have another one to take.
  void TellTable(const TableKey& key);
  // These workers own other shards of the dataset.
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
