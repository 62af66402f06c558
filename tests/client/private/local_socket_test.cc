// SPDX-License-Identifier: Apache-2.0
#include "client/private/local_socket.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "absl/time/clock.h"
#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat::client {
namespace {

std::string Name(const char* what) {
  return fmt::format("leat-test-{}-{}", getpid(), what);
}

absl::Time Soon() { return absl::Now() + absl::Seconds(20); }

TEST(LocalSocket, NameIsOfOneUntilItCloses) {
  const std::string name = Name("one");
  EXPECT_TRUE(absl::IsNotFound(ConnectLocal(name, Soon()).status()));
  auto first = ListenLocal(name);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_TRUE(absl::IsAlreadyExists(ListenLocal(name).status()));
  EXPECT_THAT(ListeningNames(Name(""), 10), ::testing::ElementsAre(name));
  first->Close();
  EXPECT_THAT(ListeningNames(Name(""), 10), ::testing::IsEmpty());
  EXPECT_TRUE(ListenLocal(name).ok());
}

TEST(LocalSocket, MessagesArriveWhole) {
  auto listener = ListenLocal(Name("whole"));
  ASSERT_TRUE(listener.ok()) << listener.status();
  auto ours = ConnectLocal(Name("whole"), Soon());
  ASSERT_TRUE(ours.ok()) << ours.status();
  auto theirs = AcceptLocal(listener->get());
  ASSERT_TRUE(theirs.ok() && theirs->open()) << theirs.status();
  const std::string large(kMaxLocalMessage, 'x');
  ASSERT_TRUE(SendLocal(theirs->get(), "one\ntwo"));
  ASSERT_TRUE(SendLocal(theirs->get(), large));
  EXPECT_EQ(*ReceiveLocal(ours->get(), Soon()), "one\ntwo");
  EXPECT_EQ(*ReceiveLocal(ours->get(), Soon()), large);
  EXPECT_TRUE(absl::IsDeadlineExceeded(
      ReceiveLocal(ours->get(), absl::InfinitePast()).status()));
  theirs->Close();
  EXPECT_TRUE(absl::IsUnavailable(ReceiveLocal(ours->get(), Soon()).status()));
  EXPECT_FALSE(SendLocal(ours->get(), "anybody?"));
}

TEST(LocalSocket, SenderDoesNotWaitForOneThatDoesNotRead) {
  auto listener = ListenLocal(Name("slow"));
  ASSERT_TRUE(listener.ok()) << listener.status();
  const auto ours = ConnectLocal(Name("slow"), Soon());
  const auto theirs = AcceptLocal(listener->get());
  ASSERT_TRUE(ours.ok() && theirs.ok());
  const std::string large(kMaxLocalMessage, 'x');
  int sent = 0;
  while (SendLocal(theirs->get(), large) && sent < 1000) ++sent;
  EXPECT_GT(sent, 0);
  EXPECT_LT(sent, 1000);
}

TEST(LocalSocket, WhoWaitsIsClosedWithTheListener) {
  auto listener = ListenLocal(Name("queue"));
  ASSERT_TRUE(listener.ok()) << listener.status();
  const auto waiting = ConnectLocal(Name("queue"), Soon());
  ASSERT_TRUE(waiting.ok()) << waiting.status();
  listener->Close();
  EXPECT_TRUE(
      absl::IsUnavailable(ReceiveLocal(waiting->get(), Soon()).status()));
}

TEST(LocalSocket, ForkedChildClosesWhatIsGuardedAndNothingElse) {
  auto guarded = Pipe::Create();
  auto kept = Pipe::Create();
  ASSERT_TRUE(guarded.ok() && kept.ok());
  ClosedInForkedChildren guard(guarded->write.get());
  ClosedInForkedChildren reset(kept->write.get());
  reset.Reset();
  const pid_t child = fork();
  if (child == 0)
    _exit((fcntl(guarded->write.get(), F_GETFD) < 0 ? 1 : 0) +
          (fcntl(kept->write.get(), F_GETFD) >= 0 ? 2 : 0));
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 3);
  EXPECT_GE(fcntl(guarded->write.get(), F_GETFD), 0);
}

}  // namespace
}  // namespace leat::client
