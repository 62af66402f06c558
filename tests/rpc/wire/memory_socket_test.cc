// SPDX-License-Identifier: Apache-2.0
#include "rpc/wire/memory_socket.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "leat/v1/shared_memory.pb.h"
#include "tests/support/open_files.h"

namespace leat::rpc {
namespace {

using testing::HasSubstr;

MonotonicTime Soon() { return Clock::Real().Now() + std::chrono::seconds(10); }
MonotonicTime Now() { return Clock::Real().Now(); }

std::string NewName() { return "leat-test-" + Hex(RandomBytes(8)); }

class MemorySocketTest : public testing::Test {
 protected:
  MemorySocketTest() {
    const std::string name = NewName();
    auto listener = ListenMemorySocket(name, 4);
    EXPECT_TRUE(listener.ok()) << listener.status();
    EXPECT_TRUE(absl::IsNotFound(AcceptMemorySocket(listener->get()).status()));
    auto ours = ConnectMemorySocket(name, Soon());
    EXPECT_TRUE(ours.ok()) << ours.status();
    auto theirs = AcceptMemorySocket(listener->get());
    EXPECT_TRUE(theirs.ok()) << theirs.status();
    ours_ = *std::move(ours);
    theirs_ = *std::move(theirs);
  }
  absl::Status Receive(v1::ShareRequest* request, Fd* fd) {
    return ReceivePacket(theirs_.get(), request, fd, Now());
  }
  // Sends raw bytes, with descriptors.
  void SendRaw(std::string bytes, const std::vector<int>& fds) {
    iovec data{.iov_base = bytes.data(), .iov_len = bytes.size()};
    std::vector<char> control(CMSG_SPACE(sizeof(int) * fds.size()));
    msghdr header{};
    header.msg_iov = &data;
    header.msg_iovlen = 1;
    if (!fds.empty()) {
      header.msg_control = control.data();
      header.msg_controllen = control.size();
      cmsghdr* const rights = CMSG_FIRSTHDR(&header);
      rights->cmsg_level = SOL_SOCKET;
      rights->cmsg_type = SCM_RIGHTS;
      rights->cmsg_len = CMSG_LEN(sizeof(int) * fds.size());
      std::memcpy(CMSG_DATA(rights), fds.data(), sizeof(int) * fds.size());
    }
    ASSERT_EQ(sendmsg(ours_.get(), &header, MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }

  const size_t files_ = CountOpenFiles();
  Fd ours_, theirs_;
};

TEST_F(MemorySocketTest, AMessageAndADescriptorArrive) {
  auto memory = CreateHostMemory("test", 8192);
  ASSERT_TRUE(memory.ok());
  v1::ShareRequest request;
  request.mutable_share()->set_memory_id(7);
  ASSERT_TRUE(SendPacket(ours_.get(), request, memory->get(), Soon()).ok());
  v1::ShareRequest got;
  Fd fd;
  ASSERT_TRUE(Receive(&got, &fd).ok());
  EXPECT_EQ(got.share().memory_id(), 7u);
  ASSERT_TRUE(fd.open());
  EXPECT_NE(fcntl(fd.get(), F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_TRUE(CheckHostMemory(fd.get(), 8192).ok());
}

TEST_F(MemorySocketTest, AnEmptyMessageIsNotTheEnd) {
  ASSERT_TRUE(SendPacket(theirs_.get(), v1::ShareReply(), -1, Soon()).ok());
  theirs_.Close();
  v1::ShareReply reply;
  Fd fd;
  EXPECT_TRUE(ReceivePacket(ours_.get(), &reply, &fd, Soon()).ok());
  EXPECT_TRUE(
      absl::IsUnavailable(ReceivePacket(ours_.get(), &reply, &fd, Soon())));
  EXPECT_TRUE(absl::IsUnavailable(
      SendPacket(ours_.get(), v1::ShareRequest(), -1, Soon())));
}

TEST_F(MemorySocketTest, WaitingEndsAtTheDeadline) {
  v1::ShareRequest request;
  Fd fd;
  EXPECT_TRUE(absl::IsDeadlineExceeded(Receive(&request, &fd)));
  EXPECT_TRUE(absl::IsDeadlineExceeded(ReceivePacket(
      theirs_.get(), &request, &fd, Now() + std::chrono::milliseconds(10))));
  request.mutable_hello()->set_secret(std::string(60'000, 'x'));
  absl::Status status;
  while (status.ok()) status = SendPacket(ours_.get(), request, -1, Now());
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
}

TEST_F(MemorySocketTest, ShuttingDownEndsItForBothSides) {
  const Fd copy(dup(ours_.get()));  // as a forked child would have
  ShutDown(ours_);
  ours_.Close();
  v1::ShareRequest request;
  Fd fd;
  EXPECT_TRUE(
      absl::IsUnavailable(ReceivePacket(theirs_.get(), &request, &fd, Soon())));
}

TEST_F(MemorySocketTest, PacketsAreBounded) {
  v1::ShareRequest request;
  request.mutable_hello()->set_secret(std::string(kMaxPacketBytes, 'x'));
  EXPECT_TRUE(
      absl::IsInvalidArgument(SendPacket(ours_.get(), request, -1, Soon())));
  SendRaw(std::string(kMaxPacketBytes + 1, kPacketTag), {});
  Fd fd;
  EXPECT_TRUE(absl::IsInvalidArgument(Receive(&request, &fd)));
}

TEST_F(MemorySocketTest, SurplusDescriptorsAreRefusedAndClosed) {
  const size_t before = CountOpenFiles();
  v1::ShareRequest request;
  Fd fd;
  SendRaw(std::string(1, kPacketTag), {0, 1});
  EXPECT_TRUE(absl::IsInvalidArgument(Receive(&request, &fd)));
  SendRaw(std::string(1, kPacketTag), std::vector<int>(253, 0));
  const absl::Status many = Receive(&request, &fd);
  EXPECT_TRUE(absl::IsInvalidArgument(many));
  EXPECT_THAT(Message(many), HasSubstr("253"));
  SendRaw("", {0});
  EXPECT_FALSE(Receive(&request, &fd).ok());
  EXPECT_FALSE(fd.open());
  EXPECT_EQ(CountOpenFiles(), before);
}

TEST_F(MemorySocketTest, GarbageIsRefused) {
  std::minstd_rand random(1);
  for (int i = 0; i < 1000; ++i) {
    std::string bytes(1 + random() % 300, '\0');
    for (char& c : bytes) c = static_cast<char>(random() >> 8);
    if (bytes[0] == kPacketTag) bytes[0] = 'x';
    SendRaw(bytes, {0});
    v1::ShareRequest request;
    Fd fd;
    EXPECT_TRUE(absl::IsInvalidArgument(Receive(&request, &fd)));
    EXPECT_FALSE(fd.open());
  }
  SendRaw(std::string(1, kPacketTag) + "\x0A\xFF\xFF", {});
  v1::ShareRequest request;
  Fd fd;
  EXPECT_TRUE(absl::IsInvalidArgument(Receive(&request, &fd)));
}

TEST_F(MemorySocketTest, NothingStaysOpen) {
  ours_.Close();
  theirs_.Close();
  EXPECT_EQ(CountOpenFiles(), files_);
}

TEST(MemorySocket, NamesAreTakenOnceAndNobodyListensAtOthers) {
  const std::string name = NewName();
  const auto first = ListenMemorySocket(name, 1);
  ASSERT_TRUE(first.ok());
  EXPECT_TRUE(absl::IsAlreadyExists(ListenMemorySocket(name, 1).status()));
  EXPECT_TRUE(
      absl::IsUnavailable(ConnectMemorySocket(NewName(), Soon()).status()));
  EXPECT_TRUE(
      absl::IsInvalidArgument(ConnectMemorySocket("", Soon()).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      ConnectMemorySocket(std::string(200, 'x'), Soon()).status()));
}

TEST(MemorySocket, AFullBacklogIsWaitedForUntilTheDeadline) {
  const std::string name = NewName();
  const auto listener = ListenMemorySocket(name, 0);
  ASSERT_TRUE(listener.ok());
  std::vector<Fd> sockets;
  absl::Status status;
  while (status.ok() && sockets.size() < 10) {
    auto socket =
        ConnectMemorySocket(name, Now() + std::chrono::milliseconds(10));
    status = socket.status();
    if (socket.ok()) sockets.push_back(*std::move(socket));
  }
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
}

// Returns the result of `child`, which runs as another user.
int RunAs(uid_t user, const std::function<int()>& child) {
  const pid_t pid = fork();
  if (pid == 0) _exit(setuid(user) == 0 ? child() : 99);
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 98;
}

TEST(MemorySocket, AnotherUserIsRefusedByBothSides) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be two users";
  constexpr uid_t kOne = 40'001, kOther = 40'002;
  const std::string name = NewName();
  int ready[2], done[2];
  ASSERT_EQ(pipe2(ready, O_CLOEXEC), 0);
  ASSERT_EQ(pipe2(done, O_CLOEXEC), 0);
  const pid_t server = fork();
  if (server == 0) {
    char byte = 0;
    if (setuid(kOne) != 0) _exit(99);
    auto listener = ListenMemorySocket(name, 4);
    if (!listener.ok() || write(ready[1], "x", 1) != 1) _exit(98);
    if (read(done[0], &byte, 1) != 1) _exit(97);
    _exit(absl::IsPermissionDenied(AcceptMemorySocket(listener->get()).status())
              ? 0
              : 1);
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  EXPECT_EQ(RunAs(kOther,
                  [&] {
                    return absl::IsPermissionDenied(
                               ConnectMemorySocket(name, Soon()).status())
                               ? 0
                               : 1;
                  }),
            0);
  ASSERT_EQ(write(done[1], "x", 1), 1);
  int status = -1;
  waitpid(server, &status, 0);
  EXPECT_EQ(status, 0);
  for (const int fd : {ready[0], ready[1], done[0], done[1]}) close(fd);
}

constexpr uint64_t kBytes = 8192;

TEST(HostMemory, OnlySealedMemfdsOfTheSizeAreTaken) {
  const auto refused = [](int fd, uint64_t bytes = kBytes) {
    const absl::Status status = CheckHostMemory(fd, bytes);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(Message(status));
  };
  auto good = CreateHostMemory("test", kBytes);
  ASSERT_TRUE(good.ok());
  EXPECT_TRUE(CheckHostMemory(good->get(), kBytes).ok());
  EXPECT_NE(ftruncate(good->get(), 0), 0);
  EXPECT_THAT(refused(good->get(), kBytes - 1), HasSubstr("8192"));
  refused(good->get(), kBytes + 1);
  refused(good->get(), ~uint64_t{0});

  const Fd unsealed(memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(unsealed.get(), kBytes), 0);
  EXPECT_THAT(refused(unsealed.get()), HasSubstr("not sealed"));
  fcntl(unsealed.get(), F_ADD_SEALS, F_SEAL_GROW);
  refused(unsealed.get());  // it can still shrink
  const Fd plain(memfd_create("x", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(plain.get(), kBytes), 0);
  refused(plain.get());

  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  refused(ends[0]);
  const Fd directory(open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  refused(directory.get());
  const Fd file(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  refused(file.get());
  const Fd shared(open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (shared.open()) refused(shared.get());
  refused(-1);
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace leat::rpc
