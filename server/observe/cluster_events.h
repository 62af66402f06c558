// SPDX-License-Identifier: Apache-2.0
//
// ClusterEvents: what happened, for people: the newest events in a ring, by
// number, and who waits for more.
//
// A watcher keeps nothing here but its wake: it reads what is behind the
// number that it has seen, so a slow one costs no memory, and is told how many
// events it missed. With room for four events:
//
//   Note(1) ... Note(6)      the ring has 3 4 5 6
//   Read(after 1)            3 4 5 6, one missed (2)
//   Read(after 6, watcher)   nothing: the watcher is woken once by Note(7)
//
// Events are not durable: after a restart the numbers begin with 1, and
// `instance` is another one.
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

// Fields as those of v1::ClusterEvent.
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
  uint64_t sequence = 0;  // of the last that was looked at
  uint64_t missed = 0;    // behind `after`, and forgotten
  bool more = false;      // events behind `sequence` are there
};

class ClusterEvents {
 public:
  struct Config {
    size_t max_events = 10'000;
    size_t max_watchers = 128;
    size_t page = 256;  // events that one Read gives
  };
  using Wake = std::function<void()>;

  // `instance`: of the coordinator's start.
  ClusterEvents(const Config& config, uint64_t instance)
      : config_(config), instance_(instance) {}

  uint64_t instance() const { return instance_; }
  // Gives it the next number. Texts are cut to kMaxText. Wakes nobody.
  void Note(ClusterEvent event);
  // Wakes those that wait, if there is something for them to look at.
  void WakeWatchers();

  // A number, not 0, for Read. `wake` must not block. kResourceExhausted.
  absl::StatusOr<uint64_t> Watch(Wake wake);
  // A wake that has begun may still run.
  void Unwatch(uint64_t watcher);
  // The next events that the query asks for. Where none is left, `watcher`
  // (0: nobody) is woken when there are more. kUnavailable: Stop was called.
  absl::StatusOr<EventPage> Read(const EventQuery& query, uint64_t watcher);
  // Ends the watching: wakes all.
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
  uint64_t woken_ ABSL_GUARDED_BY(mu_) = 0;  // the last that was told
  uint64_t next_watcher_ ABSL_GUARDED_BY(mu_) = 1;
  std::map<uint64_t, Watcher> watchers_ ABSL_GUARDED_BY(mu_);
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
};

// Checks the subject of an EventQuery: "KIND/NAME" or "KIND" of a kind that
// events are about. kInvalidArgument lists the kinds.
absl::Status CheckSubject(std::string_view subject);
// Whether `subject` is what an EventQuery asks for.
bool IsAbout(std::string_view subject, std::string_view wanted);

}  // namespace leat::server
