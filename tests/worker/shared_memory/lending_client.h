// SPDX-License-Identifier: Apache-2.0
//
// A consumer's end of the lending socket.
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
#include "rpc/wire/lending.h"

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
  // How it is lent.
  v1::LendMemory Describe(uint64_t id, uint32_t rows,
                          std::vector<uint64_t> offsets) const {
    v1::LendMemory lend;
    lend.set_memory_id(id);
    lend.set_kind(v1::LendMemory::KIND_HOST);
    lend.set_bytes(bytes_);
    lend.set_mapped_bytes(bytes_);
    lend.set_rows(rows);
    lend.mutable_field_offsets()->Add(offsets.begin(), offsets.end());
    return lend;
  }

 private:
  const size_t bytes_;
  Fd fd_;
  char* base_ = nullptr;
};

class LendingClient {
 public:
  explicit LendingClient(const std::string& address) {
    auto socket = rpc::ConnectLending(address, Soon());
    EXPECT_TRUE(socket.ok()) << socket.status();
    if (socket.ok()) socket_ = *std::move(socket);
  }

  absl::Status Hello(const std::string& secret, uint32_t version = 1) {
    v1::LendRequest request;
    request.mutable_hello()->set_version(version);
    request.mutable_hello()->set_secret(secret);
    return Call(request);
  }
  absl::Status Lend(const v1::LendMemory& lend, int fd) {
    v1::LendRequest request;
    *request.mutable_lend() = lend;
    return Call(request, fd);
  }
  absl::Status Return(uint64_t memory_id) {
    v1::LendRequest request;
    request.mutable_give_back()->set_memory_id(memory_id);
    return Call(request);
  }
  absl::Status Call(const v1::LendRequest& request, int fd = -1) {
    RETURN_IF_ERROR(rpc::SendPacket(socket_.get(), request, fd, Soon()));
    return Reply();
  }
  absl::Status Reply() {
    v1::LendReply reply;
    Fd none;
    RETURN_IF_ERROR(rpc::ReceivePacket(socket_.get(), &reply, &none, Soon()));
    return {static_cast<absl::StatusCode>(reply.code()), reply.message()};
  }
  // Whether the worker has closed its end, or does soon.
  bool WaitClosed() { return absl::IsUnavailable(Reply()); }
  bool ClosedNow() {
    v1::LendReply reply;
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
