// SPDX-License-Identifier: Apache-2.0
//
// The worker's pipeline without the network: rates by the number of slots, the
// cores that its threads take, the overlap of its groups, and the device's
// memory over time.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <utility>

#include "core/clock.h"
#include "core/plan/checked_job.h"
#include "core/status.h"
#include "tests/gpu/gpu_bench.h"
#include "tests/worker/gpu/graphs.h"
#include "tests/worker/gpu/support.h"
#include "worker/job/job_runtime.h"
#include "worker/scheduler/scheduler.h"

namespace leat::gpu_check {
namespace {

// Counts rows, and keeps a few requests in flight.
class CountingSink final : public worker::GroupSink {
 public:
  void OnGroup(worker::FinishedGroup group) override {
    if (rows == 0) first = SecondsSince(opened);
    if (!group.status.ok()) ++failed;
    rows += group.rows.size();
    rows.notify_all();
  }
  const MonotonicTime opened = Clock::Real().Now();
  std::atomic<double> first{0};  // seconds to the first group
  std::atomic<size_t> rows{0}, failed{0};
};

// The measured case.
struct Kind {
  const char* name;
  DecoderClass decoder_class;
  bool keeps_indexes = false;  // seek indexes of the files, from the first pass
};
constexpr Kind kKinds[] = {{"exact", DecoderClass::kExact},
                           {"nvjpeg", DecoderClass::kNvjpeg},
                           {"exact, indexes kept", DecoderClass::kExact, true}};

struct Measured {
  double first_seconds = 0;
  size_t rows = 0;  // after the warm-up
  double seconds = 0;
  worker::GpuStats gpu, gpu_before;
  double rate() const { return static_cast<double>(rows) / seconds; }
};

// A job over the photos, and their source.
struct RateJob {
  JobInfo info;
  std::shared_ptr<const worker::Source> source;
};

absl::StatusOr<RateJob> MakeRateJob(const Setup& setup, const Kind& kind) {
  RateJob job;
  JobInfo& info = job.info;
  info.spec.name = "rate";
  info.spec.batch = 256;
  info.spec.last_batch = LastBatch::kFill;
  info.spec.decoder_class = kind.decoder_class;
  info.spec.on_bad_sample = BadSamplePolicy::kReplace;
  info.spec.pipeline = worker::CropGraph(224, setup.folder);
  ASSIGN_OR_RETURN(const CheckedJob checked, CheckJob(info.spec));
  const CheckedGraph& graph = checked.sources[0];
  info.datasets.resize(1);
  info.spec.pipeline = graph.graph;
  const Node& reader = graph.graph.nodes[graph.reader];
  ASSIGN_OR_RETURN(const worker::BuiltIndex index,
                   worker::BuildIndex(reader, {}));
  ASSIGN_OR_RETURN(job.source, worker::OpenSource(reader, index.blob, {}));
  info.schema = graph.schema;
  info.datasets[0] = {.id = "rate",
                      .name = index.name,
                      .reader = CanonicalText(reader),
                      .fingerprint = index.fingerprint,
                      .shards = index.shards,
                      .bytes = index.bytes,
                      .classes = index.classes};
  info.plan_hash = PlanHash(info.spec, info.datasets);
  return job;
}

// Computes files to rows in pinned memory, as the worker does it, without the
// network, for about `seconds`.
absl::StatusOr<Measured> Pipeline(const Setup& setup, worker::GpuWorker& gpus,
                                  const Kind& kind, double seconds) {
  ASSIGN_OR_RETURN(RateJob job, MakeRateJob(setup, kind));
  worker::SampleCache cache(uint64_t{8} << 30, nullptr, Clock::Real(),
                            {.seek_index = kind.keeps_indexes});
  worker::BadSamples bad;
  worker::Ownership ownership;
  const worker::RuntimeContext context{.kernels = gpus.kernels(),
                                       .cache = &cache,
                                       .bad_samples = &bad,
                                       .ownership = &ownership};
  ASSIGN_OR_RETURN(
      const auto runtime,
      worker::JobRuntime::Create(std::move(job.info), {job.source}, &context));
  worker::BufferPool pool(uint64_t{1} << 30, setup.wake, gpus.buffer_memory());
  worker::Scheduler scheduler(
      {.threads = setup.threads,
       .group_bytes = setup.config.group_bytes,
       .max_rows_per_group = worker::kMaxGpuGroupRows,
       .rows_at_once = worker::JpegsAtOnce(gpus.devices()),
       .make_thread_state = context.kernels.make_thread_state},
      &pool, setup.wake, Clock::Real());
  const auto sink = std::make_shared<CountingSink>();
  ASSIGN_OR_RETURN(const auto stream, scheduler.OpenStream(runtime, sink));
  const uint64_t samples = runtime->plan().num_samples();
  size_t asked = 0;
  const auto request = [&](uint64_t step) {
    worker::RowRequest rows{.request_id = step + 1, .step = step};
    for (uint32_t row = 0; row < 256; ++row) {
      rows.rows.push_back(row);
      rows.samples.push_back((step * 256 + row) % samples);
    }
    asked += 256;
    return scheduler.Ask(stream, std::move(rows));
  };
  const auto finished = [&](size_t rows) {
    for (size_t seen = sink->rows; seen < rows; seen = sink->rows)
      sink->rows.wait(seen);
  };
  const uint64_t warm = samples / 256 + 1;
  const size_t in_flight = (setup.quick ? 1 : 16) * 256;
  uint64_t step = 0;
  // The first pass keeps the files.
  for (; step < warm; ++step) {
    RETURN_IF_ERROR(request(step));
    if (step % warm == 0) finished(asked);
  }
  finished(asked);
  Measured measured{.first_seconds = sink->first,
                    .gpu_before = gpus.stats()[0]};
  const MonotonicTime start = Clock::Real().Now();
  const size_t before = asked;
  for (; SecondsSince(start) < seconds; ++step) {
    RETURN_IF_ERROR(request(step));
    if (asked > before + in_flight) finished(asked - in_flight);
  }
  finished(asked);
  measured.seconds = SecondsSince(start);
  measured.rows = asked - before;
  measured.gpu = gpus.stats()[0];
  if (sink->failed > 0)
    return Internal("{} groups failed", sink->failed.load());
  return measured;
}

// Reports who decoded the rows, and the overlap of the GPU's groups.
void SayGroups(const Measured& found, const Case& of, Report* report) {
  const worker::GpuStats &after = found.gpu, &before = found.gpu_before;
  using worker::GpuStats;
  constexpr std::pair<const char*, uint64_t GpuStats::*> kRows[] = {
      {"rows_coefficients_total", &GpuStats::rows_coefficients_total},
      {"rows_codes_total", &GpuStats::rows_codes_total},
      {"rows_exact_total", &GpuStats::rows_exact_total},
      {"rows_hardware_total", &GpuStats::rows_hardware_total},
      {"rows_kernels_total", &GpuStats::rows_kernels_total},
      {"rows_host_total", &GpuStats::rows_host_total}};
  const auto labelled = [&](const char* name, const char* label) {
    Case with = of;
    with.emplace_back(name, label);
    return with;
  };
  const auto grown = [&](uint64_t GpuStats::*count) {
    return static_cast<double>(after.*count - before.*count);
  };
  for (const auto& [by, count] : kRows)
    report->Figure("rows by decoder", grown(count),
                   fmt::format("of {}", found.rows), labelled("by", by));
  const double busy = grown(&GpuStats::busy_ns_total);
  const double all = grown(&GpuStats::group_ns_total);
  const double groups = std::max(1.0, grown(&GpuStats::groups_total));
  report->Figure("time with a group on the GPU", busy / found.seconds / 1e7,
                 "%", of);
  report->Figure("groups on the GPU at once, while there are any",
                 busy > 0 ? all / busy : 0, "", of);
  report->Figure("a group, from its begin to its answer", all / groups / 1e6,
                 "ms", of);
  const double puts = grown(&GpuStats::enqueue_ns_total);
  report->Figure("putting a group on its queue", puts / groups / 1e3, "us", of);
  // In the rest of its time a slot has no group, or one whose rows the host
  // prepares.
  const double calls = grown(&GpuStats::decoder_ns_total);
  const double waits = grown(&GpuStats::waiting_ns_total);
  for (const auto& [what, ns] : {std::pair("calls of the decoder", calls),
                                 std::pair("other calls", puts - calls),
                                 std::pair("waits for the GPU", waits)})
    report->Figure("a slot's time", ns / found.seconds / after.slots / 1e7, "%",
                   labelled("what", what));
  report->Figure("copies of pageable memory",
                 grown(&GpuStats::pageable_copies_total), "", of,
                 fmt::format("in {} groups", groups));
  report->Figure("seconds to the first group", found.first_seconds, "s", of);
}

// Returns the seconds that the threads of this process have had a core, by
// name; the numbers of decode and read threads are left out.
std::map<std::string, double> CoreSeconds() {
  std::map<std::string, double> seconds;
  const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  std::error_code error;
  for (const auto& task :
       std::filesystem::directory_iterator("/proc/self/task", error)) {
    std::ifstream comm(task.path() / "comm"), stat(task.path() / "stat");
    std::string name, text;
    std::getline(comm, name);
    std::getline(stat, text);
    // After the name in parentheses: the 12th and 13th are user and system
    // time.
    std::istringstream fields(
        text.substr(std::min(text.size(), text.rfind(')') + 1)));
    std::vector<std::string> words(std::istream_iterator<std::string>(fields),
                                   {});
    if (words.size() < 13) continue;
    if (name.starts_with("decode-") || name.starts_with("read-"))
      name = name.substr(0, name.find('-'));
    seconds[name] += (std::stod(words[11]) + std::stod(words[12])) / ticks;
  }
  return seconds;
}

// The device's free bytes, through a context that exists anyway.
class FreeMemory {
 public:
  explicit FreeMemory(int device) : device_(device) {
    auto driver = cuda::LoadDriver(cuda::LibrarySearch::FromEnvironment());
    if (!driver.ok()) return;
    driver_ = *std::move(driver);
    driver_->Init(0);
    driver_->DevicePrimaryCtxRetain(&context_, device_);
    driver_->CtxSetCurrent(context_);
  }
  ~FreeMemory() {
    if (context_ != nullptr) driver_->DevicePrimaryCtxRelease(device_);
  }
  FreeMemory(const FreeMemory&) = delete;
  FreeMemory& operator=(const FreeMemory&) = delete;
  double Bytes() const {
    size_t free = 0, total = 0;
    driver_->CtxSetCurrent(context_);
    driver_->MemGetInfo(&free, &total);
    return static_cast<double>(free);
  }

