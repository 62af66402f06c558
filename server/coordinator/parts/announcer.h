// SPDX-License-Identifier: Apache-2.0
//
// Announcer: what happened, once for people who watch and once for the log.
//
//   Tell({"worker.lost", "warn", {"worker/w0"}, "worker w0 sends no heartbeat"})
//     the event   what `leat events` and the page show
//     the line    worker.lost worker=w0 worker w0 sends no heartbeat
//
// Viewers read events: nothing that only operators may see is among them. Such
// things are in `fields`, which the line has in place of the message.
//
// Events have the order of the changes, since they are noted under the lock.
// Thread-compatible; the owner locks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/clock.h"
#include "server/coordinator/parts/effects.h"
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

  // Events are stamped with this moment from now on.
  void Seen(Now now) { latest_ = now.wall; }
  // Notes an event. Its log line is written, and those who watch are woken,
  // when the lock is released.
  void Tell(const Announcement& what, Effects* effects);

 private:
  ClusterEvents* const events_;
  WallTime latest_{};
};

}  // namespace leat::server
