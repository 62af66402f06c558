// SPDX-License-Identifier: Apache-2.0
//
// Embedded: a private coordinator and workers on this machine, for as long as
// this object, or at most this process, lives.
//
// They listen on abstract Unix sockets with a random name and require a random
// token. This process binds the names, and the daemons inherit the sockets, so
// the name of a dead daemon stays taken, and no other process can answer there.
// They hold the reading end of a pipe whose writing end is only here, and end
// when it closes, also when this process is killed. Children that this process
// forks drop the writing end.
//
// A worker that ends is restarted, after a pause that grows, up to a bound of
// consecutive ends. A coordinator that ends takes the jobs with it, so it is
// not restarted: the owner is told, and ends the service.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/private/child.h"
#include "client/private/local_socket.h"
#include "core/clock.h"
#include "core/mutex.h"

namespace leat::client {

class Embedded {
 public:
  struct Options {
    std::string daemon_dir;  // empty: beside this library, ../bin, PATH
    uint32_t workers = 1;
    uint32_t threads = 0;           // per worker; 0: cores / workers
    uint64_t cache_bytes = 0;       // over all workers; 0: their default
    std::string disk_cache;         // folder, with a part for each worker
    uint64_t disk_cache_bytes = 0;  // over all workers; with disk_cache
    std::string devices = "none";   // as leat-worker's --devices
    // Called by a thread of this object, with one line. `over`: the service can
    // no longer be used; no further call follows.
    std::function<void(bool over, const std::string& line)> on_event;
    absl::Duration first_pause = absl::Milliseconds(100);
    absl::Duration timeout = absl::Seconds(10);
    // How long the daemons may take to end before they are killed.
    absl::Duration stop_timeout = absl::Seconds(3);
  };

  // Returns when the coordinator serves and every worker is registered.
  // kNotFound: no daemons (names the places searched). kUnavailable: one ended
  // at start, with the end of its output; or not ready within the timeout.
  static absl::StatusOr<std::unique_ptr<Embedded>> Start(
      const Options& options);
  ~Embedded();

  const std::string& address() const { return address_; }
  const std::string& token() const { return token_; }
  // The daemons' listening sockets, the coordinator's first. While a process
  // has copies of them, no other process can take their names.
  std::vector<int> listeners() const;
  std::vector<pid_t> pids() const;

 private:
  struct Daemon {
    std::string name;
    std::vector<std::string> args;  // its own, without the common ones
    Fd listener;                    // open while this object lives
    Child child;
    Fd ready;  // reading end; closed once ready
    std::string said;
    // Used by the watcher only, once all are ready.
    bool is_worker = false, given_up = false;
    int ends_in_a_row = 0;
    MonotonicTime started;
    std::optional<MonotonicTime> start_at;  // of the restart
  };
  explicit Embedded(Options options) : options_(std::move(options)) {}
  absl::Status Spawn();
  absl::Status SpawnOne(const std::string& program, const std::string& name,
                        std::vector<std::string> args, bool is_worker);
  absl::Status StartChild(Daemon* daemon, Child* child, Fd* ready) const;
  std::vector<std::string> WorkerArgs(uint32_t number) const;
  absl::Status AwaitReady(absl::Time deadline);
  absl::Status ReadReady(Daemon* daemon, absl::Time deadline);
  absl::Status Died(Daemon* daemon, absl::Time deadline);
  void Watch();
  void ReadOutputs();
  void RefuseForEnded();
  void Revive();
  void Ended(Daemon* daemon, MonotonicTime now);
  void StartAgain(Daemon* daemon, MonotonicTime now);
  int UntilNextStart() const;
  void Say(bool over, const std::string& line) const;
  void Tell(char what) const;
  bool AwaitEnd(MonotonicTime deadline);

  const Options options_;
  std::string address_, token_;
  pid_t owner_ = 0;  // a forked child must not stop the daemons
  Pipe lifeline_;
  ClosedInForkedChildren lifeline_guard_;
  Pipe orders_;          // to the watcher
  bool refuses_ = true;  // the watcher's
  std::thread watcher_;
  mutable Mutex mu_;
  CondVar ended_;
  // The list, but not its elements, is fixed once the watcher runs.
  std::vector<std::unique_ptr<Daemon>> daemons_ ABSL_GUARDED_BY(mu_);
};

// Returns a program's path in `daemon_dir` if that is not empty; otherwise
// beside this library, in ../bin of that, in a "bin" folder beside it, or in
// PATH. kNotFound names the places.
absl::StatusOr<std::string> FindDaemon(const std::string& program,
                                       const std::string& daemon_dir);

}  // namespace leat::client
