// SPDX-License-Identifier: Apache-2.0
#include "worker/index_command/index_command.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/time/time.h"
#include "core/clock.h"
#include "core/mutex.h"
#include "core/packing/packing.h"
#include "core/redaction.h"
#include "core/status.h"
#include "core/thread.h"
#include "nlohmann/json.hpp"
#include "worker/index_command/dataset_report.h"
#include "worker/index_command/packing_report.h"
#include "worker/source/storage/storage.h"

namespace leat::worker {
namespace {

// The memory that one process keeps for a listing: an index that is read whole,
// and the names of files.
constexpr uint64_t kMaxIndexBytes = 1ull << 30;
constexpr uint64_t kMaxFiles = 100'000'000;
constexpr int kMaxRowLengths = 8;
constexpr Duration kProgressEvery = std::chrono::seconds(1);

struct Flags {
  ReportOptions report;
  std::string pipeline, source;
  std::vector<std::string> args;
  int64_t within_ms = 300'000;
  bool progress = false;
  StorageConfig storage;
};

void AddFlags(CLI::App* app, Flags* flags) {
  CLI::Option* uri =
      app->add_option("URI", flags->report.uri, "path or URI of the dataset");
  CLI::Option* pipeline = app->add_option(
      "--pipeline", flags->pipeline,
      "file with the JSON of a pipeline or job: the rows that it packs");
  app->add_option("--source", flags->source, "source of a mixture")
      ->needs(pipeline);
  uri->excludes(pipeline);
  app->add_option("--format", flags->report.known.format,
                  "a reader's name; the default follows from names");
  app->add_option("--arg", flags->args,
                  "NAME=VALUE: an argument of the reader; of a list several");
  app->add_option("--read", flags->report.read_records,
                  "records that are read, spread evenly")
      ->check(CLI::Range(uint64_t{0}, uint64_t{1} << 40));
  app->add_option("--row-length", flags->report.rows,
                  "elements of a row that documents are packed into, to say "
                  "how full rows are; may be given several times")
      ->check(CLI::Range(uint64_t{1}, kMaxPackedLength))
      ->expected(0, kMaxRowLengths)
      ->allow_extra_args(false);
  app->add_flag("--seek", flags->report.seek,
                "writes the seek indexes of all JPEG files beside the dataset");
  app->add_flag("--look", flags->report.look,
                "a quick look: a few of many files, and what is not done in "
                "time is left out");
  app->add_option("--within-ms", flags->within_ms, "gives up after so long")
      ->check(CLI::Range(1, 86'400'000));
  app->add_option("--storage-connections", flags->storage.connections,
                  "requests to remote storage at a time")
      ->check(CLI::Range(1, 10'000));
  app->add_flag("--progress", flags->progress,
                "a line about what was done on standard error, each second");
}

// Ends the listing when its time is over, and reports its progress meanwhile.
class Overseer {
 public:
  Overseer(const Flags& flags, Storage* storage)
      : flags_(flags),
        storage_(storage),
        deadline_(Clock::Real().Now() +
                  std::chrono::milliseconds(flags.within_ms)) {}
  ~Overseer() {
    {
      MutexLock lock(&mu_);
      done_ = true;
      changed_.NotifyAll();
    }
    if (thread_.joinable()) thread_.join();
  }
  absl::Status Start() {
    return StartThread(
        "overseer", [this] { Run(); }, &thread_);
  }
  const std::atomic<bool>* cancelled() const { return &cancelled_; }
  ReportProgress* progress() { return &progress_; }
  bool out_of_time() const { return cancelled_; }

 private:
  void Run() {
    const MonotonicTime start = Clock::Real().Now();
    MonotonicTime next = start + kProgressEvery;
    while (Waited(cancelled_ ? next : std::min(next, deadline_))) {
      const MonotonicTime now = Clock::Real().Now();
      if (now >= deadline_ && !cancelled_.exchange(true)) storage_->Stop();
      if (now < next) continue;
      next = now + kProgressEvery;
      if (flags_.progress) Say(now - start);
    }
  }
  // Returns false if there is nothing to oversee any more.
  bool Waited(MonotonicTime until) {
    MutexLock lock(&mu_);
    if (!done_) changed_.WaitUntil(&mu_, until);
    return !done_;
  }
  void Say(Duration elapsed) const {
    fmt::print(
        stderr,
        "{} s: {} records ({} MiB of index), {} requests to storage, {} "
        "records read\n",
        std::chrono::duration_cast<std::chrono::seconds>(elapsed).count(),
        progress_.index_records.load(), progress_.index_bytes.load() >> 20,
        storage_->counters().requests, progress_.records_read.load());
  }

  const Flags& flags_;
  Storage* const storage_;
  const MonotonicTime deadline_;
  ReportProgress progress_;
  std::atomic<bool> cancelled_{false};
  Mutex mu_;
  CondVar changed_;
  bool done_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

absl::StatusOr<std::string> PackingOf(const Flags& flags,
                                      ReportProgress* progress) {
  std::ifstream file(flags.pipeline, std::ios::binary);
  std::string json(kMaxPipelineFileBytes + 1, '\0');
  file.read(json.data(), static_cast<std::streamsize>(json.size()));
  json.resize(static_cast<size_t>(file.gcount()));
  if (file.bad() || json.empty())
    return NotFound("{}: cannot be read", flags.pipeline);
  if (json.size() > kMaxPipelineFileBytes)
    return InvalidArgument("{}: want at most {} bytes", flags.pipeline,
                           kMaxPipelineFileBytes);
  const absl::StatusOr<JobSpec> job = ReadPipeline(json, flags.source);
  if (!job.ok()) return Annotate(job.status(), flags.pipeline);
  return ReportPacking(*job, flags.report.limits, progress);
}

absl::StatusOr<std::string> Report(Flags* flags) {
  for (const std::string& text : flags->args) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      return InvalidArgument("--arg \"{}\": want NAME=VALUE", text);
    flags->report.known.args[text.substr(0, equals)].push_back(
        text.substr(equals + 1));
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<Storage> storage,
                   Storage::Create(flags->storage));
  Overseer overseer(*flags, storage.get());
  RETURN_IF_ERROR(overseer.Start());
  SourceLimits& limits = flags->report.limits;
  limits.storage = storage.get();
  limits.cancelled = overseer.cancelled();
  limits.max_index_bytes = kMaxIndexBytes;
  limits.max_files = kMaxFiles;
  absl::StatusOr<std::string> report =
      flags->pipeline.empty()
          ? ReportDataset(flags->report, overseer.progress())
          : PackingOf(*flags, overseer.progress());
  if (!report.ok() && overseer.out_of_time())
    return DeadlineExceeded(
        "{}: not done within {}, which --within extends; {} records were "
        "found, and {} were read",
        flags->pipeline.empty() ? RedactedUri(flags->report.uri)
                                : flags->pipeline,
        absl::FormatDuration(absl::Milliseconds(flags->within_ms)),
        overseer.progress()->index_records.load(),
        overseer.progress()->records_read.load());
  return report;
}

// Returns false if standard output takes no more, which is reported on stderr.
bool Print(const std::string& line) {
  if (std::fwrite(line.data(), 1, line.size(), stdout) == line.size() &&
      std::fputc('\n', stdout) != EOF && std::fflush(stdout) == 0)
    return true;
  const std::string why = std::generic_category().message(errno);
  fmt::print(stderr, "leat-worker: standard output takes no more: {}\n", why);
  return false;
}

}  // namespace

int RunIndexCommand(int argc, char** argv) {
  Flags flags;
  CLI::App app("Lists a dataset, and says what it holds, as JSON.",
               "leat-worker index");
  AddFlags(&app, &flags);
  try {
    app.parse(argc, argv);
    if (flags.report.uri.empty() && flags.pipeline.empty())
      throw CLI::RequiredError("URI or --pipeline");
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const absl::StatusOr<std::string> report = Report(&flags);
  if (report.ok()) return Print(*report) ? 0 : 1;
  const nlohmann::json failed = {
      {"error",
       {{"code", static_cast<int>(report.status().code())},
        {"message", std::string(Message(report.status()))}}}};
  Print(failed.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  return 1;
}

}  // namespace leat::worker
