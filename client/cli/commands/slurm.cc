// SPDX-License-Identifier: Apache-2.0
//
// leat slurm: a pool of workers, and their coordinator, as jobs of Slurm.
//
//   up      writes the scripts, submits the coordinator, waits for its address
//   scale   follows the coordinator: keeps the arrays as it wants them
//   down    ends the coordinator, then the workers
//   status  what Slurm says of them
//
// `scale` keeps no state: the coordinator and the queue have all of it.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "client/cli/base/exit_code.h"
#include "client/cli/base/fields.h"
#include "client/cli/base/text.h"
#include "client/cli/clusters/slurm_pool.h"
#include "client/cli/clusters/slurm_scripts.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/pool.h"
#include "client/cli/commands/slurm_calls.h"
#include "core/cluster/pool_policy.h"
#include "core/hash.h"
#include "core/status.h"

namespace leat::cli {
namespace {

constexpr absl::Duration kDownTime = absl::Seconds(30);
constexpr absl::Duration kLookAtJob = absl::Seconds(3);
constexpr int kMaxPasses = 3;
constexpr size_t kTokenBytes = 32;

absl::StatusOr<SlurmService> ServiceOf(const Options& options) {
  RETURN_IF_ERROR(CheckPoolName(options.name));
  RETURN_IF_ERROR(CheckSlurmPool(options.name));
  SlurmService service{options.name, options.min_workers.value_or(1),
                       options.max_workers.value_or(0), options.slurm};
  SlurmOptions& slurm = service.options;
  if (slurm.dir.empty())
    return InvalidArgument(
        "--dir is missing: want a folder that all nodes share");
  std::error_code error;
  slurm.dir = std::filesystem::absolute(slurm.dir, error).lexically_normal();
  if (!slurm.tls.empty())
    slurm.tls = std::filesystem::absolute(slurm.tls, error).lexically_normal();
  // sbatch cuts a line of options at spaces, and replaces %.
  if (slurm.dir.find_first_of(" \t%\\\"'") != std::string::npos)
    return InvalidArgument(
        "--dir {}: want a path without spaces, quotes, % and \\", slurm.dir);
  RETURN_IF_ERROR(CheckScriptText("--dir", slurm.dir));
  RETURN_IF_ERROR(CheckScriptText("--tls", slurm.tls));
  RETURN_IF_ERROR(CheckScriptText("--listen", slurm.listen));
  for (const std::string& flag : slurm.sbatch)
    RETURN_IF_ERROR(CheckScriptText("--sbatch", flag));
  for (const std::string& flag : slurm.coordinator)
    RETURN_IF_ERROR(CheckScriptText("--coordinator-flag", flag));
  for (const std::string& flag : slurm.worker)
    RETURN_IF_ERROR(CheckScriptText("--worker", flag));
  return service;
}

// Writes a new file, readable only by its owner.
absl::Status ReplaceFile(const std::string& path, std::string_view text) {
  const std::string fresh = path + ".new";
  const int fd =
      open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
  if (fd < 0) return FailedPrecondition("{}: {}", path, strerror(errno));
  const bool written =
      write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const int error = errno;
  if (close(fd) != 0 || !written)
    return FailedPrecondition("{}: {}", path, strerror(error));
  if (rename(fresh.c_str(), path.c_str()) != 0)
    return FailedPrecondition("{}: {}", path, strerror(errno));
  return absl::OkStatus();
}

// Makes a token for the service, unless there is one.
absl::Status MakeToken(const std::string& path) {
  const int fd =
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0 && errno == EEXIST) return absl::OkStatus();
  if (fd < 0) return FailedPrecondition("{}: {}", path, strerror(errno));
  uint8_t random[kTokenBytes];
  const bool drawn = getentropy(random, sizeof random) == 0;
  const std::string text = ToHex(random) + "\n";
  const bool written = drawn && write(fd, text.data(), text.size()) ==
                                    static_cast<ssize_t>(text.size());
  if (close(fd) == 0 && written) return absl::OkStatus();
  unlink(path.c_str());
  return FailedPrecondition("{}: cannot be written", path);
}

std::string AddressIn(const std::string& dir) {
  std::ifstream in(dir + "/address");
  std::string address;
  std::getline(in, address);
  return address;
}

absl::Status Prepare(const SlurmService& service) {
  const SlurmOptions& slurm = service.options;
  std::error_code error;
  std::filesystem::create_directories(slurm.dir + "/log", error);
  if (error)
    return FailedPrecondition("--dir {}: {}", slurm.dir, error.message());
  if (chmod(slurm.dir.c_str(), 0700) != 0)
    return FailedPrecondition("--dir {}: {}", slurm.dir, strerror(errno));
  RETURN_IF_ERROR(MakeToken(slurm.dir + "/token"));
  RETURN_IF_ERROR(
      ReplaceFile(slurm.dir + "/worker.sbatch", WorkerScript(service)));
  return ReplaceFile(slurm.dir + "/coordinator.sbatch",
                     CoordinatorScript(service));
}

// Returns the last non-empty line of the log; "": there is none.
std::string LastLine(const std::string& path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in) return "";
  constexpr std::streamoff kTail = 4096;
  const std::streamoff size = in.tellg();
  in.seekg(std::max<std::streamoff>(0, size - kTail));
  std::string last;
  for (std::string line; std::getline(in, line);)
    if (line.find_first_not_of(" \t\r") != line.npos &&
        !line.starts_with("leat slurm:"))
      last = line;
  return last;
}

