// SPDX-License-Identifier: Apache-2.0
#include "client/embedded.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <span>
#include <utility>

#include "client/machine.h"
#include "core/hash.h"
#include "core/log.h"
#include "core/status.h"
#include "core/thread.h"

extern char** environ;

namespace leat::client {
namespace {

// Writing ends of lifelines, which a forked child must not keep. Fixed, so that
// the handler after fork touches plain memory only.
constexpr int kMaxLifelines = 64;
std::atomic<int> lifelines[kMaxLifelines];  // descriptor + 1; 0: free

void CloseLifelinesInChild() {
  for (std::atomic<int>& lifeline : lifelines)
    if (const int fd = lifeline.exchange(0); fd > 0) close(fd - 1);
}

int RegisterLifeline(int fd) {
  static std::once_flag once;
  std::call_once(
      once, [] { pthread_atfork(nullptr, nullptr, CloseLifelinesInChild); });
  for (int i = 0; i < kMaxLifelines; ++i)
    if (int free = 0; lifelines[i].compare_exchange_strong(free, fd + 1))
      return i;
  return -1;  // more services than that: forked children keep theirs alive
}

std::string RandomHex(size_t bytes) {
  std::vector<uint8_t> random(bytes);
  size_t done = 0;
  while (done < bytes) {
    const ssize_t n = getrandom(random.data() + done, bytes - done, 0);
    if (n > 0) done += static_cast<size_t>(n);
  }
  return ToHex(random);
}

std::vector<std::string> Environment(const std::string& token) {
  std::vector<std::string> variables = {"LEAT_ACCESS_TOKEN=" + token};
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text(*variable);
    // Where NVIDIA's libraries are is the machine's matter, not the service's.
    const bool library = text.starts_with("LEAT_CUDA_LIBRARY=") ||
                         text.starts_with("LEAT_NVJPEG_LIBRARY=");
    if ((text.starts_with("LEAT_") && !library) ||
        text.starts_with("GRPC_EXPERIMENTS="))
      continue;
    variables.emplace_back(text);
  }
  return variables;
}

int PollTimeout(absl::Duration left) {
  return static_cast<int>(
      std::clamp<int64_t>(absl::ToInt64Milliseconds(left) + 1, 0, 1'000'000));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Embedded>> Embedded::Start(
    const Options& options) {
  std::unique_ptr<Embedded> embedded(new Embedded);
  const absl::Time deadline = absl::Now() + options.timeout;
  embedded->stop_timeout_ = options.stop_timeout;
  RETURN_IF_ERROR(embedded->Spawn(options));
  RETURN_IF_ERROR(StartThread(
      "embedded", [e = embedded.get()] { e->Watch(); }, &embedded->watcher_));
  RETURN_IF_ERROR(embedded->AwaitReady(deadline));
  return embedded;
}

// All start at once; workers try until the coordinator listens.
absl::Status Embedded::Spawn(const Options& options) {
  ASSIGN_OR_RETURN(const std::string coordinator,
                   FindDaemon("leat-coordinator", options.daemon_dir));
  ASSIGN_OR_RETURN(const std::string worker,
                   FindDaemon("leat-worker", options.daemon_dir));
  owner_ = getpid();
  const std::string name = "unix-abstract:leat-" + RandomHex(16);
  token_ = RandomHex(32);
  address_ = name + "-c";
  ASSIGN_OR_RETURN(lifeline_, Pipe::Create());
  ASSIGN_OR_RETURN(stop_, Pipe::Create());
  lifeline_slot_ = RegisterLifeline(lifeline_.write.get());
  RETURN_IF_ERROR(SpawnOne(coordinator, {"--listen", address_}));
  const uint32_t workers = std::max(1u, options.workers);
  uint32_t threads = options.threads;
  if (threads == 0 && workers > 1)
    threads = std::max(1u, UsableCores() / workers);
  for (uint32_t i = 0; i < workers; ++i) {
    std::vector<std::string> args = {
        "--coordinator", address_,
        "--listen",      fmt::format("{}-w{}", name, i),
        "--name",        fmt::format("embedded-{}", i)};
    if (threads > 0) {
      args.push_back("--threads");
      args.push_back(std::to_string(threads));
    }
    RETURN_IF_ERROR(SpawnOne(worker, std::move(args)));
  }
  lifeline_.read.Close();  // the daemons have theirs
  return absl::OkStatus();
}

absl::Status Embedded::SpawnOne(const std::string& program,
                                std::vector<std::string> args) {
  ASSIGN_OR_RETURN(Pipe ready, Pipe::Create());
  args.insert(args.end(),
              {"--ready-fd", std::to_string(kFirstInherited), "--lifeline-fd",
               std::to_string(kFirstInherited + 1), "--log-level", "warn"});
  auto daemon = std::make_unique<Daemon>();
  daemon->name = program;
  ASSIGN_OR_RETURN(
      daemon->child,
      Child::Start({.program = program,
                    .args = std::move(args),
                    .environment = Environment(token_),
                    .inherited = {ready.write.get(), lifeline_.read.get()}}));
  fcntl(ready.read.get(), F_SETFL, O_NONBLOCK);
  daemon->ready = std::move(ready.read);
  MutexLock lock(&mu_);
  daemons_.push_back(std::move(daemon));
  return absl::OkStatus();
}

absl::Status Embedded::AwaitReady(absl::Time deadline) {
  std::vector<Daemon*> waiting;
  {
    MutexLock lock(&mu_);
    for (const auto& daemon : daemons_) waiting.push_back(daemon.get());
  }
  while (!waiting.empty()) {
    const absl::Duration left = deadline - absl::Now();
    std::vector<pollfd> fds;
    for (const Daemon* daemon : waiting)
      fds.push_back({daemon->ready.get(), POLLIN, 0});
    const int n = left <= absl::ZeroDuration()
                      ? 0
                      : poll(fds.data(), fds.size(), PollTimeout(left));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      MutexLock lock(&mu_);
      return Unavailable("the private service: {} is not ready in time{}{}",
                         waiting.front()->name,
                         waiting.front()->child.tail().empty() ? "" : ": ",
                         waiting.front()->child.tail());
    }
    for (Daemon* daemon : waiting) RETURN_IF_ERROR(ReadReady(daemon, deadline));
    std::erase_if(waiting,
                  [](const Daemon* daemon) { return !daemon->ready.open(); });
  }
  return absl::OkStatus();
}

absl::Status Embedded::ReadReady(Daemon* daemon, absl::Time deadline) {
  char bytes[256];
  const ssize_t n = read(daemon->ready.get(), bytes, sizeof bytes);
  if (n < 0) return absl::OkStatus();  // nothing yet
  if (n == 0) return Died(daemon, deadline);
  daemon->said.append(bytes, static_cast<size_t>(n));
  if (daemon->said.find('\n') != std::string::npos) daemon->ready.Close();
  return absl::OkStatus();
}

// It closed its ready pipe without a word: it has ended, or is about to.
absl::Status Embedded::Died(Daemon* daemon, absl::Time deadline) {
  const MonotonicTime until = std::min(
      Clock::Real().Now() + std::chrono::seconds(2),
      Clock::Real().Now() + absl::ToChronoNanoseconds(std::max(
                                absl::ZeroDuration(), deadline - absl::Now())));
  MutexLock lock(&mu_);
  while (!daemon->child.ended() && ended_.WaitUntil(&mu_, until)) {
  }
  if (!daemon->child.ended()) daemon->child.Signal(SIGKILL);
  const std::string how = daemon->child.Reap();
  std::string tail = daemon->child.tail();
  while (!tail.empty() && tail.back() == '\n') tail.pop_back();
  return Unavailable("the private service: {} ended at start with {}: {}",
                     daemon->name, how,
                     tail.empty() ? "it wrote nothing" : tail);
}

// Reads what the daemons write until all have ended.
void Embedded::Watch() {
  while (true) {
    std::vector<pollfd> fds = {{stop_.read.get(), POLLIN, 0}};
    {
      MutexLock lock(&mu_);
      for (const auto& daemon : daemons_)
        if (!daemon->child.ended())
          fds.push_back({daemon->child.stderr_fd(), POLLIN, 0});
    }
    if (poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) return;
    if (fds[0].revents != 0) return;
    MutexLock lock(&mu_);
    for (const auto& daemon : daemons_) {
      if (daemon->child.ended()) continue;
      daemon->child.ReadStderr();
      if (daemon->child.ended()) ended_.NotifyAll();
    }
  }
}

bool Embedded::AwaitEnd(MonotonicTime deadline) {
  MutexLock lock(&mu_);
  const auto all_ended = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return std::all_of(daemons_.begin(), daemons_.end(),
                       [](const auto& d) { return d->child.ended(); });
  };
  while (!all_ended())
    if (!ended_.WaitUntil(&mu_, deadline)) return all_ended();
  return true;
}

