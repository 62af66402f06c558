// SPDX-License-Identifier: Apache-2.0
//
// leat-worker. Exit codes: 0 after a drain, 1 failed or a second signal while
// it drained, 2 wrong flags.
//
// A thread that hangs in the kernel (a file of a dead NFS server) cannot be
// ended by anything in the process, and any lock may wait for it. So the end
// has a timer whose signal ends the process, and a second signal does the same
// at once: both from a handler, which needs no thread and no lock.
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <variant>

#include "core/log.h"
#include "core/status.h"
#include "rpc/server.h"
#include "worker/config.h"
#include "worker/worker.h"

namespace {

// To take down what is left after the drain, or without one.
constexpr leat::Duration kTakeDown =
    leat::worker::Worker::kStopTime + std::chrono::seconds(1);

std::string FromEnvironment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Tells the one who started us, once.
void SayReady(int fd, const std::string& address) {
  if (fd < 0) return;
  const std::string line = address + "\n";
  if (write(fd, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    LOG_WARN("worker.ready_fd fd={} error=\"cannot be written\"", fd);
  close(fd);
}

void Say(std::string_view line) {
  // Nothing can be done where it is not written.
  if (write(STDERR_FILENO, line.data(), line.size()) < 0) return;
}

void OnSecondSignal(int) {
  Say("leat-worker: a second signal: ends without finishing its rows\n");
  _exit(1);
}

volatile sig_atomic_t code_when_over = 0;

void OnTimeOver(int) {
  Say("leat-worker: its threads do not end: ends without them\n");
  _exit(code_when_over);
}

// The process ends in this time from now on, whatever its threads do.
void BoundTheEnd(leat::Duration time, int code) {
  code_when_over = code;
  struct sigaction action = {};
  action.sa_handler = &OnTimeOver;
  sigaction(SIGALRM, &action, nullptr);
  const auto us =
      std::chrono::ceil<std::chrono::microseconds>(time).count() + 1;
  const itimerval timer = {
      .it_interval = {},
      .it_value = {.tv_sec = us / 1'000'000, .tv_usec = us % 1'000'000}};
  setitimer(ITIMER_REAL, &timer, nullptr);
  action.sa_handler = &OnSecondSignal;
  sigset_t stops;
  sigemptyset(&stops);
  for (const int signal : {SIGTERM, SIGINT}) {
    sigaction(signal, &action, nullptr);
    sigaddset(&stops, signal);
  }
  // In this thread alone: the others block them still.
  pthread_sigmask(SIG_UNBLOCK, &stops, nullptr);
}

int Run(const leat::worker::Config& config) {
  std::atomic<bool> refused{false}, broken{false};
  const auto fail = [](std::string_view what, const absl::Status& status,
                       std::atomic<bool>* why) {
    fmt::print(stderr, "leat-worker: {}{}\n", what, leat::Message(status));
    *why = true;
    kill(getpid(), SIGTERM);
  };
  // The address is known once Start has returned; readiness may come before.
  std::atomic<int> steps{0};
  std::string address;
  const auto ready_step = [&] {
    if (++steps == 2) SayReady(config.ready_fd, address);
  };
  auto worker = leat::worker::Worker::Start(
      config,
      {.on_ready = ready_step,
       .on_refused =
           [&](const absl::Status& status) {
             fail(fmt::format("coordinator {}: ", config.coordinator), status,
                  &refused);
           },
       .on_fatal =
           [&](const absl::Status& status) { fail("", status, &broken); }});
  if (!worker.ok()) {
    fmt::print(stderr, "leat-worker: {}\n", leat::Message(worker.status()));
    return 1;
  }
  address = (*worker)->address();
  ready_step();
  const int signal = leat::rpc::WaitForStop(config.lifeline_fd);
  // Nobody is left to serve, and nothing here is worth a clean end.
  if (signal == 0) std::_Exit(0);
  if (refused) {
    BoundTheEnd(kTakeDown, 1);
    return 1;
  }
  // With a GPU that is out of order even an orderly end may hang; others take
  // over when the connections break.
  if (broken) std::_Exit(1);
  LOG_INFO("worker.stopping signal={}", signal);
  BoundTheEnd(std::chrono::milliseconds(config.drain_timeout_ms) + kTakeDown,
              0);
  if (!(*worker)->Drain()) std::_Exit(0);
  BoundTheEnd(kTakeDown, 0);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  leat::rpc::BlockStopSignals();
  auto flags = leat::worker::ParseFlags(
      argc, argv,
      {.token = FromEnvironment("LEAT_TOKEN"),
       .coordinator = FromEnvironment("LEAT_COORDINATOR"),
       .plane = FromEnvironment("LEAT_PLANE")});
  if (const int* code = std::get_if<int>(&flags)) return *code;
  const auto& config = std::get<leat::worker::Config>(flags);
  leat::InitLog("leat-worker", config.log_format,
                spdlog::level::from_str(config.log_level));
  if (!FromEnvironment("GRPC_EXPERIMENTS").empty())
    LOG_WARN("worker.environment GRPC_EXPERIMENTS=\"{}\" note=\"untested\"",
             FromEnvironment("GRPC_EXPERIMENTS"));
  return Run(config);
}