// Returns why Slurm does not start the coordinator; "": it has, or does not
// say. The job may have ended: then its log says why.
absl::StatusOr<std::string> WhyItWaits(Session& session,
                                       const SlurmService& service) {
  // If Slurm is busy, the check is repeated.
  const absl::StatusOr<std::vector<SlurmTasks>> queue =
      SlurmQueue(session, CoordinatorJobName(service.pool));
  if (!queue.ok()) return "";
  if (queue->empty()) {
    const std::string log = service.options.dir + "/log/coordinator.log";
    const std::string last = LastLine(log);
    return FailedPrecondition("the coordinator's job has ended: {}",
                              last.empty() ? "see " + log : last);
  }
  const SlurmTasks& job = queue->front();
  const bool waits = job.state == SlurmTasks::State::kPending;
  return waits && job.reason != "None" ? job.reason : "";
}

// Workers of an earlier coordinator may hold the places that it waits for.
std::string WorkersThatRun(Session& session, const std::string& pool) {
  const auto queue = SlurmQueue(session, SlurmJobName(pool));
  if (!queue.ok()) return "";
  const auto running = std::ranges::count(*queue, SlurmTasks::State::kRunning,
                                          &SlurmTasks::state);
  if (running == 0) return "";
  return fmt::format(
      "; {} worker{} of the pool run{}: \"leat slurm down {}\" ends them",
      running, running == 1 ? "" : "s", running == 1 ? "s" : "", pool);
}

// Polls for the address: no event reports a file from another machine.
absl::StatusOr<int> AwaitAddress(Session& session, const SlurmService& service,
                                 absl::Duration within) {
  const absl::Duration step = absl::Seconds(1);
  std::string why;
  for (absl::Duration waited; waited <= within; waited += step) {
    if (const std::string address = AddressIn(service.options.dir);
        !address.empty()) {
      *session.environment().out << Printable(address) << std::endl;
      return kGood;
    }
    if (waited % kLookAtJob == absl::ZeroDuration()) {
      const std::string before = std::move(why);
      ASSIGN_OR_RETURN(why, WhyItWaits(session, service));
      if (!why.empty() && why != before)
        session.Say(fmt::format("it waits in Slurm's queue ({}){}", why,
                                WorkersThatRun(session, service.pool)));
    }
    session.environment().pause(step);
  }
  if (!why.empty())
    return DeadlineExceeded(
        "the coordinator's job has waited in Slurm's queue for {} ({}), and "
        "stays there: the same command waits on, \"leat slurm down {}\" takes "
        "it out",
        absl::FormatDuration(within), why, service.pool);
  return DeadlineExceeded(
      "the coordinator has not said its address in {}: look at \"leat slurm "
      "status {} --dir {}\" and at {}/log/coordinator.log",
      absl::FormatDuration(within), service.pool, service.options.dir,
      service.options.dir);
}

