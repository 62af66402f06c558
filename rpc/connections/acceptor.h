// SPDX-License-Identifier: Apache-2.0
//
// Acceptor accepts connections from a Listener, on its own thread, and hands on
// their descriptors.
//
// If descriptors or memory run out, it pauses and tries again, for as long as
// the shortage lasts, so it recovers when the machine does. Connections over a
// cap are closed at once.
//
// The owner of a descriptor closes it without notice: the acceptor finds out
// which connections have ended when a cap is reached, by checking which
// descriptors are still the sockets that were handed on.
//
// Thread-safe.
#pragma once

#include <sys/socket.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>

#include "absl/status/statusor.h"
#include "core/clock.h"
#include "core/mutex.h"
#include "rpc/connections/listener.h"
#include "rpc/connections/unauthenticated_connections.h"

namespace leat::rpc {

struct AcceptorOptions {
  int max_connections = 1 << 30;
  // Per IP address. Unix sockets have none.
  int max_connections_per_address = 1 << 30;
  // Without descriptors or memory: the first pause, doubled up to the longest.
  Duration shortest_rest = std::chrono::milliseconds(10);
  Duration longest_rest = std::chrono::seconds(1);
  // Minimum time between two checks for connections that have ended.
  Duration look_interval = std::chrono::milliseconds(100);
  // Closes connections of other users' processes. REQUIRES: Unix sockets.
  bool own_user_only = false;
  // Receives each connection except the process's own; nullptr: not used.
  // Outlives the acceptor.
  UnauthenticatedConnections* unauthenticated = nullptr;
  // Has the contract of accept4(2).
  std::function<int(int, sockaddr*, socklen_t*, int)> accept = accept4;
};

class Acceptor {
 public:
  struct Counters {
    uint64_t accepted = 0;
    // Over max_connections, unauthenticated, or of another user.
    uint64_t refused_all = 0;
    uint64_t refused_address = 0;  // max_connections_per_address
    uint64_t rests = 0;
    uint64_t own = 0;  // connections announced by Expect
  };
  // Takes ownership of `fd`, which is connected and non-blocking. `own`: it is
  // the connection announced by Expect.
  using Hand = std::function<void(int listener, int fd, bool own)>;

  // kResourceExhausted: no thread or no descriptor is available.
  static absl::StatusOr<std::unique_ptr<Acceptor>> Start(
      Listener listener, AcceptorOptions options, Hand hand);
  ~Acceptor() { Stop(); }

  // Ends the thread and closes the listener. No connection is handed on
  // afterwards. Idempotent.
  void Stop();

  const std::string& address() const { return address_; }
  // Returns the name of the listener's first socket in `*name`; false after
  // Stop.
  bool ListensAt(sockaddr_storage* name, socklen_t* size) const;
  Counters counters() const;
  // Returns whether it lacks descriptors or memory to accept connections.
  bool resting() const { return resting_; }

  // Announces that the next connection from the socket of this name is this
  // process's own: it counts for no cap. No other socket has the name while
  // that socket exists.
  void Expect(const sockaddr_storage& name, socklen_t size);
  void ExpectNothing();

 private:
  // A connection that was handed on.
  struct Handed {
    uint64_t inode;
    std::string host;
  };

  Acceptor(Listener listener, AcceptorOptions options, Hand hand);
  void Loop();
  // Accepts all connections waiting at one socket, up to a bound.
  void AcceptFrom(int listener);
  void Take(int listener, int fd, const sockaddr_storage& peer, socklen_t size);
  void Rest(int error);
  void Recovered();
  bool IsFull(const std::string& host);
  enum class Bound { kAll, kAddress, kUnauthenticated, kUser };
  void Refuse(int fd, const std::string& host, Bound bound);
  void DropEnded();
  void Drop(std::unordered_map<int, Handed>::iterator handed);
  bool IsExpected(const sockaddr_storage& peer, socklen_t size);

  const AcceptorOptions options_;
  const Hand hand_;
  const std::string address_;
  int stop_fd_ = -1;  // readable: stop
  std::thread thread_;

  std::atomic<uint64_t> accepted_{0}, refused_all_{0}, refused_address_{0},
      rests_{0}, own_{0};
  std::atomic<bool> resting_{false};

  // Only the accepting thread uses these; they need no lock.
  std::unordered_map<int, Handed> handed_;
  std::unordered_map<std::string, int> by_host_;
  Duration rest_{0};  // the next pause; 0: none is due
  uint64_t rests_in_a_row_ = 0;
  MonotonicTime next_look_{}, next_refusal_log_{};
  uint64_t refusals_logged_ = 0;

  mutable Mutex mu_;
  // Its sockets change only at Stop, after the thread has ended.
  Listener listener_;
  std::string expected_ ABSL_GUARDED_BY(mu_);  // empty: nothing
};

}  // namespace leat::rpc
