// SPDX-License-Identifier: Apache-2.0
//
// The worker's pipeline without the network: rates by the number of slots, the
// cores that its threads take, and the device's memory over time.
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
#include "core/status.h"
#include "tests/gpu/gpu_bench.h"
#include "tests/worker/gpu/graphs.h"
#include "tests/worker/gpu/support.h"
#include "worker/job/job_runtime.h"
#include "worker/scheduler/scheduler.h"

namespace leat::gpu_check {
namespace {

// Counts rows, and keeps a few asks in flight.
class CountingSink final : public worker::GroupSink {
 public:
  void OnGroup(worker::FinishedGroup group) override {
    if (!group.status.ok()) ++failed;
    rows += group.rows.size();
    rows.notify_all();
  }
  std::atomic<size_t> rows{0}, failed{0};
};

// Files to rows in pinned memory, as the worker does it, but for the network.
// For about `seconds`.
absl::StatusOr<double> Pipeline(const Setup& setup, worker::GpuWorker& gpus,
                                DecoderClass decoder_class, double seconds) {
  JobInfo job;
  job.spec.name = "rate";
  job.spec.batch = 256;
  job.spec.last_batch = LastBatch::kFill;
  job.spec.decoder_class = decoder_class;
  job.spec.on_bad_sample = BadSamplePolicy::kReplace;
  job.spec.pipeline = worker::CropGraph(224, setup.folder);
  ASSIGN_OR_RETURN(const CheckedGraph graph, CheckSpec(job.spec));
  job.spec.pipeline = graph.graph;
  const Node& reader = graph.graph.nodes[graph.reader];
  ASSIGN_OR_RETURN(const worker::BuiltIndex index,
                   worker::BuildIndex(reader, {}));
  ASSIGN_OR_RETURN(std::shared_ptr<const worker::Source> source,
                   worker::OpenSource(reader, index.blob, {}));
  job.schema = graph.schema;
  job.dataset = {.id = "rate",
                 .name = index.name,
                 .reader = CanonicalText(reader),
                 .fingerprint = index.fingerprint,
                 .shards = index.shards,
                 .bytes = index.bytes,
                 .classes = index.classes};
  job.plan_hash = PlanHash(job.spec, job.dataset);
  worker::SampleCache cache(uint64_t{8} << 30);
  worker::BadSamples bad;
  worker::Ownership ownership;
  const worker::RuntimeContext context{.kernels = gpus.kernels(),
                                       .cache = &cache,
                                       .bad_samples = &bad,
                                       .ownership = &ownership};
  ASSIGN_OR_RETURN(const auto runtime, worker::JobRuntime::Create(
                                           std::move(job), source, &context));
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
  const auto ask = [&](uint64_t step) {
    worker::RowAsk rows{.ask_id = step + 1, .step = step};
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
  for (; step < warm; ++step) RETURN_IF_ERROR(ask(step));
  finished(asked);
  const MonotonicTime start = Clock::Real().Now();
  const size_t before = asked;
  for (; SecondsSince(start) < seconds; ++step) {
    RETURN_IF_ERROR(ask(step));
    if (asked > before + in_flight) finished(asked - in_flight);
  }
  finished(asked);
  const double rate = static_cast<double>(asked - before) / SecondsSince(start);
  if (sink->failed > 0)
    return Internal("{} groups failed", sink->failed.load());
  return rate;
}

// Seconds that the threads of this process have had a core, by name; the
// numbers of decode and read threads are left out.
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
    // Behind the name in parentheses: the 12th and 13th are user and system
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

// The device's free bytes, of a context that is there anyhow.
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
                     DecoderClass decoder_class, Report* report) {
  const std::string name =
      decoder_class == DecoderClass::kExact ? "exact" : "nvjpeg";
  const Case of = {{"class", name}, {"slots", fmt::format("{}", slots)}};
  const auto before = CoreSeconds();
  const double process = ProcessSeconds();
  const MonotonicTime start = Clock::Real().Now();
  const auto rate = Pipeline(setup, gpus, decoder_class, setup.Seconds(4));
  const double seconds = SecondsSince(start);
  if (!rate.ok())
    return report->Check(fmt::format("class {}, {} slots", name, slots), false,
                         Message(rate.status()));
  report->Figure("files to rows", *rate, "img/s", of,
                 fmt::format("{} decode threads", setup.threads));
  report->Figure("cores used", (ProcessSeconds() - process) / seconds, "cores",
                 of);
  // The scheduler's threads have ended; those of the GPU are still there.
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

}  // namespace

void MeasureSlots(const Setup& setup, Report* report) {
  const FreeMemory memory(setup.device);
  for (const int slots : {1, 2, 4}) {
    const double before = memory.Bytes();
    const auto gpus = OpenWorker(setup, slots);
    if (!gpus.ok()) {
      report->Check(fmt::format("{} slots", slots), false,
                    Message(gpus.status()));
      continue;
    }
    const double opened = memory.Bytes();
    MeasurePipeline(setup, **gpus, slots, DecoderClass::kExact, report);
    if (HasNvjpeg(**gpus))
      MeasurePipeline(setup, **gpus, slots, DecoderClass::kNvjpeg, report);
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