absl::StatusOr<int> Up(Session& session) {
  const Options& options = session.options();
  ASSIGN_OR_RETURN(const SlurmService service, ServiceOf(options));
  if (service.max == 0)
    return InvalidArgument(
        "up: --max is missing: want how many workers the pool may have");
  RETURN_IF_ERROR(CheckPoolBounds({service.min, service.max}));
  ASSIGN_OR_RETURN(const absl::Duration within,
                   ParseTimeFlag("--within", options.within));
  const std::string& dir = service.options.dir;
  ASSIGN_OR_RETURN(const std::vector<SlurmTasks> running,
                   SlurmQueue(session, CoordinatorJobName(service.pool)));
  if (running.empty()) RETURN_IF_ERROR(CheckTlsFolder(service.options));
  RETURN_IF_ERROR(Prepare(service));
  if (!running.empty()) {
    session.Say(fmt::format(
        "the coordinator of pool \"{}\" is job {} ({}): its workers get the "
        "new script when they start; bounds change by leat pool set",
        service.pool, running[0].job, running[0].word));
    return AwaitAddress(session, service, within);
  }
  unlink((dir + "/address").c_str());
  ASSIGN_OR_RETURN(const std::string job,
                   CallSlurm(session, {"sbatch", "--parsable",
                                       dir + "/coordinator.sbatch"}));
  session.Say(fmt::format("the coordinator of pool \"{}\" is job {}",
                          service.pool, FirstLine(job)));
  return AwaitAddress(session, service, within);
}

// Makes the arrays as the coordinator wants them.
absl::Status Reconcile(Session& session, const SlurmService& service,
                       const Json& pool) {
  if (Whole(pool, "max") == 0) return absl::OkStatus();
  const SlurmWish wish{service.pool, Whole(pool, "desired"),
                       Strings(pool, "drain")};
  const uint64_t size = service.options.array_size == 0
                            ? kSlurmArraySize
                            : service.options.array_size;
  for (int pass = 0; pass < kMaxPasses; ++pass) {
    ASSIGN_OR_RETURN(const std::vector<SlurmTasks> queue,
                     SlurmQueue(session, SlurmJobName(service.pool)));
    const SlurmPlan plan = PlanSlurm(wish, queue, size);
    for (const std::vector<std::string>& command : plan.commands) {
      session.Say(fmt::format("{}", fmt::join(command, " ")));
      RETURN_IF_ERROR(CallSlurm(session, command).status());
    }
    for (const std::vector<std::string>& flags : plan.cancels) {
      session.Say(fmt::format("scancel {}", fmt::join(flags, " ")));
      CancelTasks(session, flags);
    }
    if (!plan.submit) return absl::OkStatus();
    // Held, so that if two are submitted at once one stays in reserve.
    ASSIGN_OR_RETURN(
        const std::string job,
        CallSlurm(session, {"sbatch", "--parsable", "--hold",
                            fmt::format("--array=0-{}%1", size - 1),
                            service.options.dir + "/worker.sbatch"}));
    session.Say(fmt::format("array {} is submitted", FirstLine(job)));
  }
  return absl::OkStatus();
}

absl::StatusOr<int> Scale(Session& session) {
  ASSIGN_OR_RETURN(const SlurmService service, ServiceOf(session.options()));
  return FollowPool(
      session, service.pool, session.options().slurm.once,
      [&](const Json& pool) { return Reconcile(session, service, pool); });
}

// Ends the job that would submit more tasks. A coordinator that does not end
// within kDownTime is left: its tasks are ended nevertheless.
absl::Status EndCoordinators(Session& session, const std::string& pool) {
  for (absl::Duration waited; waited < kDownTime; waited += absl::Seconds(1)) {
    ASSIGN_OR_RETURN(const std::vector<SlurmTasks> coordinators,
                     SlurmQueue(session, CoordinatorJobName(pool)));
    if (coordinators.empty()) break;
    for (const SlurmTasks& each : coordinators) {
      const std::string job = fmt::format("{}", each.job);
      if (each.state != SlurmTasks::State::kRunning)
        CancelTasks(session, {job});
      else if (waited == absl::ZeroDuration())
        CancelTasks(session, {"--signal=TERM", "--batch", job});
    }
    session.environment().pause(absl::Seconds(1));
  }
  return absl::OkStatus();
}

