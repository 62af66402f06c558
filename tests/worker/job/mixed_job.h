// SPDX-License-Identifier: Apache-2.0
//
// A mixture of three folders of text files named .jpg: web (a … f), books
// (A … D) and code (0, 1, 2). Its kernel writes what a row's draws are keyed by,
// and the first byte of its file; "!" is bad.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/plan/checked_job.h"
#include "core/plan/job.h"
#include "core/plan/share_layout.h"
#include "core/status.h"
#include "gtest/gtest.h"
#include "tests/worker/temp_dir.h"
#include "worker/job/job_runtime.h"
#include "worker/job/job_table.h"

namespace leat::worker {

struct MixedJob {
  JobInfo info;
  std::vector<std::string> blobs;  // the datasets' indexes
  std::string key() const {
    return {info.plan_hash.begin(), info.plan_hash.end()};
  }
};

// Lists the datasets, and fills in the other fields that a coordinator sets.
inline absl::StatusOr<MixedJob> FinishMixedJob(const JobSpec& spec) {
  MixedJob job{.info = {.spec = spec}};
  ASSIGN_OR_RETURN(CheckedJob checked, CheckJob(spec));
  for (size_t i = 0; i < checked.sources.size(); ++i) {
    CheckedGraph& source = checked.sources[i];
    const Node reader = source.graph.nodes[source.reader];
    PipelineOf(job.info.spec, i) = std::move(source.graph);
    ASSIGN_OR_RETURN(BuiltIndex index, BuildIndex(reader, {}));
    job.blobs.push_back(index.blob);
    job.info.datasets.push_back({.id = ToHex(index.fingerprint).substr(0, 8),
                                 .name = index.name,
                                 .reader = CanonicalText(reader),
                                 .fingerprint = index.fingerprint,
                                 .shards = index.shards,
                                 .bytes = index.bytes,
                                 .classes = index.classes,
                                 .groups = index.groups});
  }
  job.info.schema = checked.schema;
  job.info.plan_hash = PlanHash(job.info.spec, job.info.datasets);
  return job;
}

// DrawKernel writes this of a row: seed, epoch and sample of its draws, and its
// file's first byte.
using Drawn = std::tuple<uint64_t, uint64_t, uint64_t, char>;

inline Drawn DrawnOf(std::span<const std::byte> image) {
  uint64_t numbers[4];
  std::memcpy(numbers, image.data(), sizeof(numbers));
  return {numbers[0], numbers[1], numbers[2], static_cast<char>(numbers[3])};
}

class DrawKernel final : public RowKernel {
 public:
  explicit DrawKernel(bool staged) : staged_(staged) {}
  absl::Status Run(
      const RowInput& input, ThreadState*,
      std::span<const std::span<std::byte>> outputs) const override {
    return Draw(input, outputs[0].data());
  }
  bool staged(bool) const override { return staged_; }
  std::unique_ptr<KernelGroup> BeginGroup(
      const GroupOutputs& outputs) const override {
    return std::make_unique<Group>(outputs);
  }

 private:
  static absl::Status Draw(const RowInput& input, std::byte* image) {
    const auto first = static_cast<char>(input.fields[0].bytes[0]);
    if (first == '!') return DataLoss("it is bad");
    const uint64_t numbers[] = {input.seed, input.epoch, input.sample,
                                static_cast<uint64_t>(first)};
    std::memcpy(image, numbers, sizeof(numbers));
    return absl::OkStatus();
  }
  class Group final : public KernelGroup {
   public:
    explicit Group(const GroupOutputs& outputs) : outputs_(outputs) {}
    absl::Status Prepare(size_t row, const RowInput& input, StoredSample stored,
                         ThreadState*) override {
      RowInput own = input;
      own.fields = stored.fields;
      return Draw(own, outputs_.At(0, row));
    }
    void Forget(size_t) override {}
    void Run(Done done) override {
      done(std::vector<absl::Status>(outputs_.rows), nullptr);
    }

