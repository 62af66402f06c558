// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <poll.h>
#include <sys/auxv.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <utility>
#include <vector>

#include "client/cli/base/environment.h"
#include "client/cli/run.h"

namespace {

std::optional<std::string> Variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  return value;
}

// The program's own folder comes first. The other one differs if a link was
// called, as build/dev/native/leat is.
std::vector<std::string> ProgramDirs() {
  std::vector<std::string> folders;
  const auto add = [&folders](const std::filesystem::path& program,
                              const std::error_code& error) {
    std::string folder = program.lexically_normal().parent_path().string();
    if (!error && !folder.empty() &&
        std::find(folders.begin(), folders.end(), folder) == folders.end())
      folders.push_back(std::move(folder));
  };
  std::error_code error;
  add(std::filesystem::read_symlink("/proc/self/exe", error), error);
  const unsigned long called = getauxval(AT_EXECFN);
  if (called == 0) return folders;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the kernel hands it over so.
  const char* const name = reinterpret_cast<const char*>(called);
  const std::filesystem::path path = std::filesystem::absolute(name, error);
  add(path, error);
  return folders;
}

// Without a terminal there is no width, so that nothing is cut for a program
// that reads the output.
winsize Terminal() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return {};
  return size;
}

// Returns COLUMNS if set; otherwise the terminal's width.
size_t Width() {
  if (isatty(STDOUT_FILENO) == 0) return 0;
  const std::string columns = Variable("COLUMNS").value_or("");
  const long asked = std::strtol(columns.c_str(), nullptr, 10);
  if (asked > 0 && asked < 100'000) return static_cast<size_t>(asked);
  return Terminal().ws_col;
}

// An eventfd that signals that the terminal's size has changed; -1: there is
// none.
int resized = -1;

void NoteSizes() {
  resized = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  std::signal(SIGWINCH, [](int) {
    const int before = errno;
    eventfd_write(resized, 1);
    errno = before;
  });
}

// Returns early if the terminal's size changes, or has just changed.
void Pause(absl::Duration duration) {
  pollfd events = {resized, POLLIN, 0};
  const int64_t ms =
      absl::ToInt64Milliseconds(absl::Ceil(duration, absl::Milliseconds(1)));
  poll(&events, resized < 0 ? 0 : 1,
       static_cast<int>(std::clamp<int64_t>(ms, 0, INT_MAX)));
  eventfd_t count;
  eventfd_read(resized, &count);
}

// Keeps files and connections from getting the number of a closed standard
// stream: output would go into them. Reading and writing these streams fail as
// before.
void KeepStandardStreams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
      (void)open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

// A signal that is not handled does not end process 1 of a container.
void EndBySignals() {
  if (getpid() != 1) return;
  for (const int signal : {SIGINT, SIGTERM})
    std::signal(signal, [](int number) { _exit(128 + number); });
}

}  // namespace

int main(int argc, char** argv) {
  KeepStandardStreams();
  EndBySignals();
  // "leat events | head" ends quietly, even if the parent ignores SIGPIPE.
  std::signal(SIGPIPE, SIG_DFL);
  // A file at its size limit (ulimit -f) is an error, like a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  NoteSizes();
  // Commands report what gRPC would say of a failing connection, with a remedy.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  leat::cli::Environment environment;
  environment.version = leat::Version();
  environment.in = &std::cin;
  environment.out = &std::cout;
  environment.err = &std::cerr;
  environment.in_is_terminal = isatty(STDIN_FILENO) != 0;
  environment.out_is_terminal = isatty(STDOUT_FILENO) != 0;
  environment.err_is_terminal = isatty(STDERR_FILENO) != 0;
  environment.program_dirs = ProgramDirs();
  environment.width = Width;
  environment.height = [] { return size_t{Terminal().ws_row}; };
  environment.variable = Variable;
  environment.connect = leat::cli::ConnectService;
  environment.probe_tls = leat::ProbeTls;
  environment.now = absl::Now;
  environment.pause = Pause;
  environment.spawn = leat::cli::Spawn;
  environment.http = leat::cli::CallHttp;
  return leat::cli::RunCli(std::vector<std::string>(argv + 1, argv + argc),
                           environment);
}
