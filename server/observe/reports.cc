// SPDX-License-Identifier: Apache-2.0
#include "server/observe/reports.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "core/counted.h"
#include "core/printable.h"
#include "core/status.h"

namespace leat::server {
namespace {

// Adds findings, each with its remedy.
class Writer {
 public:
  // `subjects`: as in v1::Finding.
  void Add(std::string code, std::string severity,
           std::vector<std::string> subjects, std::string summary,
           std::string remedy) {
    findings_.push_back({std::move(code), std::move(severity),
                         std::move(summary), std::move(remedy),
                         std::move(subjects)});
  }
  std::vector<Finding> Take() { return std::move(findings_); }

 private:
  std::vector<Finding> findings_;
};

using Subjects = std::vector<std::string>;

constexpr char kInsecureRemedy[] =
    "give --tls-cert, --tls-key and --access-token-file instead of --insecure";
constexpr char kCertificateRemedy[] =
    "replace --tls-cert and --tls-key; they are read when they change";
constexpr char kReloadRemedy[] =
    "mend the files on its host, since it would not start again with them: "
    "leat doctor --local --tls-cert FILE --tls-key FILE there examines them, "
    "and they are read when they change";

Subjects JobSubjects(const Snapshot::Jobs& jobs) {
  Subjects subjects;
  for (const std::string& name : jobs.first) subjects.push_back("job/" + name);
  return subjects;
}

// "1 more worker is lost", "7 more workers are lost".
std::string More(size_t count, const char* one, const char* many) {
  return fmt::format("{} {}", Counted(count, "more worker"),
                     count == 1 ? one : many);
}

void AddWorkers(const Snapshot& at, Writer* to) {
  if (at.ready == 0 && at.workers == 0 && !at.may_come)
    to->Add("NO_WORKERS", "error", {},
            "no worker is connected: no batch can be made",
            "start leat-worker --coordinator ADDRESS on some machine, or let a "
            "pool have one; a private service starts its own again");
  else if (at.ready == 0 && at.workers > 0)
    to->Add("NO_WORKERS", "error", {},
            fmt::format("none of {} is ready: consumers keep asking those that "
                        "they know",
                        Counted(at.workers, "worker")),
            "undrain a worker (leat undrain NAME), or start another one");
  for (const Snapshot::LostWorker& worker : at.first_lost)
    to->Add("WORKER_LOST", "warn", {"worker/" + worker.name},
            fmt::format("worker {} sends no heartbeat; {}", worker.name,
                        at.ready > 0 ? "its shards are with others"
                                     : "no other worker can take its shards"),
            fmt::format("look at its log on host {}; start it again, unless "
                        "systemd, Kubernetes, a pool or a private service does",
                        worker.host));
  if (at.lost > kMaxAlike)
    to->Add("WORKER_LOST", "warn", {},
            More(at.lost - kMaxAlike, "is lost", "are lost"),
            "list them: leat get workers");
  if (at.held)
    to->Add("WORKERS_SILENT", "warn", {},
            "many workers fell silent at once: they keep their shards while "
            "the coordinator waits for them",
            "look at the network between the coordinator and the workers, and "
            "at the load of the coordinator's machine");
}

void AddStorageFailures(const Snapshot& at, Writer* to) {
  const bool all = at.failing == at.ready;
  const char* const severity = all ? "error" : "warn";
  for (const Snapshot::FailingWorker& worker : at.first_failing)
    to->Add("WORKER_STORAGE", severity, {"worker/" + worker.name},
            fmt::format("worker {} on host {} cannot read {}: {}{}; {}",
                        worker.name, worker.host, worker.root, worker.error,
                        worker.failures == 1 ? ""
                                             : fmt::format(" (and {} more)",
                                                           worker.failures - 1),
                        all ? "all workers have such failures: of what none of "
                              "them can read the shards stay where they were"
                            : "it owns no shards of that meanwhile"),
            "mount the storage there, of a container into it, or fix its "
            "permissions; the worker comes back by itself");
  if (at.failing > kMaxAlike)
    to->Add(
        "WORKER_STORAGE", severity, {},
        More(at.failing - kMaxAlike, "has such failures", "have such failures"),
        "look at the storage that they share");
}

// Adds one finding per listed worker, and one with the number of the others,
// which `others` describes.
void AddAlike(const Snapshot::AlikeWorkers& workers, const char* code,
              const char* severity,
              const std::function<std::string(const std::string& who,
                                              const std::string& what)>& say,
              const char* one, const char* many, const char* remedy,
              Writer* to) {
  for (const Snapshot::AlikeWorkers::Worker& worker : workers.first)
    to->Add(code, severity, {"worker/" + worker.name},
            say(fmt::format("worker {} on host {}", worker.name, worker.host),
                worker.what),
            remedy);
  if (workers.more() > 0)
    to->Add(code, severity, {}, More(workers.more(), one, many), remedy);
}

void AddUnconfined(const Snapshot& at, Writer* to) {
  const char* const remedy =
      "start it without --no-seccomp, on a kernel and in a container that let "
      "a process confine itself";
  const auto say = [](const std::string& who, const std::string& why) {
    return fmt::format(
        "no filter of system calls holds {}, so code from a "
        "hole of a decoder could start programs there: {}",
        who, why);
  };
  if (!at.not_confined.empty())
    to->Add("NOT_CONFINED", "warn", {}, say("the coordinator", at.not_confined),
            remedy);
  AddAlike(at.unconfined, "NOT_CONFINED", "warn", say,
           "is held by no filter of system calls",
           "are held by no filter of system calls", remedy, to);
}

// Adds findings for callers of workers: which workers accept every caller, and
// whose certificates expire.
void AddOpenWorkers(const Snapshot& at, Writer* to) {
  AddAlike(
      at.insecure, "INSECURE_LISTENER", "warn",
      [](const std::string& who, const std::string& address) {
        return fmt::format(
            "{} takes unencrypted connections, or unknown "
            "callers, from the network at {}",
            who, address);
      },
      "takes unencrypted connections, or unknown callers, from the network",
      "take unencrypted connections, or unknown callers, from the network",
      kInsecureRemedy, to);
  const auto say = [](const std::string& who, const std::string& what) {
    return fmt::format("the certificate of {} {}", who, what);
  };
  AddAlike(at.expiring_soon, "CERTIFICATE_EXPIRES", "error", say,
           "has a certificate that expires soon, or has expired",
           "have certificates that expire soon, or have expired",
           kCertificateRemedy, to);
  AddAlike(at.expiring, "CERTIFICATE_EXPIRES", "warn", say,
           "has a certificate in the last quarter of its time",
           "have certificates in the last quarter of their time",
           kCertificateRemedy, to);
  const auto unused = [](const std::string& who, const std::string& why) {
    return fmt::format(
        "{} does not use its changed certificates or access token, and goes on "
        "with the ones before: {}",
        who, why);
  };
  if (!at.own_not_reloaded.empty())
    to->Add("NOT_RELOADED", "warn", {},
            unused("the coordinator", at.own_not_reloaded), kReloadRemedy);
  AddAlike(at.not_reloaded, "NOT_RELOADED", "warn", unused,
           "does not use its changed certificates or access token",
           "do not use their changed certificates or access tokens",
           kReloadRemedy, to);
}

void AddDecoders(const Snapshot& at, Writer* to) {
  for (const auto& [decoder_class, jobs] : at.without_decoder) {
    const bool one = jobs.total == 1;
    to->Add("NO_DECODER", "error", JobSubjects(jobs),
            fmt::format("job{} {}{} want{} decoder class {}, which none of {} "
                        "ready worker{} has",
                        one ? "" : "s", fmt::join(jobs.first, ", "),
                        jobs.total > jobs.first.size() ? " and others" : "",
                        one ? "s" : "", Name(decoder_class), at.ready,
                        at.ready == 1 ? "" : "s"),
            NeedsDevices(decoder_class)
                ? "start a leat-worker on a machine with an NVIDIA GPU and "
                  "nvJPEG (leat describe worker NAME says what one has), or "
                  "create the job anew with class exact; a private service "
                  "uses the GPUs of leat.connect(devices=)"
                : "start a worker that has it");
  }
}

void AddUnable(const Snapshot& at, Writer* to) {
  for (const Snapshot::Unable& each : at.unable) {
    const Snapshot::Jobs& jobs = each.jobs;
    const bool one = jobs.total == 1;
    const std::string none =
        each.only_unlike
            ? "no ready worker has that decodes as they began"
            : fmt::format("none of {} has", Counted(at.ready, "ready worker"));
    to->Add("NO_ABILITY", "error", JobSubjects(jobs),
            fmt::format("job{} {}{} need{} {}, which {}{}", one ? "" : "s",
                        fmt::join(jobs.first, ", "),
                        jobs.total > jobs.first.size() ? " and others" : "",
                        one ? "s" : "", each.needed, none,
                        each.why.empty() ? "" : fmt::format(" ({})", each.why)),
            each.remedy);
  }
}

void AddUnlikeDecoders(const Snapshot& at, Writer* to) {
  for (const auto& worker : at.first_unlike)
    to->Add("WORKER_DECODERS", "warn", {"worker/" + worker->name},
            fmt::format("worker {} on host {} would make other bytes of some "
                        "jobs: {}; it owns none of their shards",
                        worker->name, worker->host,
                        DecodersDiffer(*worker, at.decoder_groups)),
            "install the same libraries and the same leat-worker on all hosts; "
            "new jobs begin with what most threads have");
  if (at.unlike > at.first_unlike.size())
    to->Add("WORKER_DECODERS", "warn", {},
            More(at.unlike - at.first_unlike.size(), "decodes unlike some jobs",
                 "decode unlike some jobs"),
            "list them: leat get workers");
  for (const auto& [key, undecoded] : at.undecoded) {
    const Snapshot::Jobs& jobs = undecoded.jobs;
    const bool one = jobs.total == 1;
    to->Add("NO_DECODER", "error", JobSubjects(jobs),
            fmt::format("job{} {}{} began with {} decoders {}, and no ready "
                        "worker decodes like that",
                        one ? "" : "s", fmt::join(jobs.first, ", "),
                        jobs.total > jobs.first.size() ? " and others" : "",
                        Name(undecoded.decoders.decoder_class),
                        Text(undecoded.decoders)),
            "start a worker with those libraries; or delete the job and create "
            "it anew, which changes its bytes");
  }
}

void AddJobs(const Snapshot& at, Writer* to) {
  for (const Snapshot::Unreached& each : at.unreached)
    to->Add(
        "WORKER_UNREACHED", "warn",
        {"worker/" + each.worker, "consumer/" + each.consumer,
         "job/" + each.job},
        fmt::format("worker {} cannot be reached by consumer {} of job {} "
                    "on host {}: {}",
                    each.worker, each.consumer, each.job, each.host, each.why),
        fmt::format("leat doctor on {} tries the same; the address is the "
                    "worker's --advertise",
                    each.host));
  for (const Snapshot::Stalled& consumer : at.stalled)
    to->Add(
        "CONSUMER_STALLED", "warn",
        {"consumer/" + consumer.consumer, "job/" + consumer.job},
        fmt::format("consumer {} of job {} waits {:.0f} % of its time for "
                    "batches",
                    consumer.consumer, consumer.job, 100 * consumer.fraction),
        fmt::format("ask what limits it: leat bottleneck {}", consumer.job));
  for (const Snapshot::BadJob& bad : at.bad_jobs)
    if (!bad.verdict.ok())
      to->Add("JOB_GIVEN_UP", "error", {"job/" + bad.job},
              std::string(Message(bad.verdict)),
              "repair or remove the files, or delete the job and create it "
              "with another max_bad: leat describe job " +
                  LastWord(bad.job));
    else
      to->Add("BAD_SAMPLES", "warn", {"job/" + bad.job},
              fmt::format("job {} met bad samples {}; the first: {}", bad.job,
                          Counted(bad.met, "time"), bad.first_reason),
              fmt::format("list them: leat describe job {}; repair or remove "
                          "the files, or set on_bad_sample",
                          LastWord(bad.job)));
  for (const Snapshot::FailedListing& failed : at.failed_listings)
    to->Add("INDEX_FAILED", "warn", {"dataset/" + failed.dataset},
            fmt::format("{} could not be listed: {}", failed.reader,
                        failed.message),
            fmt::format("correct the path and create the job again; or forget "
                        "it: leat delete dataset {}",
                        LastWord(failed.dataset)));
  for (const Snapshot::FailedListing& waiting : at.waiting_listings)
    to->Add("INDEX_WAITS", "warn",
            {"dataset/" + waiting.dataset, "worker/" + waiting.worker},
            fmt::format("worker {} waits for its storage to list {}: {}",
                        waiting.worker, waiting.reader, waiting.message),
            "look whether the address is right, and whether the worker reaches "
            "it");
  for (const Snapshot::DamagedIndex& damaged : at.damaged)
    to->Add("INDEX_DAMAGED", "error", {"dataset/" + damaged.dataset},
            fmt::format("the index of dataset {}, which jobs need: {}{}{}",
                        damaged.dataset, damaged.what,
                        damaged.mending.empty() ? "" : "; ", damaged.mending),
            "look at the disk and the permissions of the state directory, and "
            "at the worker's log; rows that need the block wait for it, until "
            "their row_timeout");
  for (const Snapshot::ChangedDataset& changed : at.changed)
    to->Add("DATASET_CHANGED", "warn",
            {"job/" + changed.job, "dataset/" + changed.dataset},
            fmt::format("dataset {} has changed since job {}, which is read, "
                        "listed it: {}",
                        changed.dataset, changed.job, changed.changes),
            "the job goes on with its listing, and fails at a file that was "
            "written anew; to read what is there now make a new job, or the "
            "same by service.job(..., replace=True)");
}

void AddSetAside(const Snapshot& at, Writer* to) {
  for (const SetAside& aside : at.first_set_aside)
    to->Add("STATE_SET_ASIDE", "warn",
            aside.job.empty() ? Subjects{} : Subjects{"job/" + aside.job},
            fmt::format("{} is stored, but this version cannot use it: {}",
                        aside.what, aside.why),
            aside.job.empty()
                ? "it is kept; run the version that wrote it"
                : fmt::format("it is kept; run the version that made it, or "
                              "delete it: leat delete job {}",
                              LastWord(aside.job)));
  if (at.set_aside > kMaxAlike)
    to->Add("STATE_SET_ASIDE", "warn", {},
            fmt::format("{} more stored events cannot be used",
                        at.set_aside - kMaxAlike),
            "they are kept; run the version that wrote them");
}

void AddStore(const Snapshot& at, Writer* to) {
  if (!at.insecure_listener.empty())
    to->Add("INSECURE_LISTENER", "warn", {},
            fmt::format("{} takes unencrypted connections, or unknown callers, "
                        "from the network",
                        at.insecure_listener),
            kInsecureRemedy);
  if (at.expiry)
    to->Add("CERTIFICATE_EXPIRES", at.expiry->soon ? "error" : "warn", {},
            fmt::format("the coordinator's certificate {}{}",
                        TextOfExpiry(at.expiry->left),
                        at.expiry->left > Duration::zero()
                            ? ""
                            : ": no client can connect"),
            kCertificateRemedy);
  const auto not_kept = [&at] {
    return fmt::format("the last change was not kept: {}",
                       Message(at.last_write));
  };
  if (absl::IsResourceExhausted(at.last_write))
    to->Add("STATE_FULL", "error", {}, not_kept(),
            "free space for the state directory; running jobs go on");
  else if (!at.last_write.ok())
    to->Add("STATE_FAILED", "error", {}, not_kept(),
            "repair the disk of the state directory; the coordinator ends, and "
            "is to be started again");
  if (!at.losses.empty())
    to->Add("STATE_SALVAGED", "error", {}, at.losses,
            "make access tokens anew: leat access create; look at leat get "
            "jobs, and drain workers again; the finding goes with the next "
            "start");
  AddSetAside(at, to);
  if (at.regressed)
    to->Add("STATE_REGRESSED", "error", {"worker/" + at.regressed->worker},
            fmt::format("worker {} has seen event {}, but the state ends at {}",
                        at.regressed->worker, at.regressed->seen,
                        at.regressed->sequence),
            "the state directory is an older copy or another one: restore the "
            "right one, or restart the workers to go on with this");
}

}  // namespace

std::vector<Finding> FindingsOf(const Snapshot& snapshot) {
  Writer to;
  AddWorkers(snapshot, &to);
  AddStorageFailures(snapshot, &to);
  AddUnconfined(snapshot, &to);
  AddOpenWorkers(snapshot, &to);
  AddDecoders(snapshot, &to);
  AddUnlikeDecoders(snapshot, &to);
  AddUnable(snapshot, &to);
  AddJobs(snapshot, &to);
  AddStore(snapshot, &to);
  return to.Take();
}

absl::Status CheckFindingCode(std::string_view code) {
  if (std::find(kFindingCodes.begin(), kFindingCodes.end(), code) !=
      kFindingCodes.end())
    return absl::OkStatus();
  return InvalidArgument("no finding has the code \"{}\": want one of {}",
                         code.substr(0, 64), fmt::join(kFindingCodes, ", "));
}

}  // namespace leat::server