   private:
    const GroupOutputs outputs_;
  };
  const bool staged_;
};

// The first bytes of the samples' files, by the job's numbers.
inline constexpr char kMixedSamples[] = "abcdefABCD012";

// Answers as a coordinator does that knows these jobs.
class MixedFetcher : public JobFetcher {
 public:
  void Add(const MixedJob& job) {
    MutexLock lock(&mu_);
    jobs_[job.key()] = job.info;
    for (size_t i = 0; i < job.blobs.size(); ++i) {
      const std::string& blob = job.blobs[i];
      blobs_[HashOf(blob)] = blob;
      indexes_[job.info.datasets[i].fingerprint] = HashOf(blob);
    }
  }
  // Forgets the index of the dataset.
  void Forget(const DatasetInfo& dataset) {
    MutexLock lock(&mu_);
    indexes_.erase(dataset.fingerprint);
  }
  int indexes() {  // that were fetched
    MutexLock lock(&mu_);
    return fetched_;
  }
  absl::StatusOr<JobInfo> FetchJob(const std::string& plan_hash) override {
    MutexLock lock(&mu_);
    const auto it = jobs_.find(plan_hash);
    if (it == jobs_.end()) return NotFound("no such job");
    return it->second;
  }
  // How many datasets each request for indexes named.
  std::vector<size_t> requests() {
    MutexLock lock(&mu_);
    return requests_;
  }
  // From now on an answer has so many indexes at most.
  void AnswerAtMost(size_t indexes) {
    MutexLock lock(&mu_);
    most_ = indexes;
  }
  // From now on small indexes come with their blocks, and these are damaged.
  void SendWhole(bool damaged) {
    MutexLock lock(&mu_);
    whole_ = true;
    damaged_ = damaged;
  }
  int blocks() {  // that were fetched
    MutexLock lock(&mu_);
    return fetched_blocks_;
  }
  std::vector<absl::StatusOr<FetchedBlocks>> FetchBlocks(
      std::span<const DatasetInfo* const> datasets) override {
    MutexLock lock(&mu_);
    requests_.push_back(datasets.size());
    std::vector<absl::StatusOr<FetchedBlocks>> indexes;
    for (const DatasetInfo* const dataset :
         datasets.first(std::min(most_, datasets.size())))
      indexes.push_back(Index(*dataset));
    return indexes;
  }
  absl::StatusOr<std::string> FetchBlock(const IndexBlock& block,
                                         const std::string&,
                                         MonotonicTime) override {
    MutexLock lock(&mu_);
    ++fetched_blocks_;
    const auto it = blobs_.find(block.sha256);
    if (it == blobs_.end()) return NotFound("no such block");
    return it->second;
  }

 private:
  absl::StatusOr<FetchedBlocks> Index(const DatasetInfo& dataset)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const auto it = indexes_.find(dataset.fingerprint);
    if (it == indexes_.end())
      return NotFound("no index of dataset {}", dataset.name);
    ++fetched_;
    const std::string& blob = blobs_[it->second];
    FetchedBlocks index;
    index.blocks = {{.sha256 = it->second, .bytes = blob.size(), .samples = 0}};
    index.identity =
        IndexIdentity(dataset.fingerprint, dataset.shards, index.blocks);
    if (whole_) index.bytes = blob;
    if (damaged_) index.bytes[0] ^= 1;
    return index;
  }

  Mutex mu_;
  std::map<std::string, JobInfo> jobs_ ABSL_GUARDED_BY(mu_);
  std::map<Digest, std::string> blobs_ ABSL_GUARDED_BY(mu_);
  std::map<Digest, Digest> indexes_ ABSL_GUARDED_BY(mu_);  // by fingerprint
  int fetched_ ABSL_GUARDED_BY(mu_) = 0, fetched_blocks_
                                         ABSL_GUARDED_BY(mu_) = 0;
  std::vector<size_t> requests_ ABSL_GUARDED_BY(mu_);
  size_t most_ ABSL_GUARDED_BY(mu_) = kMostTogether;
  bool whole_ ABSL_GUARDED_BY(mu_) = false, damaged_
                                            ABSL_GUARDED_BY(mu_) = false;
};

