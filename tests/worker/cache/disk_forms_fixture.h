// SPDX-License-Identifier: Apache-2.0
//
// DiskFormsTest: a folder of images, a job over it, and a disk cache that can
// be opened again.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/status.h"
#include "gtest/gtest.h"
#include "tests/worker/job/fake_job.h"
#include "worker/cache/disk_forms.h"
#include "worker/cache/idle_work.h"
#include "worker/compute/row_kernel.h"

namespace leat::worker {

inline constexpr FormKinds kBothForms = {.seek_index = true,
                                         .coefficients = true};
inline constexpr uint64_t kDiskForms = 8 << 20;

// A cache whose account can pay for every form.
class RichCache : public SampleCache {
 public:
  RichCache(uint64_t limit_bytes, DatasetUses* uses, FormKinds forms)
      : SampleCache(limit_bytes, uses, Clock::Real(), forms) {
    this->forms().account().Save(std::chrono::hours(1));
  }
};

// A folder of images, and a disk cache that can be opened again.
class DiskFormsTest : public ::testing::Test {
 protected:
  struct Row {
    absl::Status status;
    std::vector<std::vector<std::byte>> outputs;
    friend bool operator==(const Row&, const Row&) = default;
  };

  void WriteImages(const std::vector<std::string>& files,
                   const std::string& reduce = "none") {
    for (size_t i = 0; i < files.size(); ++i)
      images_.Write(fmt::format("k/{:04}.jpg", i), files[i]);
    records_ = files.size();
    FakeJob job;
    JobSpec& spec = job.info.spec;
    spec.name = "job";
    spec.batch = 1;
    spec.order = Order::kSequential;
    spec.pipeline.nodes = {
        {.op = "readers.image_folder", .args = {{"path", images_.path()}}},
        {.op = "decode", .inputs = {{0, 0}}, .args = {{"reduce", reduce}}},
        {.op = "random_resized_crop",
         .inputs = {{1, 0}},
         .args = {{"size", std::vector<int64_t>{24, 24}}}}};
    spec.pipeline.outputs = {{"image", {2, 0}}, {"label", {0, 1}}};
    auto finished = FinishFakeJob(std::move(job));
    ASSERT_TRUE(finished.ok()) << finished.status();
    job_ = *std::move(finished);
  }

  // Takes over what an earlier process left.
  void Restart(FormKinds kinds = kBothForms, uint64_t bytes = kDiskForms,
               DiskCacheOf of = DiskCacheOf::kAll) {
    disk_.reset();
    cache_.reset();
    auto cache =
        DiskCache::Open({.directory = path_,
                         .max_bytes = bytes,
                         .uses = &uses_,
                         .write = [this](int fd, const void* from, size_t size,
                                         off_t at) -> ssize_t {
                           if (!full_) return pwrite(fd, from, size, at);
                           errno = ENOSPC;
                           return -1;
                         }});
    ASSERT_TRUE(cache.ok()) << cache.status();
    cache_ = *std::move(cache);
    auto disk = DiskForms::Start(
        cache_, {.kinds = kinds, .codec = JpegFormCodec(), .of = of});
    ASSERT_TRUE(disk.ok()) << disk.status();
    disk_ = *std::move(disk);
  }
  void Written() {
    ASSERT_TRUE(
        disk_->WaitIdle(Clock::Real().Now() + std::chrono::seconds(30)));
  }

  // `disk` may be nullptr: none.
  std::shared_ptr<const JobRuntime> Job(SampleCache* memory,
                                        const DiskForms* disk) {
    auto source =
        OpenSource(job_.info.spec.pipeline.nodes[0], job_.blob, SourceLimits{});
    EXPECT_TRUE(source.ok()) << source.status();
    contexts_.push_back(std::make_unique<RuntimeContext>(
        RuntimeContext{.kernels = ImageKernels({}),
                       .cache = memory,
                       .bad_samples = &bad_,
                       .ownership = &ownership_,
                       .disk = disk,
                       .seek_indexes = seek_indexes_,
                       .idle = idle_}));
    auto job = JobRuntime::Create(job_.info, {*std::move(source)},
                                  contexts_.back().get());
    EXPECT_TRUE(job.ok()) << job.status();
    return *std::move(job);
  }
  Row Compute(const JobRuntime& job, uint64_t epoch, uint64_t sample) {
    return Compute(job, {.epoch = epoch, .sample = sample});
  }
  Row Compute(const JobRuntime& job, const RowOf& of) {
    if (state_ == nullptr) state_ = ImageKernels({}).make_thread_state();
    Row row;
    for (const size_t bytes : job.field_bytes())
      row.outputs.emplace_back(bytes, std::byte{77});
    const std::vector<std::span<std::byte>> spans(row.outputs.begin(),
                                                  row.outputs.end());
    row.status = job.Compute(of, state_.get(), spans);
    if (!row.status.ok()) row.outputs.clear();
    return row;
  }
  // Compares all rows of an epoch with those of a job that keeps nothing.
  void CheckEpoch(const JobRuntime& job, uint64_t epoch) {
    if (plain_ == nullptr) plain_ = Job(&nothing_, nullptr);
    for (uint64_t sample = 0; sample < records_; ++sample)
      ASSERT_EQ(Compute(job, epoch, sample), Compute(*plain_, epoch, sample))
          << "epoch " << epoch << " sample " << sample;
  }
  static uint64_t DecodesByForms(const SampleCache& memory) {
    uint64_t sum = 0;
    for (const CachedDatasetStats& dataset : memory.stats().datasets)
      for (const CachedFormStats& form : dataset.forms) sum += form.hits;
    return sum;
  }
  CachedFormStats OnDisk(JpegFormKind kind) const {
    for (const CachedDatasetStats& dataset : cache_->stats().datasets)
      for (const CachedFormStats& form : dataset.forms)
        if (form.form == FormName(kind)) return form;
    return {};
  }
  std::vector<std::string> Files() const {
    std::vector<std::string> files;
    for (const auto& each : std::filesystem::directory_iterator(path_))
      if (each.path().filename() != "lock") files.push_back(each.path());
    std::sort(files.begin(), files.end());
    return files;
  }

  TempDir images_, home_;
  const std::string path_ = home_.path() + "/cache";
  DatasetUses uses_{Clock::Real()};
  std::shared_ptr<DiskCache> cache_;
  std::unique_ptr<DiskForms> disk_;
  std::atomic<bool> full_ = false;
  BadSamples bad_;
  Ownership ownership_;
  FormCodec seek_indexes_;    // of the jobs made from now on
  IdleWork* idle_ = nullptr;  // likewise
  std::vector<std::unique_ptr<RuntimeContext>> contexts_;
  SampleCache nothing_{0};
  std::unique_ptr<ThreadState> state_;
  std::shared_ptr<const JobRuntime> plain_;
  FakeJob job_;
  uint64_t records_ = 0;
};

}  // namespace leat::worker
