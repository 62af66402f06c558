// SPDX-License-Identifier: Apache-2.0
//
// PrivateService: this process's lease of a private service. All processes of
// the user that give the same options in the same surroundings share the
// service (client/private/supervisor.h is the other side).
//
// The surroundings are what determines the service's answers: the programs, the
// working folder, the visible files and network (namespaces), the credentials
// of storage, the Slurm job, and a name. A hash of all of it is in the name of
// the socket.
//
// A thread logs the supervisor's messages, and its end. A forked child has no
// share in the lease; it may destroy the object.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/private/local_socket.h"

namespace leat::client {

struct PrivateOptions {
  std::string daemon_dir;  // empty: beside this library, ../bin, PATH
  uint32_t workers = 1;
  uint32_t threads = 0;      // per worker; 0: cores / workers
  uint64_t cache_bytes = 0;  // over all workers; 0: their default
  std::string disk_cache;    // absolute folder; empty: none
  uint64_t disk_cache_bytes = 0;
  std::string devices = "none";
  std::string name;     // LEAT_PRIVATE_NAME
  std::string version;  // of the package
  absl::Duration timeout = absl::Seconds(10);
};

class PrivateService {
 public:
  // Joins the service with these options, or starts it. kNotFound: no programs
  // (names the places). kUnavailable: it did not start (with the end of the
  // daemons' output), or it did not answer within the timeout.
  static absl::StatusOr<std::unique_ptr<PrivateService>> Acquire(
      const PrivateOptions& options);
  // Joins a running service, whatever its options; `pid`: its leat-private
  // process, 0: the only one. kNotFound: none runs. kFailedPrecondition:
  // several do (names them).
  static absl::StatusOr<std::unique_ptr<PrivateService>> Find(
      int64_t pid, absl::Duration timeout);
  ~PrivateService();

  // Returns a text if the service has ended, so that nothing will answer at
  // these addresses again; empty: it has not, as far as is known. Thread-safe.
  std::string LostText() const;

  const std::string& address() const { return address_; }
  const std::string& token() const { return token_; }
  // Returns {"pid", "started", "lessees", "options"}: the process that keeps
  // it; whether this object started it; how many shared it then, including this
  // one; its options at the start.
  std::string ToJson() const;

 private:
  PrivateService() = default;
  absl::Status Greeted(const std::string& greeting);
  absl::Status StartWatching();
  void Watch();
  // Sets `*refused` if the service has answered with the returned error.
  static absl::StatusOr<std::unique_ptr<PrivateService>> Join(
      const std::string& name, absl::Time deadline, bool* refused);

  std::string address_, token_, options_;
  int64_t pid_ = 0, lessees_ = 0;
  bool started_ = false;
  pid_t owner_ = 0;
  Fd lease_;
  // The sockets at which the daemons listen: no other process can take their
  // names while this process may connect to them, even if the service has died.
  std::vector<Fd> names_;
  ClosedInForkedChildren lease_guard_, stop_guard_;
  Pipe stop_;
  std::atomic<bool> lost_ = false;
  std::thread watcher_;
};

}  // namespace leat::client
