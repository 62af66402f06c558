// SPDX-License-Identifier: Apache-2.0
//
// The private service: starting, stopping, dying with its process. Fake daemons
// are shell scripts; the real ones are used if they are built.
#include "client/private/embedded.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "client/leat/admin.h"
#include "client/leat/client.h"
#include "client/private/machine.h"
#include "core/clock.h"
#include "core/mutex.h"
#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat::client {
namespace {

using ::testing::HasSubstr;

// A folder of daemons that are scripts.
class EmbeddedTest : public ::testing::Test {
 protected:
  EmbeddedTest() {
    char path[] = "/tmp/leat-embedded-XXXXXX";
    folder_ = mkdtemp(path);
  }
  ~EmbeddedTest() override { std::filesystem::remove_all(folder_); }
  void Write(const std::string& name, const std::string& script) {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path) << "#!/bin/bash\n" << script << "\n";
    chmod(path.c_str(), 0755);
  }
  // Writes a daemon that says ready, then lives as long as its lifeline.
  void WriteGood(const std::string& name) {
    Write(name, "echo up >&3; exec 3>&-; read -u 4; exit 0");
  }
  absl::StatusOr<std::unique_ptr<Embedded>> Start(
      absl::Duration timeout = absl::Seconds(10)) {
    return Embedded::Start({.daemon_dir = folder_,
                            .timeout = timeout,
                            .stop_timeout = absl::Milliseconds(500)});
  }
  std::string folder_;
};

bool Alive(pid_t pid) { return kill(pid, 0) == 0; }

TEST_F(EmbeddedTest, StartsAndStopsBoth) {
  WriteGood("leat-coordinator");
  WriteGood("leat-worker");
  auto embedded = Start();
  ASSERT_TRUE(embedded.ok()) << embedded.status();
  EXPECT_THAT((*embedded)->address(), HasSubstr("unix-abstract:leat-"));
  EXPECT_EQ((*embedded)->token().size(), 64u);
  const auto pids = (*embedded)->pids();
  ASSERT_EQ(pids.size(), 2u);
  for (const pid_t pid : pids) EXPECT_TRUE(Alive(pid));
  embedded->reset();
  for (const pid_t pid : pids) EXPECT_FALSE(Alive(pid));
}

TEST_F(EmbeddedTest, DaemonThatIsStubbornIsKilled) {
  WriteGood("leat-coordinator");
  Write("leat-worker", "echo up >&3; exec 3>&-; trap '' TERM; sleep 1000");
  auto embedded = Start();
  ASSERT_TRUE(embedded.ok()) << embedded.status();
  const auto pids = (*embedded)->pids();
  embedded->reset();
  for (const pid_t pid : pids) EXPECT_FALSE(Alive(pid));
}

TEST_F(EmbeddedTest, DaemonThatDiesAtStartIsQuoted) {
  WriteGood("leat-coordinator");
  Write("leat-worker", "echo 'no such flag: --frob' >&2; exit 2");
  const auto embedded = Start();
  EXPECT_TRUE(absl::IsUnavailable(embedded.status()));
  const std::string text(Message(embedded.status()));
  EXPECT_THAT(text, HasSubstr("leat-worker ended at start with exit code 2: "
                              "no such flag: --frob"));
}

TEST_F(EmbeddedTest, DaemonThatIsNeverReadyIsGivenUp) {
  WriteGood("leat-coordinator");
  Write("leat-worker", "echo thinking >&2; read -u 4");
  const auto embedded = Start(absl::Milliseconds(300));
  EXPECT_TRUE(absl::IsUnavailable(embedded.status()));
  EXPECT_THAT(std::string(Message(embedded.status())),
              HasSubstr("leat-worker is not ready in time: thinking"));
}

TEST_F(EmbeddedTest, MissingDaemonsAreNamedWithThePlaces) {
  WriteGood("leat-coordinator");
  const auto embedded = Start();
  EXPECT_TRUE(absl::IsNotFound(embedded.status()));
  EXPECT_THAT(std::string(Message(embedded.status())),
              HasSubstr("leat-worker, which is not in " + folder_));
}

