// SPDX-License-Identifier: Apache-2.0
//
// A small job over text files named .jpg, and a kernel that reads them: a row's
// image is filled with the file's first byte; "bad" files fail.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "core/plan/checked_job.h"
#include "core/plan/job.h"
#include "core/status.h"
#include "tests/worker/temp_dir.h"
#include "worker/job/job_runtime.h"
#include "worker/job/job_table.h"

namespace leat::worker {

inline constexpr size_t kFakeImageBytes = 4 * 4 * 3;

class FakeKernel : public RowKernel {
 public:
  absl::Status Run(
      const RowInput& input, ThreadState*,
      std::span<const std::span<std::byte>> outputs) const override {
    const std::span<const std::byte> encoded = input.fields[0].bytes;
    if (encoded.empty() || encoded[0] == std::byte{'!'})
      return DataLoss("it is bad");
    std::memset(outputs[0].data(), static_cast<int>(encoded[0]),
                outputs[0].size());
    std::ranges::copy(input.fields[1].bytes, outputs[1].begin());
    return absl::OkStatus();
  }
};

inline RowKernelFactory FakeKernels() {
  return {.compile = [](const CheckedGraph&, DecoderClass)
              -> absl::StatusOr<std::unique_ptr<RowKernel>> {
            return std::make_unique<FakeKernel>();
          },
          .make_thread_state = nullptr};
}

struct FakeJob {
  JobInfo info;
  std::string blob;
  std::string key() const {
    return {info.plan_hash.begin(), info.plan_hash.end()};
  }
};

// Fills in the fields that a coordinator sets.
inline absl::StatusOr<FakeJob> FinishFakeJob(FakeJob job) {
  JobSpec& spec = job.info.spec;
  ASSIGN_OR_RETURN(const CheckedJob checked, CheckJob(spec));
  const CheckedGraph& graph = checked.sources[0];
  spec.pipeline = graph.graph;
  const Node& reader = graph.graph.nodes[graph.reader];
  ASSIGN_OR_RETURN(BuiltIndex index, BuildIndex(reader, {}));
  job.blob = index.blob;
  job.info.schema = graph.schema;
  if (HasValidField(spec))
    job.info.schema.fields.push_back({.name = std::string(kValidField),
                                      .dtype = DType::kBool,
                                      .shape = {},
                                      .row_bytes = 1});
  job.info.datasets.resize(1);
  job.info.datasets[0] = {.id = "dataset",
                          .name = index.name,
                          .reader = CanonicalText(reader),
                          .fingerprint = index.fingerprint,
                          .shards = index.shards,
                          .bytes = index.bytes,
                          .classes = index.classes};
  job.info.plan_hash = PlanHash(spec, job.info.datasets);
  return job;
}

// Makes 4 × 4 images and labels of the files in `directory`, in order; float32
// if `normalized`.
inline absl::StatusOr<FakeJob> MakeFakeJob(
    const std::string& directory, uint32_t batch,
    BadSamplePolicy policy = BadSamplePolicy::kFail,
    const std::string& name = "job", bool normalized = false) {
  FakeJob job;
  JobSpec& spec = job.info.spec;
  spec.name = name;
  spec.batch = batch;
  spec.order = Order::kSequential;
  spec.on_bad_sample = policy;
  spec.pipeline.nodes = {
      {.op = "readers.image_folder", .args = {{"path", directory}}},
      {.op = "decode", .inputs = {{0, 0}}},
      {.op = "resize",
       .inputs = {{1, 0}},
       .args = {{"size", std::vector<int64_t>{4}}}}};
  spec.pipeline.outputs = {{"image", {2, 0}}, {"label", {0, 1}}};
  if (normalized) {
    spec.pipeline.nodes.push_back({.op = "normalize",
                                   .inputs = {{2, 0}},
                                   .args = {{"mean", std::vector<double>{1}},
                                            {"std", std::vector<double>{2}}}});
    spec.pipeline.outputs[0].second = {3, 0};
  }
  return FinishFakeJob(std::move(job));
}

// Does the same for `samples` samples that consumers supply.
inline absl::StatusOr<FakeJob> MakeExternalJob(
    int64_t samples, uint32_t batch,
    BadSamplePolicy policy = BadSamplePolicy::kFail) {
  FakeJob job;
  JobSpec& spec = job.info.spec;
  spec.name = "job";
  spec.batch = batch;
  spec.order = Order::kSequential;
  spec.on_bad_sample = policy;
  spec.pipeline.nodes = {
      {.op = std::string(kExternalReader),
       .args = {{"num_samples", samples},
                {"types", std::vector<std::string>{"encoded", "int32"}},
                {"name", std::string("photos")}}},
      {.op = "decode", .inputs = {{0, 0}}},
      {.op = "resize",
       .inputs = {{1, 0}},
       .args = {{"size", std::vector<int64_t>{4}}}}};
  spec.pipeline.outputs = {{"image", {2, 0}}, {"label", {0, 1}}};
  return FinishFakeJob(std::move(job));
}

// A coordinator's memory.
class FakeFetcher : public JobFetcher {
 public:
  void Add(const FakeJob& job) {
    MutexLock lock(&mu_);
    jobs_[job.key()] = job;
  }
  // From now on it answers with `job` when `plan_hash` is requested, or that
  // there is no such job.
  void AnswerWith(const std::string& plan_hash, std::optional<FakeJob> job) {
    MutexLock lock(&mu_);
    jobs_.erase(plan_hash);
    if (job) jobs_[plan_hash] = *std::move(job);
  }
  // The next `failures` calls fail with `status`.
  void Fail(int failures, absl::Status status) {
    MutexLock lock(&mu_);
    failures_ = failures;
    failure_ = std::move(status);
  }
  int fetches() {
    MutexLock lock(&mu_);
    return fetches_;
  }
  absl::StatusOr<JobInfo> FetchJob(const std::string& plan_hash) override {
    MutexLock lock(&mu_);
    ++fetches_;
    if (failures_ > 0) {
      --failures_;
      return failure_;
    }
    const auto it = jobs_.find(plan_hash);
    if (it == jobs_.end()) return NotFound("no such job");
    return it->second.info;
  }
  // Sets the blocks of the jobs' index, in place of one block that is all of
  // it.
  void SetBlocks(FetchedBlocks blocks, std::map<Digest, std::string> bytes) {
    MutexLock lock(&mu_);
    index_ = std::move(blocks);
    blocks_ = std::move(bytes);
  }
  std::vector<absl::StatusOr<FetchedBlocks>> FetchBlocks(
      std::span<const DatasetInfo* const> datasets) override {
    return {Index(*datasets[0])};
  }
  absl::StatusOr<std::string> FetchBlock(const IndexBlock& block,
                                         const std::string&,
                                         MonotonicTime) override {
    MutexLock lock(&mu_);
    const auto it = blocks_.find(block.sha256);
    if (it == blocks_.end()) return NotFound("no such block");
    return it->second;
  }

 private:
  absl::StatusOr<FetchedBlocks> Index(const DatasetInfo& dataset) {
    MutexLock lock(&mu_);
    if (!index_.blocks.empty()) return index_;
    for (const auto& [key, job] : jobs_)
      if (job.info.datasets[0].fingerprint == dataset.fingerprint) {
        FetchedBlocks whole;
        whole.blocks = {{.sha256 = HashOf(job.blob),
                         .bytes = job.blob.size(),
                         .samples = 0}};
        whole.identity =
            IndexIdentity(dataset.fingerprint, dataset.shards, whole.blocks);
        blocks_[whole.blocks[0].sha256] = job.blob;
        return whole;
      }
    return NotFound("no such index");
  }

  Mutex mu_;
  std::map<std::string, FakeJob> jobs_ ABSL_GUARDED_BY(mu_);
  FetchedBlocks index_ ABSL_GUARDED_BY(mu_);
  std::map<Digest, std::string> blocks_ ABSL_GUARDED_BY(mu_);
  int failures_ ABSL_GUARDED_BY(mu_) = 0;
  absl::Status failure_ ABSL_GUARDED_BY(mu_);
  int fetches_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace leat::worker
