// SPDX-License-Identifier: Apache-2.0
//
// Sockets between processes of one user on one machine: abstract names, whole
// messages (SOCK_SEQPACKET), and both sides see whose process the other one is.
// A name is bound by one process at a time and freed by the kernel, whatever
// ends that process, so it is a lock without a file.
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
// The same of a stream, for a program that is to inherit it.
absl::StatusOr<Fd> ListenStream(const std::string& name);
// kNotFound: nobody listens. kPermissionDenied: a process of another user does
// (names both). kDeadlineExceeded: the listener's queue stays full.
absl::StatusOr<Fd> ConnectLocal(const std::string& name, absl::Time deadline);
// The next connection of a process of this user; others are closed. Not open:
// there is none. kResourceExhausted: no descriptor is left.
absl::StatusOr<Fd> AcceptLocal(int listener);

// Does not wait. The other side gets copies of the descriptors in `passed`.
// False: it is gone, or reads too slowly; then the message is lost. REQUIRES:
// at most kMaxLocalMessage bytes, at least one, and kMaxPassed descriptors.
bool SendLocal(int fd, std::string_view message,
               const std::vector<int>& passed = {});
// `passed`: gets the descriptors that came along; nullptr: they are closed.
// kUnavailable: the other side has closed. kDeadlineExceeded.
absl::StatusOr<std::string> ReceiveLocal(int fd, absl::Time deadline,
                                         std::vector<Fd>* passed = nullptr);

// The abstract names on this machine (of this network namespace) that begin so
// and are listened at, sorted; at most `most`.
std::vector<std::string> ListeningNames(const std::string& prefix, size_t most);

// Closes the descriptor in children that this process forks (those that exec
// drop it by O_CLOEXEC), so that they keep nothing alive. The descriptor stays
// the caller's. At most 64 at a time in a process; more are not closed.
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
