// SPDX-License-Identifier: Apache-2.0
//
// Each test confines a child process of its own, since confinement cannot be
// undone.
#include "rpc/process/confinement.h"

#include <dlfcn.h>
#include <linux/bpf.h>
#include <netdb.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <functional>
#include <thread>

#include "core/status.h"
#include "gtest/gtest.h"
#include "tests/support/sanitized.h"

namespace leat::rpc {
namespace {

// Runs `what` in a child, and returns the number of the line that failed; 0:
// none did.
int InChild(const std::function<int()>& what) {
  const pid_t child = fork();
  if (child == 0) _exit(what());
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

// In a child: exits with the line number unless `condition` holds.
#define WANT(condition)                \
  do {                                 \
    if (!(condition)) return __LINE__; \
  } while (false)

bool Fails(int64_t result, int error = EPERM) {
  return result == -1 && errno == error;
}

bool StartsAProgram() {
  char program[] = "/bin/true";
  char* const argv[] = {program, nullptr};
  char* const none[] = {nullptr};
  execve(program, argv, none);
  return errno != EPERM;
}

class Confinement : public ::testing::Test {
 protected:
  void SetUp() override {
    if (testing::kSanitized) GTEST_SKIP() << "sanitizers need ptrace";
  }
};

TEST_F(Confinement, ForbidsWhatADaemonNeverNeeds) {
  EXPECT_EQ(InChild([] {
              WANT(Confine(false).ok());
              WANT(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1);
              WANT(!StartsAProgram());
              WANT(Fails(ptrace(PTRACE_TRACEME, 0, nullptr, nullptr)));
              WANT(Fails(mount("none", "/", "tmpfs", 0, nullptr)));
              WANT(Fails(chroot("/")));
              WANT(Fails(unshare(0)));
              WANT(Fails(syscall(SYS_setns, -1, 0)));
              WANT(Fails(syscall(SYS_bpf, BPF_MAP_CREATE, nullptr, 0)));
              WANT(Fails(syscall(SYS_perf_event_open, nullptr, 0, 0, 0, 0)));
              WANT(Fails(syscall(SYS_userfaultfd, 0)));
              WANT(Fails(syscall(SYS_io_uring_setup, 1, nullptr)));
              WANT(Fails(syscall(SYS_keyctl, 0, 0, 0, 0, 0)));
              WANT(Fails(syscall(SYS_init_module, nullptr, 0, "")));
              WANT(Fails(syscall(SYS_kexec_load, 0, 0, nullptr, 0)));
              WANT(Fails(syscall(SYS_reboot, 0, 0, 0, nullptr)));
              WANT(Fails(syscall(SYS_setuid, getuid())));
              WANT(Fails(syscall(SYS_process_vm_readv, getppid(), nullptr, 0,
                                 nullptr, 0, 0)));
              WANT(Fails(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, nullptr,
                                 nullptr, nullptr, 0)));
              char key = '\n';
              WANT(Fails(ioctl(0, TIOCSTI, &key)));
              return 0;
            }),
            0);
}

TEST_F(Confinement, HoldsInThreadsThatRanBeforeAndInChildren) {
  EXPECT_EQ(InChild([] {
              std::atomic<int> step = 0;
              std::atomic<bool> started = true;
              std::thread early([&] {
                step = 1;
                step.notify_all();
                step.wait(1);
                started = StartsAProgram();
              });
              step.wait(0);
              WANT(Confine(false).ok());
              step = 2;
              step.notify_all();
              early.join();
              WANT(!started);
              const pid_t child = fork();
              if (child == 0) _exit(StartsAProgram() ? 1 : 0);
              int status = -1;
              WANT(waitpid(child, &status, 0) == child && status == 0);
              return 0;
            }),
            0);
}

TEST_F(Confinement, LeavesWhatDaemonsDo) {
  EXPECT_EQ(InChild([] {
              WANT(Confine(false).ok());
              WANT(Fails(syscall(SYS_clone3, nullptr, 0), ENOSYS));
              bool ran = false;
              std::thread([&] { ran = true; }).join();
              WANT(ran);
              void* const code = mmap(nullptr, 4096, PROT_READ | PROT_EXEC,
                                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
              WANT(code != MAP_FAILED);
              WANT(dlopen("libm.so.6", RTLD_NOW) != nullptr);
              int pair[2];
              WANT(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0);
              WANT(syscall(SYS_memfd_create, "x", MFD_ALLOW_SEALING) >= 0);
              addrinfo* found = nullptr;
              WANT(getaddrinfo("localhost", "80", nullptr, &found) == 0);
              freeaddrinfo(found);
              return 0;
            }),
            0);
}

TEST_F(Confinement, DriversMayShareMemory) {
  EXPECT_EQ(InChild([] {
              WANT(Confine(true).ok());
              WANT(syscall(SYS_process_vm_readv, getpid(), nullptr, 0, nullptr,
                           0, 0) == 0);
              WANT(!StartsAProgram());
              return 0;
            }),
            0);
}

TEST_F(Confinement, OfADaemonIsLeftOutWhereItIsNotWanted) {
  EXPECT_EQ(InChild([] {
              ConfineDaemon(false, false);
              WANT(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0);
              ConfineDaemon(true, false);
              WANT(!StartsAProgram());
              return 0;
            }),
            0);
}

}  // namespace
}  // namespace leat::rpc
