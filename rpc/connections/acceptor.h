// SPDX-License-Identifier: Apache-2.0
//
// Acceptor: takes connections from a Listener, on a thread of its own, and
// hands their descriptors on.
//
// Want of descriptors or memory makes it rest and try again, for as long as it
// lasts: what the machine gets back, it takes. Connections over a cap are
// closed at once.
//
// Who takes a descriptor closes it, without a word: that a connection has ended
// is found out where it matters, when a cap is reached, by looking at which
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
  // Of one IP address. Unix sockets have none.
  int max_connections_per_address = 1 << 30;
  // Without descriptors or memory: the first rest, doubled up to the longest.
  Duration shortest_rest = std::chrono::milliseconds(10);
  Duration longest_rest = std::chrono::seconds(1);
  // The least time between two looks at which connections have ended.
  Duration look_interval = std::chrono::milliseconds(100);
  // Connections of other users' processes are closed. REQUIRES: Unix sockets.
  bool own_user_only = false;
  // Is told of each connection but the process's own; null: nobody is. Outlives
  // the acceptor.
  UnauthenticatedConnections* unauthenticated = nullptr;
  // Has the contract of accept4(2).
  std::function<int(int, sockaddr*, socklen_t*, int)> accept = accept4;
};

class Acceptor {
 public:
  struct Counters {
    uint64_t accepted = 0;
    // max_connections, unauthenticated ones, and other users'
    uint64_t refused_all = 0;
    uint64_t refused_address = 0;  // max_connections_per_address
    uint64_t rests = 0;
    uint64_t own = 0;  // of Expect
  };
  // Takes over `fd`, which is connected and non-blocking. `own`: it is the
  // connection of Expect.
  using Hand = std::function<void(int listener, int fd, bool own)>;

  // kResourceExhausted: no thread or no descriptor can be had.
  static absl::StatusOr<std::unique_ptr<Acceptor>> Start(
      Listener listener, AcceptorOptions options, Hand hand);
  ~Acceptor() { Stop(); }

  // Ends the thread and closes the listener. Nothing is handed on afterwards.
  // Idempotent.
  void Stop();

  const std::string& address() const { return address_; }
  // Gives the name of the listener's first socket; false after Stop.
  bool ListensAt(sockaddr_storage* name, socklen_t* size) const;
  Counters counters() const;
  // It has no descriptors or memory to accept with.
  bool resting() const { return resting_; }

  // The next connection from the socket of this name is this process's own: it
  // counts for no cap. Nobody else has the name while that socket lives.
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
  // Everything that waits at one socket, up to a bound.
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
  int stop_fd_ = -1;  // readable: to stop
  std::thread thread_;

  std::atomic<uint64_t> accepted_{0}, refused_all_{0}, refused_address_{0},
      rests_{0}, own_{0};
  std::atomic<bool> resting_{false};

  // Only the accepting thread uses these; they need no lock.
  std::unordered_map<int, Handed> handed_;
  std::unordered_map<std::string, int> by_host_;
  Duration rest_{0};  // the next; 0: none is due
  uint64_t rests_in_a_row_ = 0;
  MonotonicTime next_look_{}, next_refusal_log_{};
  uint64_t refusals_logged_ = 0;

  mutable Mutex mu_;
  Listener listener_;  // its sockets change at Stop, after the thread's end
  std::string expected_ ABSL_GUARDED_BY(mu_);  // empty: nothing
};

}  // namespace leat::rpc
