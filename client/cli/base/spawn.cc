// SPDX-License-Identifier: Apache-2.0
#include "client/cli/base/spawn.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "core/status.h"

extern char** environ;

namespace leat::cli {
namespace {

// Closes on destruction.
struct Pipe {
  int read_end = -1, write_end = -1;
  ~Pipe() {
    CloseWrite();
    if (read_end >= 0) close(read_end);
  }
  bool Open() {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) return false;
    read_end = ends[0];
    write_end = ends[1];
    return true;
  }
  void CloseWrite() {
    if (write_end >= 0) close(write_end);
    write_end = -1;
  }
};

// Reads both until their ends. Returns false if the time is over, or at too
// much output.
absl::Status Drain(Pipe* out, Pipe* err, absl::Time end,
                   const std::function<void(std::string_view)>& on_err,
                   Ended* into) {
  std::array<pollfd, 2> waits = {pollfd{out->read_end, POLLIN, 0},
                                 pollfd{err->read_end, POLLIN, 0}};
  const std::array<std::string*, 2> texts = {&into->out, &into->err};
  std::array<char, 65536> buffer{};
  while (waits[0].fd >= 0 || waits[1].fd >= 0) {
    const int64_t left = absl::ToInt64Milliseconds(end - absl::Now());
    if (left <= 0) return DeadlineExceeded("it took too long");
    const int ready = poll(waits.data(), waits.size(),
                           static_cast<int>(std::min<int64_t>(left, 60'000)));
    if (ready < 0 && errno != EINTR) return Internal("poll: {}", errno);
    for (size_t i = 0; ready > 0 && i < waits.size(); ++i) {
      if (waits[i].fd < 0 || waits[i].revents == 0) continue;
      const ssize_t got = read(waits[i].fd, buffer.data(), buffer.size());
      if (got <= 0) {
        waits[i].fd = -1;
        continue;
      }
      const std::string_view text(buffer.data(), static_cast<size_t>(got));
      texts[i]->append(text);
      if (i == 1 && on_err) on_err(text);
      if (texts[i]->size() > kMaxSpawnOutput)
        return ResourceExhausted("it printed more than {} bytes",
                                 kMaxSpawnOutput);
    }
  }
  return absl::OkStatus();
}

int Start(const std::vector<std::string>& argv, const Pipe& out,
          const Pipe& err, pid_t* pid) {
  std::vector<char*> words;
  for (const std::string& word : argv)
    words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY,
                                   0);
  posix_spawn_file_actions_adddup2(&files, out.write_end, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, err.write_end, STDERR_FILENO);
  const int failed =
      posix_spawnp(pid, words[0], &files, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  return failed;
}

}  // namespace

absl::StatusOr<Ended> Spawn(
    const std::vector<std::string>& argv, absl::Duration limit,
    const std::function<void(std::string_view)>& on_err) {
  Pipe out, err;
  if (!out.Open() || !err.Open())
    return ResourceExhausted("{}: no pipe: {}", argv[0], strerror(errno));
  pid_t pid = 0;
  if (const int failed = Start(argv, out, err, &pid); failed != 0) {
    if (failed == ENOENT)
      return NotFound("there is no program {} on the PATH", argv[0]);
    return ResourceExhausted("{} cannot be started: {}", argv[0],
                             strerror(failed));
  }
  out.CloseWrite();
  err.CloseWrite();
  Ended ended;
  const absl::Status drained =
      Drain(&out, &err, absl::Now() + limit, on_err, &ended);
  if (!drained.ok()) kill(pid, SIGKILL);
  int state = 0;
  while (waitpid(pid, &state, 0) < 0 && errno == EINTR) {
  }
  if (!drained.ok())
    return Annotate(drained, fmt::format("{} within {}", argv[0],
                                         absl::FormatDuration(limit)));
  ended.exit_code =
      WIFSIGNALED(state) ? 128 + WTERMSIG(state) : WEXITSTATUS(state);
  return ended;
}

}  // namespace leat::cli
