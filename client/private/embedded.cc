// SPDX-License-Identifier: Apache-2.0
#include "client/private/embedded.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include "client/private/machine.h"
#include "core/counted.h"
#include "core/hash.h"
#include "core/log.h"
#include "core/status.h"
#include "core/thread.h"
#include "rpc/process/machine.h"

extern char** environ;

namespace leat::client {
namespace {

// Orders to the watcher.
constexpr char kWatchOver = 'w', kLetEnd = 'e', kStop = 's';
// A worker that ends this often in a row, without a life of this length, is not
// restarted.
constexpr int kMaxEndsInARow = 6;
constexpr auto kLongLife = std::chrono::minutes(1);
constexpr absl::Duration kMaxPause = absl::Seconds(10);
constexpr size_t kMaxQuoted = 1000;

std::string LastOf(const std::string& tail) {
  std::string text = tail;
  while (!text.empty() && text.back() == '\n') text.pop_back();
  if (text.size() > kMaxQuoted) text.erase(0, text.size() - kMaxQuoted);
  return text.empty() ? "it wrote nothing" : text;
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
    // The place of NVIDIA's libraries depends on the machine, not the service.
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
  std::unique_ptr<Embedded> embedded(new Embedded(options));
  const absl::Time deadline = absl::Now() + options.timeout;
  RETURN_IF_ERROR(embedded->Spawn());
  RETURN_IF_ERROR(StartThread(
      "embedded", [e = embedded.get()] { e->Watch(); }, &embedded->watcher_));
  RETURN_IF_ERROR(embedded->AwaitReady(deadline));
  embedded->Tell(kWatchOver);
  return embedded;
}

// All start at once; workers retry until the coordinator listens.
absl::Status Embedded::Spawn() {
  ASSIGN_OR_RETURN(const std::string coordinator,
                   FindDaemon("leat-coordinator", options_.daemon_dir));
  ASSIGN_OR_RETURN(const std::string worker,
                   FindDaemon("leat-worker", options_.daemon_dir));
  owner_ = getpid();
  const std::string name = "leat-" + RandomHex(16);
  token_ = RandomHex(32);
  address_ = fmt::format("unix-abstract:{}-c", name);
  ASSIGN_OR_RETURN(lifeline_, Pipe::Create());
  ASSIGN_OR_RETURN(orders_, Pipe::Create());
  lifeline_guard_ = ClosedInForkedChildren(lifeline_.write.get());
  RETURN_IF_ERROR(SpawnOne(coordinator, name + "-c", {}, /*is_worker=*/false));
  for (uint32_t i = 0; i < std::max(1u, options_.workers); ++i)
    RETURN_IF_ERROR(SpawnOne(worker, fmt::format("{}-w{}", name, i),
                             WorkerArgs(i), /*is_worker=*/true));
  return absl::OkStatus();
}

std::vector<std::string> Embedded::WorkerArgs(uint32_t number) const {
  const uint32_t workers = std::max(1u, options_.workers);
  std::vector<std::string> args = {
      "--coordinator", address_,
      "--name",        fmt::format("embedded-{}", number),
      "--devices",     options_.devices};
  const auto add = [&](const char* flag, std::string value) {
    args.push_back(flag);
    args.push_back(std::move(value));
  };
  uint32_t threads = options_.threads;
  if (threads == 0 && workers > 1)
    threads = std::max(1u, static_cast<uint32_t>(rpc::UsableCores()) / workers);
  if (threads > 0) add("--threads", std::to_string(threads));
  if (options_.cache_bytes > 0)
    add("--cache", std::to_string(options_.cache_bytes / workers));
  if (!options_.disk_cache.empty()) {
    // A worker creates its own folder in it, and reports why it cannot.
    mkdir(options_.disk_cache.c_str(), 0700);
    add("--disk-cache",
        fmt::format("{}/worker-{}", options_.disk_cache, number));
    add("--disk-cache-bytes",
        std::to_string(options_.disk_cache_bytes / workers));
  }
  return args;
}

absl::Status Embedded::SpawnOne(const std::string& program,
                                const std::string& name,
                                std::vector<std::string> args, bool is_worker) {
  auto daemon = std::make_unique<Daemon>();
  ASSIGN_OR_RETURN(daemon->listener, ListenStream(name));
  daemon->name = program;
  daemon->args = std::move(args);
  daemon->is_worker = is_worker;
  RETURN_IF_ERROR(StartChild(daemon.get(), &daemon->child, &daemon->ready));
  daemon->started = Clock::Real().Now();
  MutexLock lock(&mu_);
  daemons_.push_back(std::move(daemon));
  return absl::OkStatus();
}

absl::Status Embedded::StartChild(Daemon* daemon, Child* child,
                                  Fd* ready) const {
  ASSIGN_OR_RETURN(Pipe pipe, Pipe::Create());
  std::vector<std::string> args = daemon->args;
  args.insert(
      args.end(),
      {"--ready-fd", std::to_string(kFirstInherited), "--lifeline-fd",
       std::to_string(kFirstInherited + 1), "--listen",
       fmt::format("fd:{}", kFirstInherited + 2), "--log-level", "warn"});
  ASSIGN_OR_RETURN(
      *child,
      Child::Start({.program = daemon->name,
                    .args = std::move(args),
                    .environment = Environment(token_),
                    .inherited = {pipe.write.get(), lifeline_.read.get(),
                                  daemon->listener.get()}}));
  fcntl(pipe.read.get(), F_SETFL, O_NONBLOCK);
  *ready = std::move(pipe.read);
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

// The daemon closed its ready pipe silently: it has ended, or is about to.
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
  return Unavailable("the private service: {} ended at start with {}: {}",
                     daemon->name, how, LastOf(daemon->child.tail()));
}

// Reads the daemons' output until it is told to stop. Between the order to
// watch over them and that, it restarts workers.
void Embedded::Watch() {
  bool reviving = false;
  while (true) {
    std::vector<pollfd> fds = {{orders_.read.get(), POLLIN, 0}};
    {
      MutexLock lock(&mu_);
      for (const auto& daemon : daemons_)
        fds.push_back({!daemon->child.ended() ? daemon->child.stderr_fd()
                       : refuses_             ? daemon->listener.get()
                                              : -1,
                       POLLIN, 0});
    }
    if (poll(fds.data(), fds.size(), reviving ? UntilNextStart() : -1) < 0 &&
        errno != EINTR)
      return;
    if (fds[0].revents != 0) {
      char order = kStop;
      if (read(orders_.read.get(), &order, 1) != 1 || order == kStop) return;
      reviving = order == kWatchOver;
    }
    ReadOutputs();
    RefuseForEnded();
    if (reviving) Revive();
  }
}

void Embedded::ReadOutputs() {
  MutexLock lock(&mu_);
  for (const auto& daemon : daemons_) {
    if (daemon->child.ended()) continue;
    daemon->child.ReadStderr();
    if (daemon->child.ended()) ended_.NotifyAll();
  }
}

// While a daemon is away, its socket still listens. A client that connects is
// refused at once, and asks elsewhere.
void Embedded::RefuseForEnded() {
  constexpr int kAtOnce = 64;
  MutexLock lock(&mu_);
  for (const auto& daemon : daemons_)
    for (int i = 0; i < kAtOnce && daemon->child.ended(); ++i) {
      const Fd caller(
          accept4(daemon->listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (caller.open()) continue;
      // Without descriptors clients wait, so that this thread does not spin.
      refuses_ = errno != EMFILE && errno != ENFILE && errno != ENOMEM;
      break;
    }
}

void Embedded::Revive() {
  std::vector<Daemon*> ended;
  {
    MutexLock lock(&mu_);
    for (const auto& daemon : daemons_)
      if (daemon->child.ended() && !daemon->given_up)
        ended.push_back(daemon.get());
  }
  const MonotonicTime now = Clock::Real().Now();
  for (Daemon* daemon : ended) {
    if (!daemon->start_at)
      Ended(daemon, now);
    else if (*daemon->start_at <= now)
      StartAgain(daemon, now);
  }
}

// Decides whether to restart the daemon.
void Embedded::Ended(Daemon* daemon, MonotonicTime now) {
  Child child;
  {
    MutexLock lock(&mu_);
    child = std::move(daemon->child);
  }
  const std::string what =
      fmt::format("{} (process {}) ended with", daemon->name, child.pid());
  const std::string how =
      fmt::format("{}: {}", child.Reap(), LastOf(child.tail()));
  if (now - daemon->started >= kLongLife) daemon->ends_in_a_row = 0;
  ++daemon->ends_in_a_row;
  if (daemon->is_worker && daemon->ends_in_a_row < kMaxEndsInARow) {
    const absl::Duration pause = std::min(
        kMaxPause, options_.first_pause * (1 << (daemon->ends_in_a_row - 1)));
    daemon->start_at = now + absl::ToChronoNanoseconds(pause);
    Say(false, fmt::format("{} {}; it is started again in {}", what, how,
                           absl::FormatDuration(pause)));
    return;
  }
  bool over = !daemon->is_worker;
  {
    MutexLock lock(&mu_);
    daemon->given_up = true;
    over = over ||
           std::all_of(daemons_.begin(), daemons_.end(), [](const auto& each) {
             return each->given_up || !each->is_worker;
           });
  }
  Say(over, daemon->is_worker
                ? fmt::format("{} {}; it ended {} in a row and stays ended",
                              what, how, Counted(daemon->ends_in_a_row, "time"))
                : fmt::format("{} {}; jobs are made again by another service",
                              what, how));
}

void Embedded::StartAgain(Daemon* daemon, MonotonicTime now) {
  Child child;
  Fd ready;
  refuses_ = true;
  const absl::Status status = StartChild(daemon, &child, &ready);
  daemon->started = now;
  daemon->start_at.reset();
  MutexLock lock(&mu_);
  daemon->ready = std::move(ready);
  // A daemon that could not be started counts as one that has ended.
  if (status.ok()) daemon->child = std::move(child);
}

// Returns milliseconds, for poll.
int Embedded::UntilNextStart() const {
  MutexLock lock(&mu_);
  const MonotonicTime now = Clock::Real().Now();
  int64_t least = -1;
  for (const auto& daemon : daemons_) {
    if (daemon->given_up || !daemon->child.ended()) continue;
    const int64_t left =
        daemon->start_at
            ? std::max<int64_t>(0, std::chrono::ceil<std::chrono::milliseconds>(
                                       *daemon->start_at - now)
                                       .count())
            : 0;
    least = least < 0 ? left : std::min(least, left);
  }
  return static_cast<int>(std::min<int64_t>(least, 1'000'000));
}

void Embedded::Say(bool over, const std::string& line) const {
  if (options_.on_event) options_.on_event(over, line);
}

void Embedded::Tell(char what) const {
  while (orders_.write.open() && write(orders_.write.get(), &what, 1) < 0 &&
         errno == EINTR) {
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
    // In a forked child the daemons are its parent's, and the thread does not
    // exist, so its handle can be neither joined nor destroyed.
    if (watcher_.joinable()) new std::thread(std::move(watcher_));
    lifeline_.write.Release();
    return;
  }
  Tell(kLetEnd);
  lifeline_guard_.Reset();
  lifeline_.write.Close();
  const MonotonicTime deadline =
      Clock::Real().Now() + absl::ToChronoNanoseconds(options_.stop_timeout);
  if (watcher_.joinable() && !AwaitEnd(deadline))
    LOG_WARN("embedded.killed reason=\"did not end within {}\"",
             absl::FormatDuration(options_.stop_timeout));
  // A byte, not the pipe's end, since a forked child may hold the latter too.
  Tell(kStop);
  if (watcher_.joinable()) watcher_.join();
  MutexLock lock(&mu_);
  for (const auto& daemon : daemons_) {
    if (!daemon->child.ended()) daemon->child.Signal(SIGKILL);
    daemon->child.Reap();
  }
}

std::vector<int> Embedded::listeners() const {
  MutexLock lock(&mu_);
  std::vector<int> sockets;
  for (const auto& daemon : daemons_) sockets.push_back(daemon->listener.get());
  return sockets;
}

std::vector<pid_t> Embedded::pids() const {
  MutexLock lock(&mu_);
  std::vector<pid_t> pids;
  for (const auto& daemon : daemons_) pids.push_back(daemon->child.pid());
  return pids;
}

}  // namespace leat::client
