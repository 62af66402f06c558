// SPDX-License-Identifier: Apache-2.0
#include "rpc/process/confinement.h"

#include <sched.h>
#include <seccomp.h>
#include <string.h>
#include <sys/ioctl.h>

#include <cerrno>
#include <memory>

#include "core/freed.h"
#include "core/log.h"
#include "core/status.h"

namespace leat::rpc {
namespace {

#if defined(LEAT_SANITIZED)
constexpr bool kForSanitizers = true;
#else
constexpr bool kForSanitizers = false;
#endif

// A name that this libseccomp does not know is skipped.
constexpr const char* kForbidden[] = {
    // Starting programs, and inspecting other processes.
    "execve", "execveat", "ptrace", "process_madvise",
    // File systems and namespaces.
    "mount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree",
    "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr", "setns",
    "unshare", "open_by_handle_at", "quotactl", "quotactl_fd", "swapon",
    "swapoff", "acct",
    // Parts of the kernel that daemons do not use, and that have had
    // vulnerabilities.
    "bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter",
    "io_uring_register", "keyctl", "add_key", "request_key", "lookup_dcookie",
    "vhangup", "personality", "modify_ldt", "iopl", "ioperm",
    // The machine.
    "init_module", "finit_module", "delete_module", "kexec_load",
    "kexec_file_load", "reboot", "syslog", "sethostname", "setdomainname",
    "settimeofday", "clock_settime", "clock_adjtime", "adjtimex",
    // Another user's rights.
    "setuid", "setgid", "setreuid", "setregid", "setresuid", "setresgid",
    "setgroups", "setfsuid", "setfsgid", "capset"};

constexpr const char* kForDrivers[] = {"process_vm_readv", "process_vm_writev",
                                       "pidfd_getfd", "kcmp"};

constexpr uint64_t kNamespaces[] = {CLONE_NEWNS,    CLONE_NEWUTS, CLONE_NEWIPC,
                                    CLONE_NEWUSER,  CLONE_NEWPID, CLONE_NEWNET,
                                    CLONE_NEWCGROUP};

using Filter = std::unique_ptr<void, Freed<seccomp_release>>;

// Keeps the first error of a series of libseccomp calls, which return -errno.
class FirstError {
 public:
  void operator()(int result) {
    if (result < 0 && error_ == 0) error_ = -result;
  }
  int error() const { return error_; }

 private:
  int error_ = 0;
};

void Forbid(scmp_filter_ctx filter, const char* name, FirstError* first) {
  const int call = seccomp_syscall_resolve_name(name);
  if (call == __NR_SCMP_ERROR) return;
  (*first)(seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), call, 0));
}

void AddRules(scmp_filter_ctx filter, bool drivers, FirstError* first) {
  for (const char* name : kForbidden) Forbid(filter, name, first);
  if (!drivers)
    for (const char* name : kForDrivers) Forbid(filter, name, first);
  (*first)(seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS),
                            seccomp_syscall_resolve_name("clone3"), 0));
  for (const uint64_t flag : kNamespaces)
    (*first)(seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
                              SCMP_A0(SCMP_CMP_MASKED_EQ, flag, flag)));
  // Input injected into the terminal from which the process was started.
  (*first)(seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(ioctl), 1,
                            SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffff, TIOCSTI)));
}

}  // namespace

absl::Status Confine(bool drivers) {
  if (kForSanitizers)
    return Unimplemented("a build for sanitizers, which need ptrace");
  const Filter filter(seccomp_init(SCMP_ACT_ALLOW));
  FirstError first;
  if (filter == nullptr) {
    first(-ENOMEM);
  } else {
    first(seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_NNP, 1));
    first(seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_TSYNC, 1));
    // A tree instead of a list: every call passes the filter.
    first(seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2));
    first(seccomp_attr_set(filter.get(), SCMP_FLTATR_ACT_BADARCH,
                           SCMP_ACT_KILL_PROCESS));
    AddRules(filter.get(), drivers, &first);
    if (first.error() == 0) first(seccomp_load(filter.get()));
  }
  if (first.error() == 0) return absl::OkStatus();
  return Unavailable("the kernel takes no filter of system calls: {}",
                     strerror(first.error()));
}

std::string ConfineDaemon(bool wanted, bool drivers) {
  const absl::Status status =
      wanted ? Confine(drivers) : FailedPrecondition("--no-seccomp");
  if (status.ok()) {
    LOG_INFO("process.confined drivers={}", drivers);
    return "";
  }
  LOG_WARN("process.not_confined reason=\"{}\"", Message(status));
  return absl::IsUnimplemented(status) ? "" : std::string(Message(status));
}

}  // namespace leat::rpc
