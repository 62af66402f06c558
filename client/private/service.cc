// SPDX-License-Identifier: Apache-2.0
//
// The first process binds the socket's name, starts leat-private with the
// listening socket, and then connects to it like all others; processes that
// connect meanwhile wait in the socket's queue. The kernel frees the name when
// both are gone, so no name is ever stale.
//
// Another user may occupy a name, since names are not secret. Then the next of
// a few names is tried.
#include "client/private/service.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "absl/time/clock.h"
#include "client/private/embedded.h"
#include "core/hash.h"
#include "core/log.h"
#include "core/status.h"
#include "core/thread.h"
#include "nlohmann/json.hpp"

extern char** environ;

namespace leat::client {
namespace {

constexpr int kNames = 4;
constexpr size_t kMaxName = 128;
constexpr size_t kMaxFound = 64;
constexpr absl::Duration kFirstPause = absl::Milliseconds(2);
constexpr absl::Duration kMaxPause = absl::Milliseconds(100);
constexpr size_t kGreetingLines = 6;

std::string Prefix() { return fmt::format("leat-private-{}-", geteuid()); }

struct Programs {
  std::string supervisor, coordinator, worker;
};

absl::StatusOr<Programs> FindPrograms(const std::string& daemon_dir) {
  Programs programs;
  ASSIGN_OR_RETURN(programs.supervisor, FindDaemon("leat-private", daemon_dir));
  ASSIGN_OR_RETURN(programs.coordinator,
                   FindDaemon("leat-coordinator", daemon_dir));
  ASSIGN_OR_RETURN(programs.worker, FindDaemon("leat-worker", daemon_dir));
  return programs;
}

// Identifies a file and its content, without reading it.
std::string IdentityOf(const std::string& path) {
  struct stat file {};
  if (stat(path.c_str(), &file) != 0) return path;
  return fmt::format("{}:{}:{}:{}.{}", file.st_dev, file.st_ino, file.st_size,
                     file.st_mtim.tv_sec, file.st_mtim.tv_nsec);
}

std::string Namespace(const char* name) {
  std::error_code error;
  return std::filesystem::read_symlink(std::string("/proc/self/ns/") + name,
                                       error)
      .string();
}

// Returns whether the variable affects what a worker may read, and how.
bool MattersToWorkers(std::string_view variable, bool gpus) {
  for (const std::string_view prefix :
       {"AWS_", "GOOGLE_", "CLOUDSDK_",
        "HOME=", "HTTP_PROXY=", "HTTPS_PROXY=", "ALL_PROXY=", "NO_PROXY=",
        "http_proxy=", "https_proxy=", "all_proxy=", "no_proxy=", "SSL_CERT_",
        "SLURM_JOB_ID=", "LEAT_CUDA_LIBRARY=", "LEAT_NVJPEG_LIBRARY="})
    if (variable.starts_with(prefix)) return true;
  return gpus && variable.starts_with("CUDA_VISIBLE_DEVICES=");
}

std::string Describe(const PrivateOptions& options) {
  std::string text =
      fmt::format("workers={} devices={}", options.workers, options.devices);
  if (options.threads > 0) text += fmt::format(" threads={}", options.threads);
  if (options.cache_bytes > 0)
    text += fmt::format(" cache={}", options.cache_bytes);
  if (!options.disk_cache.empty())
    text += fmt::format(" disk_cache={}:{}", options.disk_cache,
                        options.disk_cache_bytes);
  if (!options.name.empty()) text += fmt::format(" name={}", options.name);
  // One line, for a command line and a message.
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < ' '; }, '?');
  return text;
}

std::string KeyOf(const PrivateOptions& options, const Programs& programs) {
  Sha256 hash;
  for (const std::string* program :
       {&programs.supervisor, &programs.coordinator, &programs.worker})
    hash.UpdateField(IdentityOf(*program));
  hash.UpdateField(options.version).UpdateField(options.name);
  hash.UpdateField(options.devices).UpdateField(options.disk_cache);
  for (const uint64_t number :
       {uint64_t{options.workers}, uint64_t{options.threads},
        options.cache_bytes, options.disk_cache_bytes})
    hash.UpdateU64(number);
  for (const char* name : {"mnt", "net", "pid", "user"})
    hash.UpdateField(Namespace(name));
  std::error_code error;
  hash.UpdateField(std::filesystem::current_path(error).string());
  std::vector<std::string> variables;
  for (char** each = environ; *each != nullptr; ++each)
    if (MattersToWorkers(*each, options.devices != "none"))
      variables.emplace_back(*each);
  std::sort(variables.begin(), variables.end());
  for (const std::string& each : variables) hash.UpdateField(each);
  return ShortHex(hash.Finish());
}

