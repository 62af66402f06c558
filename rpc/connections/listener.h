// SPDX-License-Identifier: Apache-2.0
//
// Listener owns the sockets on which a server waits for connections: TCP of
// either family, a Unix socket's path, or an abstract name.
//
// Thread-compatible.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/clock.h"

namespace leat::rpc {

// Returns true for "unix:path", "unix:///path", "unix-abstract:name" and
// "fd:number".
bool IsUnixAddress(std::string_view address);

// Checks the flag --listen: a Listener must accept the address.
// kInvalidArgument: the message says what is wrong with it, and what was
// expected.
absl::Status CheckListenAddress(std::string_view address);

class Listener {
 public:
  // `address` is "host:port" or "[v6]:port" with port 0 for any, "unix:path" or
  // "unix-abstract:name". If a host has several addresses, all are used, with
  // one port. The kernel drops a peer that acknowledges nothing for
  // `unanswered`. "fd:number" is a listening Unix socket that the process has
  // inherited; address() is then that socket's. kUnavailable: cannot listen
  // (names the address and the reason: in use, not ours, ...).
  static absl::StatusOr<Listener> Bind(const std::string& address,
                                       Duration unanswered);
  Listener(Listener&& other) noexcept;
  Listener& operator=(Listener&& other) = delete;
  ~Listener() { Close(); }

  // Returns the address with the bound port.
  const std::string& address() const { return address_; }
  // Non-blocking; valid until Close.
  const std::vector<int>& sockets() const { return sockets_; }
  // Returns whether it was inherited: its callers are processes of this user.
  bool inherited() const { return inherited_; }
  // Refuses connections from now on, including those not accepted yet.
  // Idempotent.
  void Close();

 private:
  explicit Listener(std::string address) : address_(std::move(address)) {}
  absl::Status BindUnix();
  absl::Status Inherit();
  absl::Status BindTcp(Duration unanswered);

  std::string address_;
  bool inherited_ = false;
  std::string path_;  // the file of a Unix socket, to be removed
  std::vector<int> sockets_;
};

}  // namespace leat::rpc
