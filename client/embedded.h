// SPDX-License-Identifier: Apache-2.0
//
// Embedded: a private coordinator and workers on this machine, for as long as
// this object, or at most this process, lives.
//
// They listen on abstract Unix sockets of a random name and want a random
// token. They hold the reading end of a pipe whose writing end is only here,
// and end when it closes: also when this process is killed. Children that this
// process forks drop the writing end.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/child.h"
#include "core/clock.h"
#include "core/mutex.h"

namespace leat::client {

class Embedded {
 public:
  struct Options {
    std::string daemon_dir;  // empty: beside this library, ../bin, PATH
    uint32_t workers = 1;
    uint32_t threads = 0;  // of each worker; 0: cores / workers
    absl::Duration timeout = absl::Seconds(10);
    // How long the daemons may take to end before they are killed.
    absl::Duration stop_timeout = absl::Seconds(3);
  };

  // Returns when the coordinator serves and every worker is registered.
  // kNotFound: no daemons (names the places looked at). kUnavailable: one ended
  // at start, with the end of what it wrote; or not ready within the timeout.
  static absl::StatusOr<std::unique_ptr<Embedded>> Start(
      const Options& options);
  ~Embedded();

  const std::string& address() const { return address_; }
  const std::string& token() const { return token_; }
  std::vector<pid_t> pids() const;

 private:
  struct Daemon {
    std::string name;
    Child child;
    Fd ready;  // reading end; closed once ready
    std::string said;
  };
  Embedded() = default;
  absl::Status Spawn(const Options& options);
  absl::Status SpawnOne(const std::string& program,
                        std::vector<std::string> args);
  absl::Status AwaitReady(absl::Time deadline);
  absl::Status ReadReady(Daemon* daemon, absl::Time deadline);
  absl::Status Died(Daemon* daemon, absl::Time deadline);
  void Watch();
  bool AwaitEnd(MonotonicTime deadline);

  std::string address_, token_;
  pid_t owner_ = 0;  // a forked child must not stop the daemons
  absl::Duration stop_timeout_;
  Pipe lifeline_;
  int lifeline_slot_ = -1;
  Pipe stop_;  // wakes the watcher
  std::thread watcher_;
  mutable Mutex mu_;
  CondVar ended_;
  // The list is fixed once the watcher runs.
  std::vector<std::unique_ptr<Daemon>> daemons_ ABSL_GUARDED_BY(mu_);
};

// A program's path in `daemon_dir` if that is not empty, else beside this
// library, in ../bin of that, in a "bin" folder beside it, or in PATH.
// kNotFound names the places.
absl::StatusOr<std::string> FindDaemon(const std::string& program,
                                       const std::string& daemon_dir);

}  // namespace leat::client
