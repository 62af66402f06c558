// SPDX-License-Identifier: Apache-2.0
//
// The memory socket (leat/v1/shared_memory.proto) is an abstract Unix socket of
// type SEQPACKET over which memory is passed as a file descriptor. gRPC is not
// used.
//
// A packet is one byte, kPacketTag, and a protobuf message; the tag
// distinguishes an empty message from the end of the stream. A packet has at
// most kMaxPacketBytes and at most one descriptor. All descriptors are
// close-on-exec, and all sockets non-blocking: functions that may wait take a
// deadline.
//
// Thread safety: functions keep no state. One thread may send on a socket while
// another receives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/clock.h"
#include "core/fd.h"

namespace google::protobuf {
class MessageLite;
}

namespace leat::rpc {

inline constexpr uint32_t kMemorySocketVersion = 1;
inline constexpr size_t kMemorySecretBytes = 16;
inline constexpr size_t kMaxPacketBytes = 64 << 10;
inline constexpr char kPacketTag = 1;

// Returns `bytes` random bytes, suitable for a secret.
std::string RandomBytes(size_t bytes);
// Returns lower-case hexadecimal digits.
std::string Hex(std::string_view bytes);
// Takes the same time for every `b` that is as long as `a`.
bool EqualInConstantTime(std::string_view a, std::string_view b);

// Listens on `name` (without the leading zero byte). kAlreadyExists: another
// socket already does.
absl::StatusOr<Fd> ListenMemorySocket(std::string_view name, int backlog);
// Accepts a waiting connection, after checking its peer. kNotFound: none waits.
// kPermissionDenied: CheckPeer rejects the peer; the connection is closed.
// kResourceExhausted: no descriptor is left for it.
absl::StatusOr<Fd> AcceptMemorySocket(int listener);
// Connects, and checks the peer. kUnavailable: no process on this host listens.
// kDeadlineExceeded.
absl::StatusOr<Fd> ConnectMemorySocket(std::string_view name,
                                       MonotonicTime deadline);
// kPermissionDenied: the peer is another user, and neither is root.
absl::Status CheckPeer(int socket);

// Sends one packet, with `fd` attached unless it is -1; the caller keeps `fd`.
// kUnavailable: the peer has gone. kDeadlineExceeded: it does not read.
// kInvalidArgument: the message is too large.
absl::Status SendPacket(int socket,
                        const google::protobuf::MessageLite& message, int fd,
                        MonotonicTime deadline);
// Receives one packet; `fd` receives the attached descriptor, or none. Other
// attached descriptors are closed. kUnavailable: the peer has closed.
// kDeadlineExceeded. kInvalidArgument: not such a packet. A deadline in the
// past receives only a packet that has already arrived.
absl::Status ReceivePacket(int socket, google::protobuf::MessageLite* message,
                           Fd* fd, MonotonicTime deadline);
// Ends the connection for both sides, even if a forked child has a copy of the
// descriptor.
void ShutDown(const Fd& socket);

// Creates a memfd of `bytes` (a multiple of the page size), filled with zeros,
// sealed against shrinking and growing. kUnavailable: the system cannot create
// it.
absl::StatusOr<Fd> CreateHostMemory(std::string_view name, size_t bytes);
// Checks that `fd` is memory that cannot shrink while it is mapped: a memfd of
// exactly `bytes`, sealed against shrinking and growing. kInvalidArgument: the
// message says what it is instead.
absl::Status CheckHostMemory(int fd, uint64_t bytes);

}  // namespace leat::rpc