TEST_F(EmbeddedTest, ChildrenInheritNothingButTheirPipes) {
  // An open descriptor, a blocked and an ignored signal, as a host may have.
  const int open_fd = open("/etc/passwd", O_RDONLY);
  const int leaked = dup2(open_fd, 100);
  sigset_t blocked, old;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &blocked, &old);
  setenv("LEAT_COORDINATOR", "elsewhere:1", 1);
  WriteGood("leat-coordinator");
  Write("leat-worker", "ls /proc/$$/fd > " + folder_ +
                           "/fds; grep SigBlk /proc/self/status > " + folder_ +
                           "/signals; env > " + folder_ +
                           "/env; readlink "
                           "/proc/$$/fd/0 > " +
                           folder_ +
                           "/stdin; echo up >&3; exec 3>&-; read -u 4");
  const auto embedded = Start();
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  unsetenv("LEAT_COORDINATOR");
  close(open_fd);
  close(leaked);
  ASSERT_TRUE(embedded.ok()) << embedded.status();
  const auto read = [this](const std::string& name) {
    std::ifstream file(folder_ + "/" + name);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  EXPECT_THAT(read("fds"), ::testing::Not(HasSubstr("100\n")));
  EXPECT_THAT(read("signals"), HasSubstr("0000000000000000"));
  EXPECT_EQ(read("stdin"), "/dev/null\n");
  EXPECT_THAT(read("env"),
              HasSubstr("LEAT_ACCESS_TOKEN=" + (*embedded)->token()));
  EXPECT_THAT(read("env"), ::testing::Not(HasSubstr("LEAT_COORDINATOR")));
}

// Runs `host` in a process that is then killed with -9, and waits until its
// daemons are gone. They are not our children: the end of the pipe that only
// they inherit as standard error shows their end.
TEST_F(EmbeddedTest, DaemonsDieWithAKilledHost) {
  WriteGood("leat-coordinator");
  WriteGood("leat-worker");
  int alive[2], said[2];
  ASSERT_EQ(pipe(alive), 0);
  ASSERT_EQ(pipe2(said, O_CLOEXEC), 0);
  const pid_t host = fork();
  if (host == 0) {
    auto embedded = Start();
    pid_t pids[2] = {0, 0};
    if (embedded.ok()) {
      const auto started = (*embedded)->pids();
      std::copy(started.begin(), started.end(), pids);
    }
    (void)!write(said[1], pids, sizeof pids);
    pause();
    _exit(0);
  }
  close(alive[0]);
  close(alive[1]);
  close(said[1]);
  pid_t pids[2] = {0, 0};
  ASSERT_EQ(read(said[0], pids, sizeof pids),
            static_cast<ssize_t>(sizeof pids));
  close(said[0]);
  ASSERT_GT(pids[0], 0);
  EXPECT_TRUE(Alive(pids[0]));
  kill(host, SIGKILL);
  waitpid(host, nullptr, 0);
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::seconds(5);
  const auto running = [](pid_t pid) {
    std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
    std::string id, name, state;
    return (stat >> id >> name >> state) && state != "Z";
  };
  while ((running(pids[0]) || running(pids[1])) &&
         std::chrono::steady_clock::now() < deadline)
    std::this_thread::yield();
  EXPECT_FALSE(running(pids[0]));
  EXPECT_FALSE(running(pids[1]));
}

TEST_F(EmbeddedTest, ForkedChildKeepsNothingAlive) {
  WriteGood("leat-coordinator");
  WriteGood("leat-worker");
  auto embedded = Start();
  ASSERT_TRUE(embedded.ok()) << embedded.status();
  const auto pids = (*embedded)->pids();
  const pid_t forked = fork();
  if (forked == 0) {
    pause();
    _exit(0);
  }
  embedded->reset();
  for (const pid_t pid : pids) EXPECT_FALSE(Alive(pid));
  kill(forked, SIGKILL);
  waitpid(forked, nullptr, 0);
}

// Collects Embedded's events, from its thread.
class Events {
 public:
  std::function<void(bool, const std::string&)> Callback() {
    return [this](bool over, const std::string& line) {
      MutexLock lock(&mu_);
      lines_.push_back(line + (over ? " [over]" : ""));
      changed_.NotifyAll();
    };
  }
  // Returns the first `count`, or those of half a minute.
  std::vector<std::string> Await(size_t count) {
    MutexLock lock(&mu_);
    const MonotonicTime deadline =
        Clock::Real().Now() + std::chrono::seconds(30);
    while (lines_.size() < count && changed_.WaitUntil(&mu_, deadline)) {
    }
    return lines_;
  }

 private:
  Mutex mu_;
  CondVar changed_;
  std::vector<std::string> lines_ ABSL_GUARDED_BY(mu_);
};

// Returns the abstract name that a descriptor is bound to, or connected to.
sockaddr_un NameOf(int fd, socklen_t* size) {
  sockaddr_un name{};
  *size = sizeof name;
  EXPECT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&name), size), 0);
  return name;
}

