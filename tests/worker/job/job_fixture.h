// SPDX-License-Identifier: Apache-2.0
//
// Six files that are read as rows: a job over them, and the objects that it
// computes with.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/worker/job/fake_job.h"
#include "worker/job/job_runtime.h"

namespace leat::worker {

class JobTest : public testing::Test {
 protected:
  JobTest() {
    for (const char c : std::string("abcdef"))
      dir_.Write(std::string("k/") + c + ".jpg", std::string(1, c));
    context_ = {.kernels = FakeKernels(),
                .cache = &cache_,
                .bad_samples = &bad_,
                .ownership = &ownership_};
  }
  FakeJob Job(BadSamplePolicy policy = BadSamplePolicy::kFail,
              const std::string& name = "job") {
    auto job = MakeFakeJob(dir_.path(), 2, policy, name);
    EXPECT_TRUE(job.ok()) << job.status();
    return *std::move(job);
  }
  absl::StatusOr<JobTable::Runtime> Create(const FakeJob& job) {
    auto source =
        OpenSource(job.info.spec.pipeline.nodes[0], job.blob, SourceLimits{});
    EXPECT_TRUE(source.ok()) << source.status();
    return JobRuntime::Create(job.info, {*std::move(source)}, &context_);
  }
  // Returns the first byte of the row's image; sets `valid` from the field, if
  // there is one.
  absl::StatusOr<char> Row(const JobRuntime& job, uint64_t sample,
                           bool* valid = nullptr,
                           const RowRecords* records = nullptr,
                           std::vector<uint64_t> absent = {}) {
    std::vector<std::vector<std::byte>> fields;
    for (const size_t bytes : job.field_bytes())
      fields.emplace_back(bytes, std::byte{77});
    const std::vector<std::span<std::byte>> outputs(fields.begin(),
                                                    fields.end());
    RETURN_IF_ERROR(
        job.Compute({.sample = sample, .records = records, .absent = absent},
                    nullptr, outputs));
    if (valid != nullptr) *valid = fields.back()[0] == std::byte{1};
    return static_cast<char>(fields[0][0]);
  }

  TempDir dir_;
  SampleCache cache_{1 << 20};
  BadSamples bad_;
  Ownership ownership_;
  RuntimeContext context_;
  FakeFetcher fetcher_;
};

}  // namespace leat::worker
