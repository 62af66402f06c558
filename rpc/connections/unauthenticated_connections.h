// SPDX-License-Identifier: Apache-2.0
//
// UnauthenticatedConnections holds connections whose caller has not proved its
// identity yet. Each has a limited time and number of bytes to present an
// access token or another credential that the daemon accepts; then it is reset.
// gRPC limits neither: it keeps all headers it receives, and calls a handler
// only for a whole request.
//
// If a connection ends meanwhile because its TLS handshake failed, the caller's
// address and the reason are logged.
//
// How a connection is watched and ended (docs/decisions/0038-*.md):
//
// * The accept loop hands the connection to gRPC, and a second descriptor of it
//   (dup) to UnauthenticatedConnections. gRPC may close its own descriptor at
//   any time, and another connection may receive the number at once; with its
//   own descriptor UnauthenticatedConnections can never reset that other
//   connection by mistake.
// * This class reads nothing. epoll reports that bytes have arrived, and
//   TCP_INFO how many in total.
// * A connection is reset by connect() to AF_UNSPEC. shutdown() alone lets gRPC
//   parse the bytes already received and make calls from them, and leaves the
//   caller blocked on a full send buffer until its kernel gives up.
// * A second later the memory of the aborted calls is returned to the system,
//   since the allocator would keep it.
//
// All of this is needed because gRPC (1.51, in Debian 12) limits neither the
// bytes nor the time of a connection before its handler runs (CVE-2023-33953).
// Unix sockets are not watched: they are inside the machine.
//
// Thread-safe.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "core/clock.h"
#include "core/mutex.h"

namespace leat::rpc {

struct UnauthenticatedOptions {
  Duration time = std::chrono::seconds(10);
  uint64_t bytes = 256 << 10;  // received, including those of TLS
  // Maximum at a time; 0: an eighth of the process's descriptors, at most
  // 1,024, since each takes 30 KB while TLS begins, and gRPC keeps 10 KB of
  // them permanently. One more replaces the oldest, if that has had
  // `least_time`.
  size_t max = 0;
  Duration least_time = std::chrono::seconds(1);
};

class UnauthenticatedConnections {
 public:
  struct Counters {
    uint64_t proven = 0;
    uint64_t late = 0, large = 0, crowded_out = 0;  // reset
  };

  // kResourceExhausted: no thread or no descriptor is available.
  static absl::StatusOr<std::unique_ptr<UnauthenticatedConnections>> Start(
      UnauthenticatedOptions options);
  ~UnauthenticatedConnections();

  // Adds an accepted connection, before any byte of it is read. Returns false
  // if there is no room; then the caller closes it.
  bool Add(int fd, const sockaddr_storage& peer);
  // Marks the caller at `peer` as identified, so that its connection is no
  // longer watched. `peer` is written as gRPC names it, "ipv4:127.0.0.1:7411".
  void Prove(std::string_view peer);
  Counters counters() const;

 private:
  enum class Why { kLate, kLarge, kCrowdedOut, kGone, kProven };
  struct Connection {
    int fd = -1;  // our own
    std::string key;
    MonotonicTime came{};
  };

  explicit UnauthenticatedConnections(const UnauthenticatedOptions& options)
      : options_(options) {}
  void Loop();
  int MillisecondsToWait() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Takes out `id` if it has sent too much, or has ended.
  void Look(uint64_t id, uint32_t events) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Take(std::map<uint64_t, Connection>::iterator it, Why why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void CloseTaken();
  // Logs why the handshakes of `gone` have failed, if they have.
  void LogHandshakes(const std::vector<std::string>& gone);

  const UnauthenticatedOptions options_;
  int epoll_ = -1, wake_ = -1;
  std::thread thread_;

  mutable Mutex mu_;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  uint64_t last_id_ ABSL_GUARDED_BY(mu_) = 0;
  // The key increases with time, so deadlines ascend.
  std::map<uint64_t, Connection> connections_ ABSL_GUARDED_BY(mu_);
  std::unordered_map<std::string, uint64_t> by_key_ ABSL_GUARDED_BY(mu_);
  // Taken out, to be closed without the lock: whether to reset, and fd.
  std::vector<std::pair<bool, int>> taken_ ABSL_GUARDED_BY(mu_);
  // The first few of these that ended by themselves or by a handshake.
  std::vector<std::string> gone_ ABSL_GUARDED_BY(mu_);
  // When failed handshakes of a host were last logged, by host and reason.
  std::map<std::string, MonotonicTime> told_ ABSL_GUARDED_BY(mu_);
  uint64_t handshakes_held_back_ ABSL_GUARDED_BY(mu_) = 0;
  Counters counters_ ABSL_GUARDED_BY(mu_);
  // When the memory of unidentified connections is returned to the system;
  // max(): it is not worthwhile.
  MonotonicTime trim_at_ ABSL_GUARDED_BY(mu_) = MonotonicTime::max();
  int trims_left_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t unknown_ ABSL_GUARDED_BY(mu_) = 0;  // ended since then
  uint64_t logged_ ABSL_GUARDED_BY(mu_) = 0;
  MonotonicTime next_log_ ABSL_GUARDED_BY(mu_){};
};

}  // namespace leat::rpc
