// SPDX-License-Identifier: Apache-2.0
//
// leat-private: the process that keeps a private service for the processes that
// share it. The client library starts it; it is of no use when started by hand.
// Exit codes: 0 the service has ended, 1 it did not start, 2 wrong flags.
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "client/private/supervisor.h"
#include "core/log.h"
#include "core/status.h"

namespace leat::client {
namespace {

struct Flags {
  int listen_fd = -1;
  int64_t timeout_ms = 10'000;
  SupervisorOptions options;
};

void AddFlags(CLI::App* app, Flags* flags) {
  Embedded::Options& daemons = flags->options.daemons;
  app->add_option("--listen-fd", flags->listen_fd,
                  "inherited socket at which lessees connect")
      ->required();
  app->add_option("--description", flags->options.description,
                  "text about the service for lessees and leat status");
  app->add_option("--timeout-ms", flags->timeout_ms,
                  "how long the daemons may take to start")
      ->check(CLI::Range(1, 3'600'000));
  app->add_option("--daemon-dir", daemons.daemon_dir,
                  "folder of leat-coordinator and leat-worker");
  app->add_option("--workers", daemons.workers, "number of workers")
      ->check(CLI::Range(1, 64));
  app->add_option("--threads", daemons.threads,
                  "decode threads of each worker; 0: cores / workers");
  app->add_option("--cache", daemons.cache_bytes,
                  "memory for stored samples, of all workers together");
  app->add_option("--disk-cache", daemons.disk_cache,
                  "folder for the disk cache of all workers");
  app->add_option("--disk-cache-bytes", daemons.disk_cache_bytes,
                  "bound of --disk-cache, for all workers together");
  app->add_option("--devices", daemons.devices, "all, none, or 0,1,...");
}

// Runs in a new session, so that neither the terminal nor the end of the
// process that started it ends this one; and closes inherited descriptors, so
// that a reader waiting for the end of an output does not wait for this
// process.
absl::Status Detach() {
  const pid_t child = fork();
  if (child < 0) return ResourceExhausted("fork: {}", strerror(errno));
  if (child > 0) _exit(0);
  setsid();
  signal(SIGHUP, SIG_IGN);
  signal(SIGPIPE, SIG_IGN);
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0) return Internal("/dev/null: {}", strerror(errno));
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) dup2(null, fd);
  close(null);
  return absl::OkStatus();
}

int Fail(const absl::Status& status, int code) {
  fmt::print(stderr, "leat-private: {}\n", Message(status));
  return code;
}

int Run(int argc, char** argv) {
  Flags flags;
  CLI::App app("Keeps a private service; leat.connect() starts it.",
               "leat-private");
  AddFlags(&app, &flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  int listens = 0;
  socklen_t size = sizeof listens;
  if (getsockopt(flags.listen_fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) !=
          0 ||
      listens == 0)
    return Fail(InvalidArgument("--listen-fd {}: want a socket that listens, "
                                "as leat.connect() passes it",
                                flags.listen_fd),
                2);
  // The daemons inherit low numbers, and not this one.
  Fd listener(
      fcntl(flags.listen_fd, F_DUPFD_CLOEXEC, kFirstInherited + kMaxInherited));
  close(flags.listen_fd);
  if (!listener.open())
    return Fail(ResourceExhausted("socket: {}", strerror(errno)), 1);
  if (const absl::Status status = Detach(); !status.ok())
    return Fail(status, 1);
  InitLog("leat-private", LogFormat::kText, spdlog::level::warn);
  flags.options.daemons.timeout = absl::Milliseconds(flags.timeout_ms);
  return Supervise(std::move(listener), std::move(flags.options));
}

}  // namespace
}  // namespace leat::client

int main(int argc, char** argv) { return leat::client::Run(argc, argv); }