class MixtureTest : public testing::Test {
 protected:
  MixtureTest() {
    for (const char c : std::string("abcdef")) Write("web", c);
    for (const char c : std::string("ABCD")) Write("books", c);
    for (const char c : std::string("012")) Write("code", c);
    context_ = {.kernels = {.compile = [this](const CheckedGraph&, DecoderClass)
                                -> absl::StatusOr<std::unique_ptr<RowKernel>> {
                  ++compiled_;
                  return std::make_unique<DrawKernel>(/*staged=*/true);
                }},
                .cache = &cache_,
                .bad_samples = &bad_,
                .ownership = &ownership_};
  }
  void Write(const std::string& folder, char name, const std::string& text) {
    dir_.Write(folder + "/k/" + name + ".jpg", text);
  }
  void Write(const std::string& folder, char name) {
    Write(folder, name, std::string(1, name));
  }
  Graph Pipeline(const std::string& folder) const {
    Graph graph;
    graph.nodes = {{.op = "readers.image_folder",
                    .args = {{"path", dir_.path() + "/" + folder}}},
                   {.op = "decode", .inputs = {{0, 0}}},
                   {.op = "resize",
                    .inputs = {{1, 0}},
                    .args = {{"size", std::vector<int64_t>{4}}}}};
    graph.outputs = {{"image", {2, 0}}, {"label", {0, 1}}};
    return graph;
  }
  JobSpec Spec() const {
    JobSpec spec{.name = "mix", .seed = 7, .batch = 8};
    spec.last_batch = LastBatch::kStream;
    for (const char* name : {"web", "books", "code"})
      spec.sources.push_back({name, Pipeline(name)});
    spec.shares = {{0, {3, 2, 1}}};
    return spec;
  }
  static MixedJob Job(const JobSpec& spec) {
    auto job = FinishMixedJob(spec);
    EXPECT_TRUE(job.ok()) << job.status();
    return *std::move(job);
  }
  static std::vector<std::shared_ptr<const Source>> SourcesOf(
      const MixedJob& job) {
    std::vector<std::shared_ptr<const Source>> sources;
    for (size_t i = 0; i < job.blobs.size(); ++i) {
      auto source = OpenSource(PipelineOf(job.info.spec, i).nodes[0],
                               job.blobs[i], SourceLimits{});
      EXPECT_TRUE(source.ok()) << source.status();
      sources.push_back(*std::move(source));
    }
    return sources;
  }
  std::shared_ptr<const JobRuntime> Open(
      const JobSpec& spec, Epilogue epilogue = Epilogue::kWorker) {
    const MixedJob job = Job(spec);
    auto runtime =
        JobRuntime::Create(job.info, SourcesOf(job), &context_, epilogue);
    EXPECT_TRUE(runtime.ok()) << runtime.status();
    return runtime.ok() ? *runtime : nullptr;
  }
  // Returns the row of the plan.
  static RowOf RowAt(const JobRuntime& job, uint64_t step, uint32_t row) {
    RowOf at{.step = step, .row = row};
    job.plan().Samples(0, step, std::span(&row, 1), std::span(&at.sample, 1));
    return at;
  }
  // Computes the row's fields.
  static absl::StatusOr<std::vector<std::vector<std::byte>>> Fields(
      const JobRuntime& job, const RowOf& row) {
    std::vector<std::vector<std::byte>> fields;
    for (const size_t bytes : job.field_bytes())
      fields.emplace_back(bytes, std::byte{77});
    const std::vector<std::span<std::byte>> outputs(fields.begin(),
                                                    fields.end());
    RETURN_IF_ERROR(job.Compute(row, nullptr, outputs));
    return fields;
  }
  static Drawn DrawnAt(const JobRuntime& job, const RowOf& row) {
    const auto fields = Fields(job, row);
    EXPECT_TRUE(fields.ok()) << fields.status();
    return fields.ok() ? DrawnOf((*fields)[0]) : Drawn();
  }

  TempDir dir_;
  SampleCache cache_{1 << 20};
  BadSamples bad_;
  Ownership ownership_;
  RuntimeContext context_;
  int compiled_ = 0;  // kernels
};

}  // namespace leat::worker