// Waits until the program has left a process behind, or has reported an error.
absl::Status Launch(const PrivateOptions& options, const Programs& programs,
                    Fd listener, absl::Time deadline) {
  std::vector<std::string> args = {
      "--listen-fd", std::to_string(kFirstInherited), "--description",
      Describe(options), "--workers", std::to_string(options.workers),
      "--threads", std::to_string(options.threads), "--cache",
      std::to_string(options.cache_bytes), "--devices", options.devices,
      // Shorter than this process's own wait, so that it receives the error.
      "--timeout-ms",
      std::to_string(std::clamp<int64_t>(
          absl::ToInt64Milliseconds(options.timeout * 0.9), 1, 3'600'000))};
  const auto folder_of = [](const std::string& program) {
    std::error_code error;
    return std::filesystem::absolute(program, error).parent_path().string();
  };
  if (const std::string folder = folder_of(programs.coordinator);
      folder == folder_of(programs.worker))
    args.insert(args.end(), {"--daemon-dir", folder});
  if (!options.disk_cache.empty())
    args.insert(args.end(),
                {"--disk-cache", options.disk_cache, "--disk-cache-bytes",
                 std::to_string(options.disk_cache_bytes)});
  std::vector<std::string> environment;
  for (char** each = environ; *each != nullptr; ++each)
    environment.emplace_back(*each);
  ASSIGN_OR_RETURN(Child child,
                   Child::Start({.program = programs.supervisor,
                                 .args = std::move(args),
                                 .environment = std::move(environment),
                                 .inherited = {listener.get()}}));
  while (!child.ended()) {
    const absl::Duration left = deadline - absl::Now();
    pollfd wait = {child.stderr_fd(), POLLIN, 0};
    if (left <= absl::ZeroDuration()) {
      child.Signal(SIGKILL);
      child.Reap();
      return Unavailable("the private service: {} does not start in time",
                         programs.supervisor);
    }
    poll(&wait, 1,
         static_cast<int>(std::min<int64_t>(absl::ToInt64Milliseconds(left) + 1,
                                            1'000'000)));
    child.ReadStderr();
  }
  const std::string how = child.Reap();
  if (how == "exit code 0" || how == "reaped by somebody else")
    return absl::OkStatus();
  return Unavailable("the private service: {} ended with {}: {}",
                     programs.supervisor, how, child.tail());
}

std::vector<std::string> LinesOf(std::string_view text, size_t most) {
  std::vector<std::string> lines;
  while (lines.size() + 1 < most) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) break;
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  lines.emplace_back(text);
  return lines;
}

bool Number(const std::string& text, int64_t* value) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *value);
  return error == std::errc() && stop == end && *value >= 0;
}

}  // namespace

absl::Status PrivateService::Greeted(const std::string& greeting) {
  if (greeting.starts_with("failed\n")) {
    const auto lines = LinesOf(greeting, 3);
    int64_t code = 0;
    if (lines.size() != 3 || !Number(lines[1], &code) || code < 1 || code > 16)
      return Unavailable("the private service did not start");
    return MakeStatus(static_cast<absl::StatusCode>(code), "{}", lines[2]);
  }
  const auto lines = LinesOf(greeting, kGreetingLines);
  if (lines.size() != kGreetingLines || lines[0] != "ready" ||
      !Number(lines[3], &pid_) || !Number(lines[4], &lessees_))
    return FailedPrecondition(
        "the private service greets with \"{:.40}\": want ready, and its "
        "address",
        greeting);
  address_ = lines[1];
  token_ = lines[2];
  options_ = lines[5];
  return absl::OkStatus();
}

// kUnavailable: the service is ending. Other errors: as ConnectLocal, and the
// service's own error at its start.
absl::StatusOr<std::unique_ptr<PrivateService>> PrivateService::Join(
    const std::string& name, absl::Time deadline, bool* refused) {
  *refused = false;
  std::unique_ptr<PrivateService> service(new PrivateService);
  service->owner_ = getpid();
  ASSIGN_OR_RETURN(service->lease_, ConnectLocal(name, deadline));
  service->lease_guard_ = ClosedInForkedChildren(service->lease_.get());
  ASSIGN_OR_RETURN(
      const std::string greeting,
      ReceiveLocal(service->lease_.get(), deadline, &service->names_));
  *refused = true;
  RETURN_IF_ERROR(service->Greeted(greeting));
  RETURN_IF_ERROR(service->StartWatching());
  return service;
}