 private:
  const int device_;
  std::shared_ptr<const cuda::Driver> driver_;
  cuda::Context context_ = nullptr;
};

double ProcessSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) +
           static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void MeasurePipeline(const Setup& setup, worker::GpuWorker& gpus, int slots,
                     const Kind& kind, Report* report) {
  const Case of = {{"class", kind.name}, {"slots", fmt::format("{}", slots)}};
  const auto before = CoreSeconds();
  const double process = ProcessSeconds();
  const MonotonicTime start = Clock::Real().Now();
  const auto found = Pipeline(setup, gpus, kind, setup.Seconds(4));
  const double seconds = SecondsSince(start);
  if (!found.ok())
    return report->Check(fmt::format("class {}, {} slots", kind.name, slots),
                         false, Message(found.status()));
  report->Figure("files to rows", found->rate(), "img/s", of,
                 fmt::format("{} decode threads", setup.threads));
  SayGroups(*found, of, report);
  report->Figure("cores used", (ProcessSeconds() - process) / seconds, "cores",
                 of);
  // The scheduler's threads have ended; those of the GPU still run.
  for (const auto& [thread, used] : CoreSeconds()) {
    if (!thread.starts_with("gpu-")) continue;
    const auto earlier = before.find(thread);
    Case thread_of = of;
    thread_of.emplace_back("thread", thread);
    report->Figure(
        "cores of a thread",
        (used - (earlier == before.end() ? 0 : earlier->second)) / seconds,
        "cores", thread_of);
  }
}

void MeasureSlotsOf(const Setup& setup, std::initializer_list<int> counts,
                    Report* report) {
  const FreeMemory memory(setup.device);
  for (const int slots : counts) {
    const double before = memory.Bytes();
    const MonotonicTime start = Clock::Real().Now();
    const auto gpus = OpenWorker(setup, slots);
    if (!gpus.ok()) {
      report->Check(fmt::format("{} slots", slots), false,
                    Message(gpus.status()));
      continue;
    }
    report->Figure("seconds until the GPU is open", SecondsSince(start), "s",
                   {{"slots", fmt::format("{}", slots)}});
    const double opened = memory.Bytes();
    for (const Kind& kind : kKinds) {
      const bool exact = kind.decoder_class == DecoderClass::kExact;
      if (setup.quick && slots != 4 && !exact) continue;
      if (exact || HasNvjpeg(**gpus))
        MeasurePipeline(setup, **gpus, slots, kind, report);
    }
    const auto say = [&](const char* what, double bytes) {
      report->Figure("device memory", bytes / kMiB, "MiB",
                     {{"slots", fmt::format("{}", slots)}, {"what", what}});
    };
    const worker::GpuStats stats = (*gpus)->stats()[0];
    say("said to be held", static_cast<double>(stats.memory_bytes));
    say("taken at start", before - opened);
    say("taken after the measurement", before - memory.Bytes());
    report->Check(
        fmt::format("{} slots: no group failed", slots),
        stats.groups_failed_total == 0,
        fmt::format("{} of {}", stats.groups_failed_total, stats.groups_total));
  }
}

// The setting that only a device can decide: a handle of nvJPEG for all slots.
void MeasureOneHandle(const Setup& setup, Report* report) {
  constexpr const char* kWhat = "files to rows, one handle of nvJPEG";
  Setup one = setup;
  one.config.decoders_share = true;
  const auto gpus = OpenWorker(one, 4);
  if (!gpus.ok()) return report->Check(kWhat, false, Message(gpus.status()));
  if (!HasNvjpeg(**gpus)) return;
  const auto found = Pipeline(one, **gpus, kKinds[1], setup.Seconds(4));
  if (!found.ok()) return report->Check(kWhat, false, Message(found.status()));
  report->Figure(kWhat, found->rate(), "img/s", {{"slots", "4"}});
}

}  // namespace

