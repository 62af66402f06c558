// SPDX-License-Identifier: Apache-2.0
//
// A consumer's end of the memory socket.
#pragma once

#include <sys/mman.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "core/status.h"
#include "gtest/gtest.h"
#include "leat/v1/shared_memory.pb.h"
#include "rpc/wire/memory_socket.h"

namespace leat::worker {

inline constexpr size_t kPage = 4096;
inline constexpr char kMemoryName[] = "leat-test-memory";

// A sealed memfd and this side's mapping of it.
class ClientMemory {
 public:
  explicit ClientMemory(size_t bytes)
      : bytes_((bytes + kPage - 1) / kPage * kPage) {
    auto fd = rpc::CreateHostMemory(kMemoryName, bytes_);
    EXPECT_TRUE(fd.ok()) << fd.status();
    fd_ = *std::move(fd);
    base_ = static_cast<char*>(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                                    MAP_SHARED, fd_.get(), 0));
    EXPECT_NE(base_, MAP_FAILED);
    std::memset(base_, 0xEE, bytes_);
  }
  ~ClientMemory() { munmap(base_, bytes_); }
  ClientMemory(const ClientMemory&) = delete;
  ClientMemory& operator=(const ClientMemory&) = delete;

  int fd() const { return fd_.get(); }
  size_t bytes() const { return bytes_; }
  const char* base() const { return base_; }
  // Returns the message that shares it.
  v1::ShareMemory Describe(uint64_t id, uint32_t rows,
                           std::vector<uint64_t> offsets) const {
    v1::ShareMemory share;
    share.set_memory_id(id);
    share.set_kind(v1::ShareMemory::KIND_HOST);
    share.set_bytes(bytes_);
    share.set_mapped_bytes(bytes_);
    share.set_rows(rows);
    share.mutable_field_offsets()->Add(offsets.begin(), offsets.end());
    return share;
  }

 private:
  const size_t bytes_;
  Fd fd_;
  char* base_ = nullptr;
};

class SharedMemoryClient {
 public:
  explicit SharedMemoryClient(const std::string& address) {
    auto socket = rpc::ConnectMemorySocket(address, Soon());
    EXPECT_TRUE(socket.ok()) << socket.status();
    if (socket.ok()) socket_ = *std::move(socket);
  }

  absl::Status Hello(const std::string& secret, uint32_t version = 1) {
    v1::ShareRequest request;
    request.mutable_hello()->set_version(version);
    request.mutable_hello()->set_secret(secret);
    return Call(request);
  }
  absl::Status Share(const v1::ShareMemory& share, int fd) {
    v1::ShareRequest request;
    *request.mutable_share() = share;
    return Call(request, fd);
  }
  absl::Status Return(uint64_t memory_id) {
    v1::ShareRequest request;
    request.mutable_give_back()->set_memory_id(memory_id);
    return Call(request);
  }
  absl::Status Call(const v1::ShareRequest& request, int fd = -1) {
    RETURN_IF_ERROR(rpc::SendPacket(socket_.get(), request, fd, Soon()));
    return Reply();
  }
  absl::Status Reply() {
    v1::ShareReply reply;
    Fd none;
    RETURN_IF_ERROR(rpc::ReceivePacket(socket_.get(), &reply, &none, Soon()));
    return {static_cast<absl::StatusCode>(reply.code()), reply.message()};
  }
  // True if the worker has closed its end, or does soon.
  bool WaitClosed() { return absl::IsUnavailable(Reply()); }
  bool ClosedNow() {
    v1::ShareReply reply;
    Fd none;
    return absl::IsUnavailable(
        rpc::ReceivePacket(socket_.get(), &reply, &none, Clock::Real().Now()));
  }
  void Close() {
    rpc::ShutDown(socket_);
    socket_.Close();
  }
  int socket() const { return socket_.get(); }

 private:
  static MonotonicTime Soon() {
    return Clock::Real().Now() + std::chrono::seconds(10);
  }
  Fd socket_;
};

}  // namespace leat::worker
