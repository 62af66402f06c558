// SPDX-License-Identifier: Apache-2.0
//
// Sockets between processes of one user on one machine: abstract names, whole
// messages (SOCK_SEQPACKET), and both sides can check which process the peer
// is. One process at a time can bind a name, and the kernel frees it however
// that process ends, so it is a lock without a file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/private/child.h"

namespace leat::client {

inline constexpr size_t kMaxLocalMessage = 64 << 10;
inline constexpr size_t kMaxLocalName = 100;
inline constexpr size_t kMaxPassed = 128;

// Binds and listens. kAlreadyExists: the name is taken. kInternal: the system's
// reason.
absl::StatusOr<Fd> ListenLocal(const std::string& name);
// The same for a stream socket, for a program that is to inherit it.
absl::StatusOr<Fd> ListenStream(const std::string& name);
// kNotFound: no process listens. kPermissionDenied: a process of another user
// does (names both). kDeadlineExceeded: the listener's queue stays full.
absl::StatusOr<Fd> ConnectLocal(const std::string& name, absl::Time deadline);
// Returns the next connection from a process of this user; closes others. Not
// open: there is none. kResourceExhausted: no descriptor is left.
absl::StatusOr<Fd> AcceptLocal(int listener);

// Does not wait. The peer gets copies of the descriptors in `passed`. Returns
// false if it is gone, or reads too slowly; then the message is lost. REQUIRES:
// at most kMaxLocalMessage bytes, at least one, and kMaxPassed descriptors.
bool SendLocal(int fd, std::string_view message,
               const std::vector<int>& passed = {});
// `passed`: gets the descriptors in the message; nullptr: they are closed.
// kUnavailable: the peer has closed. kDeadlineExceeded.
absl::StatusOr<std::string> ReceiveLocal(int fd, absl::Time deadline,
                                         std::vector<Fd>* passed = nullptr);

// Returns the abstract names on this machine (in this network namespace) that
// begin with `prefix` and have a listener, sorted; at most `most`.
std::vector<std::string> ListeningNames(const std::string& prefix, size_t most);

// Closes the descriptor in children that this process forks (those that exec
// drop it by O_CLOEXEC), so that they keep nothing alive. The caller keeps the
// descriptor. At most 64 per process at a time; further ones are not closed.
class ClosedInForkedChildren {
 public:
  ClosedInForkedChildren() = default;
  explicit ClosedInForkedChildren(int fd);
  ClosedInForkedChildren(ClosedInForkedChildren&& other) noexcept;
  ClosedInForkedChildren& operator=(ClosedInForkedChildren&& other) noexcept;
  ~ClosedInForkedChildren() { Reset(); }
  void Reset();

 private:
  int slot_ = -1;
};

}  // namespace leat::client