absl::StatusOr<std::unique_ptr<PrivateService>> PrivateService::Acquire(
    const PrivateOptions& options) {
  if (options.name.size() > kMaxName)
    return InvalidArgument("LEAT_PRIVATE_NAME of {} bytes: want at most {}",
                           options.name.size(), kMaxName);
  const absl::Time deadline = absl::Now() + options.timeout;
  ASSIGN_OR_RETURN(const Programs programs, FindPrograms(options.daemon_dir));
  const std::string name = Prefix() + KeyOf(options, programs);
  bool started = false;
  absl::Duration pause = kFirstPause;
  for (int number = 0; number < kNames;) {
    const std::string full = fmt::format("{}-{}", name, number);
    bool refused = false;
    auto service = Join(full, deadline, &refused);
    if (service.ok()) {
      (*service)->started_ = started;
      return service;
    }
    const absl::Status& status = service.status();
    if (refused) return status;
    if (absl::IsPermissionDenied(status)) {
      LOG_WARN("private.name_taken error=\"{}\"", Message(status));
      ++number;
      continue;
    }
    if (absl::IsDeadlineExceeded(status) || absl::Now() >= deadline)
      return Unavailable("the private service @{} is not ready within {}: {}",
                         full, absl::FormatDuration(options.timeout),
                         Message(status));
    if (!absl::IsNotFound(status) && !absl::IsUnavailable(status))
      return status;
    absl::StatusOr<Fd> listener = ListenLocal(full);
    if (listener.ok()) {
      const ClosedInForkedChildren guard(listener->get());
      RETURN_IF_ERROR(
          Launch(options, programs, *std::move(listener), deadline));
      started = true;
      continue;
    }
    if (!absl::IsAlreadyExists(listener.status())) return listener.status();
    // Another process has bound it and does not listen yet, or is ending and
    // has not closed it: this is brief.
    absl::SleepFor(std::min(
        pause, std::max(absl::ZeroDuration(), deadline - absl::Now())));
    pause = std::min(kMaxPause, pause * 2);
  }
  return Unavailable(
      "the private service: processes of other users hold its {} names @{}-*; "
      "LEAT_PRIVATE_NAME gives it another",
      kNames, name);
}

absl::StatusOr<std::unique_ptr<PrivateService>> PrivateService::Find(
    int64_t pid, absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  std::vector<std::unique_ptr<PrivateService>> found;
  std::string list;
  for (const std::string& name : ListeningNames(Prefix(), kMaxFound)) {
    bool refused = false;
    auto service = Join(name, deadline, &refused);
    if (!service.ok()) continue;  // another user's, or ending
    list += fmt::format("{}{} ({})", list.empty() ? "" : ", ", (*service)->pid_,
                        (*service)->options_);
    if (pid == 0 || (*service)->pid_ == pid)
      found.push_back(*std::move(service));
  }
  if (found.empty())
    return NotFound("no private service {}runs here for user {}{}{}",
                    pid == 0 ? "" : fmt::format("of process {} ", pid),
                    geteuid(), list.empty() ? "" : "; there are: ", list);
  if (found.size() > 1)
    return FailedPrecondition(
        "{} private services run here: {}; want the process of one",
        found.size(), list);
  return std::move(found.front());
}

absl::Status PrivateService::StartWatching() {
  ASSIGN_OR_RETURN(stop_, Pipe::Create());
  stop_guard_ = ClosedInForkedChildren(stop_.write.get());
  return StartThread(
      "private", [this] { Watch(); }, &watcher_);
}

void PrivateService::Watch() {
  while (true) {
    pollfd waits[2] = {{stop_.read.get(), POLLIN, 0},
                       {lease_.get(), POLLIN, 0}};
    if (poll(waits, 2, -1) < 0) {
      if (errno == EINTR) continue;
      return;
    }
    if (waits[0].revents != 0) return;
    const auto message = ReceiveLocal(lease_.get(), absl::InfinitePast());
    if (absl::IsDeadlineExceeded(message.status())) continue;
    if (!message.ok()) {
      lost_.store(true, std::memory_order_release);
      LOG_ERROR("private.lost pid={} note=\"{}\"", pid_, LostText());
      // New connections are refused, instead of waiting for a daemon.
      for (const Fd& name : names_) shutdown(name.get(), SHUT_RDWR);
      return;
    }
    if (message->starts_with("log\n"))
      LOG_WARN("private.event pid={} text=\"{}\"", pid_, message->substr(4));
  }
}

std::string PrivateService::LostText() const {
  if (!lost_.load(std::memory_order_acquire)) return "";
  return fmt::format(
      "the private service (process {}) has ended; the next connect starts "
      "another, where jobs resume at their positions",
      pid_);
}

std::string PrivateService::ToJson() const {
  return nlohmann::json{{"pid", pid_},
                        {"started", started_},
                        {"lessees", lessees_},
                        {"options", options_}}
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

PrivateService::~PrivateService() {
  if (owner_ != getpid()) {
    // In a forked child: the handle of a thread that does not exist here can be
    // neither joined nor destroyed, and its descriptors are closed already.
    if (watcher_.joinable()) new std::thread(std::move(watcher_));
    lease_.Release();
    stop_.write.Release();
    return;
  }
  stop_guard_.Reset();
  lease_guard_.Reset();
  // A byte, not the pipe's end, wakes the thread: a child may hold the end.
  if (watcher_.joinable()) {
    while (write(stop_.write.get(), "", 1) < 0 && errno == EINTR) {
    }
    watcher_.join();
  }
}

}  // namespace leat::client
