// SPDX-License-Identifier: Apache-2.0
//
// The memory socket (leat/v1/shared_memory.proto): an abstract Unix socket of
// type SEQPACKET over which memory is passed as a file descriptor. No gRPC
// here.
//
// A packet is one byte, kPacketTag, and a protobuf message; the tag makes an
// empty message different from the end of the stream. It holds at most
// kMaxPacketBytes and at most one descriptor. All descriptors are
// close-on-exec, and all sockets non-blocking: those functions that may wait
// take a deadline.
//
// Thread safety: functions keep no state. Of one socket one thread may send
// while another receives.
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

// `bytes` random bytes, fit for a secret.
std::string RandomBytes(size_t bytes);
// In lower case.
std::string Hex(std::string_view bytes);
// Takes as long for every `b` of a's length.
bool EqualInConstantTime(std::string_view a, std::string_view b);

// Listens on `name` (without the leading zero byte). kAlreadyExists: somebody
// does already.
absl::StatusOr<Fd> ListenMemorySocket(std::string_view name, int backlog);
// A connection that waits, its peer checked. kNotFound: none waits.
// kPermissionDenied: of a peer that CheckPeer refuses; it is closed.
// kResourceExhausted: no descriptor is left for it.
absl::StatusOr<Fd> AcceptMemorySocket(int listener);
// Connects, and checks the peer. kUnavailable: nobody listens, or not on this
// host. kDeadlineExceeded.
absl::StatusOr<Fd> ConnectMemorySocket(std::string_view name,
                                       MonotonicTime deadline);
// kPermissionDenied: the peer's user is another, and neither is root.
absl::Status CheckPeer(int socket);

// Sends one packet, with `fd` attached unless it is -1 (stays the caller's).
// kUnavailable: the peer has gone. kDeadlineExceeded: it does not read.
// kInvalidArgument: the message is too large.
absl::Status SendPacket(int socket,
                        const google::protobuf::MessageLite& message, int fd,
                        MonotonicTime deadline);
// Receives one packet; `fd` gets the attached descriptor, or none. Whatever
// else came attached is closed. kUnavailable: the peer has closed.
// kDeadlineExceeded. kInvalidArgument: not such a packet. With a deadline in
// the past: what has arrived already.
absl::Status ReceivePacket(int socket, google::protobuf::MessageLite* message,
                           Fd* fd, MonotonicTime deadline);
// Ends the connection for both sides, also where a forked child holds a copy
// of the descriptor.
void ShutDown(const Fd& socket);

// A memfd of `bytes` (a multiple of the page size), zeros, sealed against
// shrinking and growing. kUnavailable: this system gives none.
absl::StatusOr<Fd> CreateHostMemory(std::string_view name, size_t bytes);
// That `fd` is memory that cannot shrink under who maps it: a memfd of exactly
// `bytes`, sealed against shrinking and growing. kInvalidArgument: what it is
// instead.
absl::Status CheckHostMemory(int fd, uint64_t bytes);

}  // namespace leat::rpc