// Cancels waiting tasks, and signals running ones that are not in `told` to
// drain; adds these to `told`. Returns whether there were any.
absl::StatusOr<bool> EndTasks(Session& session, const std::string& pool,
                              std::set<std::string>* told) {
  ASSIGN_OR_RETURN(const std::vector<SlurmTasks> queue,
                   SlurmQueue(session, SlurmJobName(pool)));
  // Waiting tasks go first: each would replace one that ends.
  bool some = false;
  for (const SlurmTasks& tasks : queue) {
    if (tasks.state != SlurmTasks::State::kPending) continue;
    some = true;
    CancelTasks(session, {"--state=PENDING", fmt::format("{}", tasks.job)});
  }
  for (const SlurmTasks& tasks : queue) {
    if (tasks.state != SlurmTasks::State::kRunning) continue;
    const std::string task = fmt::format("{}_{}", tasks.job, tasks.index);
    if (!told->insert(task).second) continue;
    some = true;
    CancelTasks(session, {"--signal=TERM", "--batch", task});
  }
  return some;
}

absl::StatusOr<int> Down(Session& session) {
  const std::string& pool = session.options().name;
  RETURN_IF_ERROR(CheckPoolName(pool));
  RETURN_IF_ERROR(CheckSlurmPool(pool));
  RETURN_IF_ERROR(EndCoordinators(session, pool));
  // A task that waited when the queue was read may start before it is
  // cancelled, so the queue is read until it holds nothing to end.
  std::set<std::string> told;
  for (absl::Duration waited; waited < kDownTime; waited += absl::Seconds(1)) {
    ASSIGN_OR_RETURN(const bool some, EndTasks(session, pool, &told));
    if (!some) break;
    session.environment().pause(absl::Seconds(1));
  }
  session.Say(fmt::format("pool \"{}\": {} worker{} drain{}", pool, told.size(),
                          told.size() == 1 ? "" : "s",
                          told.size() == 1 ? "s" : ""));
  return kGood;
}

absl::StatusOr<int> Status(Session& session) {
  ASSIGN_OR_RETURN(const SlurmService service, ServiceOf(session.options()));
  return session.Show([&]() -> absl::StatusOr<Session::Result> {
    View view;
    view.data = {{"pool", service.pool},
                 {"address", AddressIn(service.options.dir)},
                 {"tasks", Json::array()}};
    Section section;
    const std::string address = AddressIn(service.options.dir);
    section.facts = {{"Pool", service.pool},
                     {"Address", address.empty() ? "none yet" : address}};
    section.table.columns = {{"JOB"},   {"WHAT"},      {"STATE"},
                             {"TASKS"}, {"REASON", 2}, {"NODE", 1}};
    for (const bool worker : {false, true}) {
      ASSIGN_OR_RETURN(
          const std::vector<SlurmTasks> queue,
          SlurmQueue(session, worker ? SlurmJobName(service.pool)
                                     : CoordinatorJobName(service.pool)));
      const std::string what = worker ? "worker" : "coordinator";
      for (const SlurmTasks& tasks : queue) {
        const std::string job =
            tasks.index.empty() ? fmt::format("{}", tasks.job)
                                : fmt::format("{}_{}", tasks.job, tasks.index);
        view.names.push_back(job);
        view.data["tasks"].push_back({{"job", job},
                                      {"what", what},
                                      {"state", tasks.word},
                                      {"count", tasks.count},
                                      {"reason", tasks.reason},
                                      {"node", tasks.node}});
        section.table.rows.push_back({{job, Tone::kBold},
                                      what,
                                      tasks.word,
                                      fmt::format("{}", tasks.count),
                                      tasks.reason,
                                      tasks.node});
      }
    }
    view.sections.push_back(std::move(section));
    return Session::Result{std::move(view), kGood};
  });
}

}  // namespace

absl::StatusOr<int> RunSlurm(Session& session) {
  const std::string& action = session.options().kind;
  if (action == "up") return Up(session);
  if (action == "scale") return Scale(session);
  if (action == "down") return Down(session);
  return Status(session);
}

}  // namespace leat::cli
