// SPDX-License-Identifier: Apache-2.0
//
// Announcer reports each event once to watching people and once to the log.
//
//   Tell({"worker.lost", "warn", {"worker/w0"}, "worker w0 sends no heartbeat"})
//     the event   what `leat events` and the page show
//     the line    worker.lost worker=w0 worker w0 sends no heartbeat
//
// Viewers read events, so they contain nothing that is for operators only. Such
// data is in `fields`, which replaces the message in the log line.
//
// Events are in the order of the changes, since they are noted under the lock.
// Thread-compatible; the owner locks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/clock.h"
#include "server/coordinator/parts/deferred_actions.h"
#include "server/observe/cluster_events.h"
#include "server/state/types.h"

namespace leat::server {

struct Announcement {
  std::string type;                   // noun.verb: "worker.lost"
  std::string severity;               // "info", "warn", "error"
  std::vector<std::string> subjects;  // "worker/w0"
  std::string message;
  std::string fields{};  // "threads=8 session=3"
};

class Announcer {
 public:
  // `events` outlives it.
  explicit Announcer(ClusterEvents* events) : events_(events) {}

  // Stamps events with this time from now on.
  void Seen(Now now) { latest_ = now.wall; }
  // Notes an event. When the lock is released, its log line is written and
  // watchers are woken.
  void Tell(const Announcement& what, DeferredActions* deferred);

 private:
  ClusterEvents* const events_;
  WallTime latest_{};
};

}  // namespace leat::server