TEST_F(EmbeddedTest, NobodyElseGetsTheNameOfADaemonThatHasDied) {
  WriteGood("leat-coordinator");
  WriteGood("leat-worker");
  Events events;
  auto embedded = Embedded::Start({.daemon_dir = folder_,
                                   .on_event = events.Callback(),
                                   .first_pause = absl::Seconds(60),
                                   .stop_timeout = absl::Milliseconds(500)});
  ASSERT_TRUE(embedded.ok()) << embedded.status();
  const std::vector<int> listeners = (*embedded)->listeners();
  ASSERT_EQ(listeners.size(), 2u);
  socklen_t size = 0;
  const sockaddr_un name = NameOf(listeners[1], &size);
  const auto* const at = reinterpret_cast<const sockaddr*>(&name);
  const auto takes = [&] {
    const Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    return bind(fd.get(), at, size) == 0;
  };
  kill((*embedded)->pids()[1], SIGKILL);
  ASSERT_EQ(events.Await(1).size(), 1u) << "it has ended";
  EXPECT_FALSE(takes());
  // A client that connects does not wait for the restart.
  Fd caller(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(connect(caller.get(), at, size), 0);
  char byte;
  EXPECT_EQ(recv(caller.get(), &byte, 1, 0), 0);
  // Copies of the sockets that a lessee of the service has.
  std::vector<Fd> held;
  for (const int fd : listeners) held.emplace_back(dup(fd));
  embedded->reset();
  EXPECT_FALSE(takes()) << "the lessee lives";
  held.clear();
  EXPECT_TRUE(takes());
}

TEST_F(EmbeddedTest, WorkerThatEndsIsStartedAgainUpToABound) {
  WriteGood("leat-coordinator");
  // Succeeds the first time, so that the service starts.
  Write("leat-worker", "echo up >&3; exec 3>&-; echo \"$@\" >> " + folder_ +
                           "/starts; echo 'out of luck' >&2; exit 7");
  Events events;
  auto embedded = Embedded::Start({.daemon_dir = folder_,
                                   .workers = 1,
                                   .threads = 3,
                                   .on_event = events.Callback(),
                                   .first_pause = absl::Milliseconds(1)});
  ASSERT_TRUE(embedded.ok()) << embedded.status();
  const auto lines = events.Await(6);
  ASSERT_EQ(lines.size(), 6u);
  EXPECT_THAT(lines[0], HasSubstr("ended with exit code 7: out of luck; it is "
                                  "started again in 1ms"));
  EXPECT_THAT(lines[4], HasSubstr("started again in 16ms"));
  EXPECT_THAT(lines[5], HasSubstr("ended 6 times in a row and stays ended "
                                  "[over]"));
  std::ifstream starts(folder_ + "/starts");
  std::string line, first;
  int count = 0;
  while (std::getline(starts, line)) {
    if (count++ == 0) first = line;
    EXPECT_EQ(line, first);
  }
  EXPECT_EQ(count, 6);
  EXPECT_THAT(first, HasSubstr("--devices none --threads 3"));
}

TEST_F(EmbeddedTest, CoordinatorThatEndsIsTheEnd) {
  Write("leat-coordinator", "echo up >&3; exec 3>&-; while [ ! -e " + folder_ +
                                "/end ]; do read -t 0.01 -u 4; done; exit 3");
  WriteGood("leat-worker");
  Events events;
  auto embedded =
      Embedded::Start({.daemon_dir = folder_, .on_event = events.Callback()});
  ASSERT_TRUE(embedded.ok()) << embedded.status();
  std::ofstream(folder_ + "/end") << "now";
  const auto lines = events.Await(1);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], HasSubstr("leat-coordinator (process "));
  EXPECT_THAT(lines[0], HasSubstr("exit code 3"));
  EXPECT_THAT(lines[0], HasSubstr("[over]"));
}

TEST(Embedded, RealDaemonsServeWithinASecond) {
  const char* folder = std::getenv("LEAT_TEST_DAEMONS");
  if (folder == nullptr ||
      access((std::string(folder) + "/leat-worker").c_str(), X_OK) != 0)
    GTEST_SKIP() << "LEAT_TEST_DAEMONS names no folder with the daemons";
  const auto begin = std::chrono::steady_clock::now();
  auto service = Service::Connect({.daemon_dir = folder});
  ASSERT_TRUE(service.ok()) << service.status();
  RecordProperty("start_ms",
                 static_cast<int>((std::chrono::steady_clock::now() - begin) /
                                  std::chrono::milliseconds(1)));
  const auto workers = (*service)->admin().Get("workers");
  ASSERT_TRUE(workers.ok()) << workers.status();
  EXPECT_THAT(*workers, HasSubstr("embedded-0"));
}

TEST(Machine, HasACoreAndAName) { EXPECT_FALSE(LibraryFolder().empty()); }

}  // namespace
}  // namespace leat::client