Embedded::~Embedded() {
  if (owner_ != getpid()) {
    // A forked child: the daemons are its parent's, and the thread does not
    // exist here, so that its handle can be neither joined nor destroyed.
    if (watcher_.joinable()) new std::thread(std::move(watcher_));
    lifeline_.write.Release();
    return;
  }
  if (lifeline_slot_ >= 0) lifelines[lifeline_slot_].store(0);
  lifeline_.read.Close();
  lifeline_.write.Close();
  const MonotonicTime deadline =
      Clock::Real().Now() + absl::ToChronoNanoseconds(stop_timeout_);
  if (watcher_.joinable() && !AwaitEnd(deadline))
    LOG_WARN("embedded.killed reason=\"did not end within {}\"",
             absl::FormatDuration(stop_timeout_));
  // A byte, not the pipe's end: a forked child may hold its writing end too.
  while (stop_.write.open() && write(stop_.write.get(), "", 1) < 0 &&
         errno == EINTR) {
  }
  if (watcher_.joinable()) watcher_.join();
  MutexLock lock(&mu_);
  for (const auto& daemon : daemons_) {
    if (!daemon->child.ended()) daemon->child.Signal(SIGKILL);
    daemon->child.Reap();
  }
}

std::vector<pid_t> Embedded::pids() const {
  MutexLock lock(&mu_);
  std::vector<pid_t> pids;
  for (const auto& daemon : daemons_) pids.push_back(daemon->child.pid());
  return pids;
}

}  // namespace leat::client