void MeasureSlots(const Setup& setup, Report* report) {
  MeasureSlotsOf(setup, {4}, report);
  MeasureOneHandle(setup, report);
}

void MeasureFewSlots(const Setup& setup, Report* report) {
  // A quick run has covered the rest with 4 slots.
  setup.quick ? MeasureSlotsOf(setup, {1}, report)
              : MeasureSlotsOf(setup, {1, 2}, report);
}

void CheckMemory(const Setup& setup, Report* report) {
  constexpr int kSamples = 10;
  constexpr double kMemorySeconds = 25;
  const auto gpus = OpenWorker(setup, setup.config.slots);
  if (!gpus.ok())
    return report->Check("device memory", false, Message(gpus.status()));
  worker::GpuPipeline pipeline(
      worker::CropGraph(64), **gpus,
      HasNvjpeg(**gpus) ? DecoderClass::kNvjpeg : DecoderClass::kExact);
  const std::vector<std::string> group(
      setup.files.begin(),
      setup.files.begin() +
          static_cast<ptrdiff_t>(std::min<size_t>(8, setup.files.size())));
  const int groups = setup.quick ? 200 : 10'000;
  const FreeMemory memory(setup.device);
  for (int i = 0; i < groups / 10; ++i) pipeline.Run(group);
  const double before = memory.Bytes();
  const MonotonicTime start = Clock::Real().Now();
  int done = 0;
  for (int sample = 1;
       sample <= kSamples && SecondsSince(start) < kMemorySeconds; ++sample) {
    for (; done < groups * sample / kSamples; ++done) pipeline.Run(group);
    report->Figure("device memory over time", (before - memory.Bytes()) / kMiB,
                   "MiB", {{"groups", fmt::format("{}", done)}});
  }
  const double grown = before - memory.Bytes();
  report->Check(fmt::format("device memory is flat over {} groups", done),
                grown <= 0, fmt::format("{} bytes more", grown));
}

}  // namespace leat::gpu_check
