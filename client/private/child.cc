// SPDX-License-Identifier: Apache-2.0
#include "client/private/child.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/status.h"

namespace leat::client {
namespace {

constexpr size_t kTailBytes = 4096;

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (const std::string& string : strings)
    pointers.push_back(const_cast<char*>(string.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// Duplicates to a descriptor above those with a meaning in the child.
Fd AboveInherited(int fd) {
  constexpr int kFirst = kFirstInherited + kMaxInherited;
  if (fd < 0 || fd >= kFirst) return Fd(fd);
  const Fd low(fd);
  return Fd(fcntl(fd, F_DUPFD_CLOEXEC, kFirst));
}

// The two structures of posix_spawn, freed together.
struct SpawnSetup {
  SpawnSetup() {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
  }
  ~SpawnSetup() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
};

}  // namespace

absl::StatusOr<Pipe> Pipe::Create() {
  int fds[2] = {-1, -1};
  if (pipe2(fds, O_CLOEXEC) != 0) return Internal("pipe: {}", strerror(errno));
  Pipe pipe{AboveInherited(fds[0]), AboveInherited(fds[1])};
  if (!pipe.read.open() || !pipe.write.open())
    return Internal("pipe: {}", strerror(errno));
  return pipe;
}

absl::StatusOr<Child> Child::Start(const ChildSpec& spec) {
  ASSIGN_OR_RETURN(Pipe output, Pipe::Create());
  SpawnSetup setup;
  posix_spawn_file_actions_addopen(&setup.actions, STDIN_FILENO, "/dev/null",
                                   O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&setup.actions, output.write.get(),
                                   STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&setup.actions, output.write.get(),
                                   STDERR_FILENO);
  int next = kFirstInherited;
  for (const int fd : spec.inherited)
    posix_spawn_file_actions_adddup2(&setup.actions, fd, next++);
  // Also closes descriptors that others in this process have left open on exec.
  posix_spawn_file_actions_addclosefrom_np(&setup.actions, next);

  // A process group other than the terminal's: Ctrl-C is for the script to
  // handle, and its end ends the daemons.
  posix_spawnattr_setflags(&setup.attributes, POSIX_SPAWN_SETSIGMASK |
                                                  POSIX_SPAWN_SETSIGDEF |
                                                  POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&setup.attributes, 0);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&setup.attributes, &none);
  posix_spawnattr_setsigdefault(&setup.attributes, &all);

  std::vector<std::string> args = spec.args;
  args.insert(args.begin(), spec.program);
  Child child;
  const int error = posix_spawn(
      &child.pid_, spec.program.c_str(), &setup.actions, &setup.attributes,
      Pointers(args).data(), Pointers(spec.environment).data());
  if (error != 0)
    return MakeStatus(error == ENOENT ? absl::StatusCode::kNotFound
                                      : absl::StatusCode::kInternal,
                      "start {}: {}", spec.program, strerror(error));
  child.stderr_ = std::move(output.read);
  fcntl(child.stderr_.get(), F_SETFL, O_NONBLOCK);
  return child;
}

void Child::ReadStderr() {
  char bytes[4096];
  while (stderr_.open()) {
    const ssize_t n = read(stderr_.get(), bytes, sizeof bytes);
    if (n > 0) {
      tail_.append(bytes, static_cast<size_t>(n));
      if (tail_.size() > 2 * kTailBytes)
        tail_.erase(0, tail_.size() - kTailBytes);
    } else if (n < 0 && errno == EINTR) {
      continue;
    } else if (n < 0 && errno == EAGAIN) {
      return;
    } else {
      stderr_.Close();
    }
  }
}

void Child::Signal(int signal) const {
  if (pid_ > 0) kill(pid_, signal);
}

std::string Child::Reap() {
  if (pid_ <= 0) return "not running";
  int status = 0;
  pid_t reaped = 0;
  do {
    reaped = waitpid(pid_, &status, 0);
  } while (reaped < 0 && errno == EINTR);
  pid_ = -1;
  if (reaped < 0) return "reaped by somebody else";
  if (WIFSIGNALED(status)) return fmt::format("signal {}", WTERMSIG(status));
  return fmt::format("exit code {}", WEXITSTATUS(status));
}

}  // namespace leat::client
