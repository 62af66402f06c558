// SPDX-License-Identifier: Apache-2.0
//
// UnauthenticatedConnections: connections whose caller has proved nothing yet.
// Each has a time and a number of bytes to show an access token, or what else
// opens the daemon; then it is reset. gRPC bounds neither: it keeps whatever
// headers it is sent, and asks who calls when it has a whole request.
//
// A connection that ends meanwhile, as a TLS handshake has failed, is logged
// with the caller's address and the reason.
//
// How a connection is watched and ended (docs/decisions/0038-*.md):
//
//  * The accept loop hands the connection to gRPC, and a second descriptor of
//    it (dup) to UnauthenticatedConnections. gRPC closes its own whenever it
//    likes, and the number may go to another connection at once; with a
//    descriptor of its own UnauthenticatedConnections can never reset that one
//    by mistake.
//  * Nobody here reads. epoll tells that bytes have come, and TCP_INFO how many
//    there were in all.
//  * A connection is reset by connect() to AF_UNSPEC. shutdown() alone lets
//    gRPC parse the bytes that it was sent, of which it makes calls, and leaves
//    the caller blocked on a full send buffer until its kernel gives up.
//  * A second later the memory of the calls that were cut is given back to the
//    system: the allocator would keep it.
//
// All of this is needed since gRPC (1.51, that of Debian 12) bounds neither the
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
  uint64_t bytes = 256 << 10;  // received; also those of TLS
  // At a time; 0: an eighth of the process's descriptors, at most 1,024, since
  // each takes 30 KB while TLS begins, and gRPC keeps 10 of them for good. One
  // more takes the place of the oldest, if that had `least_time`.
  size_t max = 0;
  Duration least_time = std::chrono::seconds(1);
};

class UnauthenticatedConnections {
 public:
  struct Counters {
    uint64_t proven = 0;
    uint64_t late = 0, large = 0, crowded_out = 0;  // reset
  };

  // kResourceExhausted: no thread or no descriptor can be had.
  static absl::StatusOr<std::unique_ptr<UnauthenticatedConnections>> Start(
      UnauthenticatedOptions options);
  ~UnauthenticatedConnections();

  // A connection that was accepted, before anybody reads from it. False: there
  // is no room for it, and the caller closes it.
  bool Add(int fd, const sockaddr_storage& peer);
  // Tells that the caller at `peer` is known, so that its connection is no
  // longer watched. `peer` is written as gRPC names it,
  // "ipv4:127.0.0.1:7411".
  void Prove(std::string_view peer);
  Counters counters() const;

 private:
  enum class Why { kLate, kLarge, kCrowdedOut, kGone, kProven };
  struct Connection {
    int fd = -1;  // ours
    std::string key;
    MonotonicTime came{};
  };

  explicit UnauthenticatedConnections(const UnauthenticatedOptions& options)
      : options_(options) {}
  void Loop();
  int MillisecondsToWait() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Whether `id` has sent too much, or has gone.
  void Look(uint64_t id, uint32_t events) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Take(std::map<uint64_t, Connection>::iterator it, Why why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void CloseTaken();
  // Says why the handshakes of `gone` have failed, if they have.
  void LogHandshakes(const std::vector<std::string>& gone);

  const UnauthenticatedOptions options_;
  int epoll_ = -1, wake_ = -1;
  std::thread thread_;

  mutable Mutex mu_;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  uint64_t last_id_ ABSL_GUARDED_BY(mu_) = 0;
  // The key is the age, so deadlines ascend.
  std::map<uint64_t, Connection> connections_ ABSL_GUARDED_BY(mu_);
  std::unordered_map<std::string, uint64_t> by_key_ ABSL_GUARDED_BY(mu_);
  // Taken out, and to be closed without the lock: whether to reset, and fd.
  std::vector<std::pair<bool, int>> taken_ ABSL_GUARDED_BY(mu_);
  // Of these, who left by themselves or by a handshake; the first few.
  std::vector<std::string> gone_ ABSL_GUARDED_BY(mu_);
  // When a host's handshakes were last told of, with the reason.
  std::map<std::string, MonotonicTime> told_ ABSL_GUARDED_BY(mu_);
  uint64_t handshakes_held_back_ ABSL_GUARDED_BY(mu_) = 0;
  Counters counters_ ABSL_GUARDED_BY(mu_);
  // When memory that the unknown ones took goes back to the system; max(): it
  // is not worth it.
  MonotonicTime trim_at_ ABSL_GUARDED_BY(mu_) = MonotonicTime::max();
  int trims_left_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t unknown_ ABSL_GUARDED_BY(mu_) = 0;  // ended since then
  uint64_t logged_ ABSL_GUARDED_BY(mu_) = 0;
  MonotonicTime next_log_ ABSL_GUARDED_BY(mu_){};
};

}  // namespace leat::rpc
