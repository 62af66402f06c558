// SPDX-License-Identifier: Apache-2.0
//
// ClusterEvents: the newest events, for people, in a ring by number, and the
// watchers that wait for more.
//
// A watcher stores nothing here except its wake: it reads the events after the
// number that it has seen, so a slow watcher costs no memory, and learns how
// many events it missed. With room for four events:
//
//   Note(1) ... Note(6)      the ring has 3 4 5 6
//   Read(after 1)            3 4 5 6, one missed (2)
//   Read(after 6, watcher)   nothing: the watcher is woken once by Note(7)
//
// Events are not durable: after a restart the numbers begin with 1, and
// `instance` changes.
//
// Thread-safe; its lock is a leaf. Wakes are called without it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/clock.h"
#include "core/mutex.h"

namespace leat::server {

// Fields are those of v1::ClusterEvent.
struct ClusterEvent {
  uint64_t sequence = 0;
  WallTime at{};
  std::string type, severity;
  std::vector<std::string> subjects;
  std::string message;
};

struct EventQuery {
  uint64_t after = 0;
  WallTime since = WallTime::min();
  std::string subject;  // "job/cats", "job"; empty: every subject
};

struct EventPage {
  std::vector<std::shared_ptr<const ClusterEvent>> events;
  uint64_t sequence = 0;  // of the last event considered
  uint64_t missed = 0;    // after `after`, and forgotten
  bool more = false;      // there are events after `sequence`
};

class ClusterEvents {
 public:
  struct Config {
    size_t max_events = 10'000;
    size_t max_watchers = 128;
    size_t page = 256;  // events per Read
  };
  using Wake = std::function<void()>;

  // `instance`: identifies the coordinator's start.
  ClusterEvents(const Config& config, uint64_t instance)
      : config_(config), instance_(instance) {}

  uint64_t instance() const { return instance_; }
  // Assigns the next number. Texts are cut to kMaxText. Wakes no watcher.
  void Note(ClusterEvent event);
  // Wakes waiting watchers, if there are new events for them.
  void WakeWatchers();

  // Returns a number, not 0, for Read. `wake` must not block.
  // kResourceExhausted.
  absl::StatusOr<uint64_t> Watch(Wake wake);
  // A wake that has begun may still run afterwards.
  void Unwatch(uint64_t watcher);
  // Returns the next events that match the query. If none is left, `watcher`
  // (0: none) is woken when there are more. kUnavailable: Stop was called.
  absl::StatusOr<EventPage> Read(const EventQuery& query, uint64_t watcher);
  // Ends watching: wakes all watchers.
  void Stop();

  static constexpr size_t kMaxText = 1024;
  static constexpr size_t kMaxSubjects = 8;

 private:
  struct Watcher {
    Wake wake;
    bool waiting = false;
  };

  const Config config_;
  const uint64_t instance_;
  Mutex mu_;
  std::deque<std::shared_ptr<const ClusterEvent>> ring_ ABSL_GUARDED_BY(mu_);
  uint64_t last_ ABSL_GUARDED_BY(mu_) = 0;   // sequence
  uint64_t woken_ ABSL_GUARDED_BY(mu_) = 0;  // the last announced number
  uint64_t next_watcher_ ABSL_GUARDED_BY(mu_) = 1;
  std::map<uint64_t, Watcher> watchers_ ABSL_GUARDED_BY(mu_);
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
};

// Checks the subject of an EventQuery: "KIND/NAME" or "KIND", where events have
// subjects of this kind. kInvalidArgument lists the kinds.
absl::Status CheckSubject(std::string_view subject);
// Returns whether `subject` matches an EventQuery's subject.
bool IsAbout(std::string_view subject, std::string_view wanted);

}  // namespace leat::server
