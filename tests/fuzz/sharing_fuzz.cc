// SPDX-License-Identifier: Apache-2.0
//
// Packets on a memory socket, each with descriptors of some kind: from a
// consumer to a worker, and from a worker to a consumer. Accepted memory is
// written to at its ends.
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <vector>

#include "core/log.h"
#include "core/status.h"
#include "google/protobuf/stubs/logging.h"
#include "leat/v1/shared_memory.pb.h"
#include "rpc/wire/memory_socket.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/target.h"
#include "worker/shared_memory/stream_sharing.h"

namespace leat::worker::sharing_fuzz {
namespace {

using fuzz::Input;

constexpr uint64_t kBytes = 8192;  // of valid memories
constexpr int kMaxPackets = 16;
constexpr MonotonicTime kAtOnce{};

Fd Memory(bool sealed) {
  if (!sealed) {
    Fd fd(open("/dev/null", O_RDWR | O_CLOEXEC));
    fuzz::Require(fd.open());
    return fd;
  }
  auto memory = rpc::CreateHostMemory("fuzz", kBytes);
  fuzz::Require(memory.ok());
  return *std::move(memory);
}

// `kind` determines how many descriptors are attached, and which.
void SendRaw(int socket, std::string_view packet, int kind) {
  std::vector<Fd> fds;
  for (int i = 0; i < kind % 4; ++i) fds.push_back(Memory(kind < 128));
  alignas(cmsghdr) char control[CMSG_SPACE(3 * sizeof(int))] = {};
  iovec data{.iov_base = const_cast<char*>(packet.data()),
             .iov_len = packet.size()};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  if (!fds.empty()) {
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
    cmsghdr* const rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
    for (size_t i = 0; i < fds.size(); ++i) {
      const int fd = fds[i].get();
      std::memcpy(CMSG_DATA(rights) + i * sizeof fd, &fd, sizeof fd);
    }
  }
  (void)sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
}

// Rows of one byte per field, and of 100: they are within the memory, or
// rejected.
void Write(StreamSharing& stream, const v1::ShareMemory& share) {
  const size_t row_bytes = share.rows() % 2 == 0 ? 100 : 1;
  const std::vector<size_t> field_bytes(
      static_cast<size_t>(share.field_offsets_size()), row_bytes);
  const uint32_t places[] = {0, share.rows() - 1};
  const auto first = std::span(places).first(share.rows() == 1 ? 1 : 2);
  const auto offer = stream.Borrow(share.memory_id(), first, field_bytes);
  if (!offer.ok()) return;
  for (const uint64_t offset : offer->memory->field_offsets())
    for (const uint32_t place : first) {
      const uint64_t end = offset + (place + uint64_t{1}) * row_bytes;
      fuzz::Require(end <= share.bytes() && end <= kBytes);
      offer->memory->base()[end - 1] = std::byte{1};
    }
  fuzz::Require(!stream.Borrow(share.memory_id(), first, field_bytes).ok());
  stream.GiveBack(share.memory_id(), offer->number, first);
}

void Take(StreamSharing& stream, const v1::ShareRequest& request,
          const Fd& fd) {
  if (request.has_share() && stream.Share(fd.get(), request.share()).ok())
    Write(stream, request.share());
  if (request.has_give_back())
    (void)stream.Return(request.give_back().memory_id());
}

void Run(std::string_view bytes) {
  const google::protobuf::LogSilencer silent;  // of text that is not UTF-8
  static const bool quiet = SetLogLevel("error").ok();
  fuzz::Require(quiet);
  int pair[2];
  fuzz::Require(socketpair(AF_UNIX,
                           SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0,
                           pair) == 0);
  const Fd consumer(pair[0]);
  const auto worker = std::make_shared<const Fd>(pair[1]);
  const auto counters = std::make_shared<SharedMemoryCounters>();
  {
    StreamSharing stream(
        {.max_memories_per_stream = 4, .max_shared_bytes = 3 * kBytes}, nullptr,
        counters);
    fuzz::Require(stream.Attach(worker).ok());
    Input input(bytes);
    for (int i = 0; i < kMaxPackets && !input.empty(); ++i) {
      const int kind = input.Byte();
      const std::string_view packet = input.Text();
      v1::ShareRequest request;
      Fd fd;
      SendRaw(consumer.get(), packet, kind);
      if (rpc::ReceivePacket(worker->get(), &request, &fd, kAtOnce).ok())
        Take(stream, request, fd);
      v1::ShareReply reply;
      SendRaw(worker->get(), packet, kind);
      (void)rpc::ReceivePacket(consumer.get(), &reply, &fd, kAtOnce);
    }
  }
  fuzz::Require(counters->memories == 0 && counters->bytes == 0);
}

std::string Packet(int kind, const google::protobuf::MessageLite& message) {
  return fuzz::PutByte(kind) +
         fuzz::PutText(rpc::kPacketTag + message.SerializeAsString());
}

std::vector<std::string> Seeds() {
  v1::ShareRequest hello, share, back;
  hello.mutable_hello()->set_version(rpc::kMemorySocketVersion);
  hello.mutable_hello()->set_secret(std::string(16, 's'));
  v1::ShareMemory& memory = *share.mutable_share();
  memory.set_memory_id(9);
  memory.set_kind(v1::ShareMemory::KIND_HOST);
  memory.set_bytes(8000);
  memory.set_mapped_bytes(kBytes);
  memory.set_rows(40);
  memory.add_field_offsets(0);
  memory.add_field_offsets(4000);
  back.mutable_give_back()->set_memory_id(9);
  v1::ShareReply reply;
  reply.set_code(3);
  reply.set_message("no");
  const std::string good =
      Packet(0, hello) + Packet(1, share) + Packet(0, back) + Packet(1, share);
  memory.set_rows(3999);
  memory.set_kind(v1::ShareMemory::KIND_DEVICE);
  memory.set_device_uuid(std::string(16, 'u'));
  return {good, Packet(129, share) + Packet(2, share) + Packet(3, hello),
          Packet(0, reply) + fuzz::PutByte(1) + fuzz::PutText("")};
}

const fuzz::Target kTarget(
    {.name = "sharing", .run = Run, .seeds = Seeds, .runs = 1000});

}  // namespace
}  // namespace leat::worker::sharing_fuzz
