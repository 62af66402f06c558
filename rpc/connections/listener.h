// SPDX-License-Identifier: Apache-2.0
//
// Listener: the sockets on which a server waits for connections: TCP of either
// family, a Unix socket's path, or an abstract name.
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

// "unix:path", "unix:///path", "unix-abstract:name" or "fd:number".
bool IsUnixAddress(std::string_view address);

// Of the flag --listen: whether it is an address that a Listener takes.
// kInvalidArgument: says what is wrong with it, and what was expected.
absl::Status CheckListenAddress(std::string_view address);

class Listener {
 public:
  // `address` is "host:port" or "[v6]:port" with port 0 for any, "unix:path" or
  // "unix-abstract:name". A host of several addresses is listened to on each,
  // on one port. A peer that acknowledges nothing for `unanswered` is given up
  // by the kernel. "fd:number": a Unix socket that the process has inherited
  // and that listens; address() is then its own. kUnavailable: cannot listen
  // (names the address and the reason: in use, not ours, ...).
  static absl::StatusOr<Listener> Bind(const std::string& address,
                                       Duration unanswered);
  Listener(Listener&& other) noexcept;
  Listener& operator=(Listener&& other) = delete;
  ~Listener() { Close(); }

  // The bound port is filled in.
  const std::string& address() const { return address_; }
  // Non-blocking; valid until Close.
  const std::vector<int>& sockets() const { return sockets_; }
  // It was inherited: its callers are processes of this user.
  bool inherited() const { return inherited_; }
  // Connections are refused from now on, also those that were not accepted yet.
  // Idempotent.
  void Close();

 private:
  explicit Listener(std::string address) : address_(std::move(address)) {}
  absl::Status BindUnix();
  absl::Status Inherit();
  absl::Status BindTcp(Duration unanswered);

  std::string address_;
  bool inherited_ = false;
  std::string path_;  // of a Unix socket that is to be removed
  std::vector<int> sockets_;
};

}  // namespace leat::rpc
