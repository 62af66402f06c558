// SPDX-License-Identifier: Apache-2.0
//
// disk_forms_bench PHOTOS DIRECTORY [EPOCHS]: the cost of a row of
// random_resized_crop on one thread, by epoch, without any cache and with a
// disk cache in DIRECTORY, which is created and must be empty, for records and
// decoded forms. PHOTOS: a folder of folders of JPEG files.
#include <sys/resource.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/log.h"
#include "core/status.h"
#include "fmt/core.h"
#include "tests/worker/job/fake_job.h"
#include "worker/cache/disk_forms.h"
#include "worker/compute/row_kernel.h"

namespace leat::worker {
namespace {

constexpr FormKinds kAllForms = {.seek_index = true, .coefficients = true};

template <class T>
T OrExit(absl::StatusOr<T> result) {
  if (result.ok()) return *std::move(result);
  fmt::print(stderr, "disk_forms_bench: {}\n", Message(result.status()));
  std::exit(1);
}

FakeJob JobOf(const std::string& photos) {
  FakeJob job;
  JobSpec& spec = job.info.spec;
  spec.name = "job";
  spec.batch = 2;
  spec.order = Order::kSequential;
  spec.pipeline.nodes = {
      {.op = "readers.image_folder", .args = {{"path", photos}}},
      {.op = "decode", .inputs = {{0, 0}}},
      {.op = "random_resized_crop",
       .inputs = {{1, 0}},
       .args = {{"size", std::vector<int64_t>{224, 224}}}}};
  spec.pipeline.outputs = {{"image", {2, 0}}, {"label", {0, 1}}};
  return OrExit(FinishFakeJob(std::move(job)));
}

double ThreadSeconds() {
  rusage usage;
  getrusage(RUSAGE_THREAD, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) +
           static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Memory keeps nothing: everything found comes from the disk.
class Measuring {
 public:
  explicit Measuring(const std::string& photos) : job_(JobOf(photos)) {}

  // `disk`: nullptr: nothing is kept.
  void Epochs(const char* what, uint64_t epochs, DiskForms* disk) {
    SampleCache memory(0, &uses_, Clock::Real(), kAllForms);
    const RuntimeContext context = {.kernels = ImageKernels({}),
                                    .cache = &memory,
                                    .bad_samples = &bad_,
                                    .ownership = &ownership_,
                                    .disk = disk};
    const auto job = OrExit(JobRuntime::Create(
        job_.info,
        {OrExit(OpenSource(job_.info.spec.pipeline.nodes[0], job_.blob, {}))},
        &context));
    const auto use = job->BeginUse();
    const auto state = context.kernels.make_thread_state();
    std::vector<std::vector<std::byte>> outputs;
    for (const size_t bytes : job->field_bytes()) outputs.emplace_back(bytes);
    const std::vector<std::span<std::byte>> spans(outputs.begin(),
                                                  outputs.end());
    const uint64_t samples = job->plan().num_samples();
    for (uint64_t epoch = 0; epoch < epochs; ++epoch) {
      const double began = ThreadSeconds();
      for (uint64_t sample = 0; sample < samples; ++sample)
        if (const absl::Status status = job->Compute(
                {.epoch = epoch, .sample = sample}, state.get(), spans);
            !status.ok()) {
          fmt::print(stderr, "disk_forms_bench: {}\n", Message(status));
          std::exit(1);
        }
      const double spent = ThreadSeconds() - began;
      fmt::print("{} epoch={} rows={} thread_ms_per_row={:.4f}\n", what, epoch,
                 samples, spent * 1e3 / static_cast<double>(samples));
      if (disk != nullptr)
        disk->WaitIdle(Clock::Real().Now() + std::chrono::minutes(1));
    }
    for (const CachedDatasetStats& dataset : memory.stats().datasets)
      for (const CachedFormStats& form : dataset.forms)
        fmt::print("{} decodes by {}: {}\n", what, form.form, form.hits);
  }

  const DatasetUses& uses() const { return uses_; }

 private:
  const FakeJob job_;
  DatasetUses uses_{Clock::Real()};
  BadSamples bad_;
  Ownership ownership_;
};

int Main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: disk_forms_bench PHOTOS DIRECTORY [EPOCHS]\n");
    return 2;
  }
  const uint64_t epochs = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 4;
  Measuring measuring(argv[1]);
  for (const bool again : {false, true}) {
    measuring.Epochs("plain", 2, nullptr);
    const std::shared_ptr<DiskCache> cache =
        OrExit(DiskCache::Open({.directory = argv[2],
                                .max_bytes = uint64_t{16} << 30,
                                .uses = &measuring.uses()}));
    const auto disk =
        OrExit(DiskForms::Start(cache, {.kinds = kAllForms,
                                        .codec = JpegFormCodec(),
                                        .of = DiskCacheOf::kAll}));
    measuring.Epochs(again ? "restarted" : "disk", epochs, disk.get());
    for (const CachedDatasetStats& dataset : cache->stats().datasets) {
      if (dataset.bytes == 0) continue;
      fmt::print("on disk: {} bytes, {} records\n", dataset.bytes,
                 dataset.entries);
      for (const CachedFormStats& form : dataset.forms)
        fmt::print("on disk: {}: {} bytes, {} entries, {} reads\n", form.form,
                   form.bytes, form.entries, form.hits);
    }
  }
  return 0;
}

}  // namespace
}  // namespace leat::worker

int main(int argc, char** argv) {
  if (!leat::SetLogLevel("error").ok()) return 1;
  return leat::worker::Main(argc, argv);
}
