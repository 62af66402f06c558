// SPDX-License-Identifier: Apache-2.0
#include "rpc/process/process.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <future>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include "core/log.h"
#include "core/status.h"
#include "core/thread.h"

namespace leat::rpc {
namespace {

// Minimum number of gRPC's threads: pollers, timers, resolver and callbacks.
constexpr int kGrpcThreads = 16;

// Signal handlers, which call only async-signal-safe functions.
void Say(std::string_view line) {
  [[maybe_unused]] const ssize_t n =
      write(STDERR_FILENO, line.data(), line.size());
}

[[noreturn]] void EndAtOnce(int signal) {
  Say("a second stop signal: the process ends at once\n");
  _exit(128 + signal);
}

// A certificate and its key are replaced one after another.
constexpr auto kSettleTime = std::chrono::milliseconds(500);

int MillisecondsTo(MonotonicTime when) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(when - Clock::Real().Now());
  return static_cast<int>(std::max<int64_t>(left.count(), 0));
}

volatile sig_atomic_t late_exit_code = 1;

[[noreturn]] void EndLate(int) {
  Say("the process does not end in time by itself: it is ended\n");
  _exit(late_exit_code);
}

sigset_t Set(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) sigaddset(&set, signal);
  return set;
}

void Handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigaction(signal, &action, nullptr);
}

}  // namespace

void RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    LOG_WARN("process.descriptors error=\"{}\"", strerror(errno));
    return;
  }
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  if (before != limit.rlim_max && setrlimit(RLIMIT_NOFILE, &limit) != 0) {
    LOG_WARN("process.descriptors limit={} hard_limit={} error=\"{}\"", before,
             limit.rlim_max, strerror(errno));
    return;
  }
  LOG_INFO("process.descriptors limit={} before={}", limit.rlim_max, before);
}

absl::Status CheckThreads(int own) {
  const int wanted =
      own + kGrpcThreads +
      std::clamp(2 * static_cast<int>(std::thread::hardware_concurrency()), 2,
                 32);
  std::promise<void> end;
  const std::shared_future<void> ended = end.get_future().share();
  std::vector<std::thread> threads(static_cast<size_t>(wanted));
  absl::Status status;
  int started = 0;
  while (started < wanted && status.ok()) {
    status = StartThread(
        "leat-check", [ended] { ended.wait(); },
        &threads[static_cast<size_t>(started)]);
    if (status.ok()) ++started;
  }
  end.set_value();
  for (int i = 0; i < started; ++i) threads[static_cast<size_t>(i)].join();
  if (status.ok()) return status;
  return Annotate(
      status, fmt::format("this process may have {} more threads, and wants "
                          "at least {}",
                          started, wanted));
}

void EndAfter(Duration after, int exit_code) {
  late_exit_code = exit_code;
  Handle(SIGALRM, EndLate);
  // A timer of 0 would never expire.
  const auto us =
      std::chrono::ceil<std::chrono::microseconds>(after).count() + 1;
  const itimerval timer = {
      .it_interval = {},
      .it_value = {.tv_sec = us / 1'000'000, .tv_usec = us % 1'000'000}};
  if (setitimer(ITIMER_REAL, &timer, nullptr) != 0)
    LOG_WARN("process.end_after us={} error=\"{}\"", us, strerror(errno));
}

StopSignals::StopSignals() {
  const sigset_t set = Set({SIGTERM, SIGINT, SIGHUP});
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);  // a write then fails if the file may not grow
  signals_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  asked_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

StopSignals::~StopSignals() {
  if (signals_ >= 0) close(signals_);
  if (asked_ >= 0) close(asked_);
}

void StopSignals::Ask() {
  const uint64_t one = 1;
  while (write(asked_, &one, sizeof one) < 0 && errno == EINTR) {
  }
}

int StopSignals::Wait(int lifeline_fd, FileWatch* files,
                      const std::function<void(bool asked)>& on_reload) {
  // poll ignores a negative descriptor.
  pollfd waits[4] = {{signals_, POLLIN, 0},
                     {asked_, POLLIN, 0},
                     {lifeline_fd, POLLIN, 0},
                     {files == nullptr ? -1 : files->fd(), POLLIN, 0}};
  int result = 0;
  std::optional<MonotonicTime> reload_at;  // set if files have changed
  while (true) {
    if (poll(waits, 4, reload_at ? MillisecondsTo(*reload_at) : -1) < 0)
      continue;
    if (reload_at && Clock::Real().Now() >= *reload_at) {
      reload_at.reset();
      on_reload(false);
    }
    if (waits[3].revents != 0 && files->Changed() && !reload_at)
      reload_at = Clock::Real().Now() + kSettleTime;
    if (signalfd_siginfo info;
        (waits[0].revents & POLLIN) && read(signals_, &info, sizeof info) ==
                                           static_cast<ssize_t>(sizeof info)) {
      result = static_cast<int>(info.ssi_signo);
      if (result != SIGHUP) break;
      LOG_INFO("process.hangup note=\"SIGHUP reloads, and ends nothing\"");
      on_reload(true);
    } else if (waits[1].revents != 0) {
      result = kAsked;
      break;
      // No byte is ever written to the lifeline: readable means that its other
      // end is closed.
    } else if (waits[2].revents != 0) {
      result = kLifeline;
      break;
    }
  }
  Handle(SIGTERM, EndAtOnce);
  Handle(SIGINT, EndAtOnce);
  const sigset_t set = Set({SIGTERM, SIGINT});
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  return result;
}

}  // namespace leat::rpc
