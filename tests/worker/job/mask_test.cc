// SPDX-License-Identifier: Apache-2.0
//
// LastBatch::kMask on a worker: which rows its field marks.
#include <algorithm>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/worker/job/fake_job.h"
#include "worker/job/job_runtime.h"

namespace leat::worker {
namespace {

// Batches of 4 from six samples; "e" is bad.
TEST(JobMask, MarksPaddingAndBadSamples) {
  TempDir dir;
  for (const char c : std::string("abcdef"))
    dir.Write(std::string("k/") + c + ".jpg", std::string(1, c));
  dir.Write("k/e.jpg", "!");
  SampleCache cache(1 << 20);
  BadSamples bad;
  Ownership ownership;
  const RuntimeContext context = {.kernels = FakeKernels(),
                                  .cache = &cache,
                                  .bad_samples = &bad,
                                  .ownership = &ownership};
  for (const BadSamplePolicy policy :
       {BadSamplePolicy::kReplace, BadSamplePolicy::kZero}) {
    FakeJob made = *MakeFakeJob(dir.path(), 4, policy);
    made.info.spec.last_batch = LastBatch::kMask;
    made = *FinishFakeJob(made);
    EXPECT_EQ(made.info.schema.fields.back().name, kValidField);
    auto source = OpenSource(made.info.spec.pipeline.nodes[0], made.blob, {});
    ASSERT_TRUE(source.ok()) << source.status();
    const auto job =
        JobRuntime::Create(made.info, {*std::move(source)}, &context);
    ASSERT_TRUE(job.ok()) << job.status();
    std::string valid;
    for (uint32_t i = 0; i < 8; ++i) {
      std::vector<std::vector<std::byte>> fields;
      for (const size_t bytes : (*job)->field_bytes())
        fields.emplace_back(bytes, std::byte{77});
      const std::vector<std::span<std::byte>> outputs(fields.begin(),
                                                      fields.end());
      const RowOf row = {
          .step = i / 4, .row = i % 4, .sample = std::min(i, 5u)};
      ASSERT_TRUE((*job)->Compute(row, nullptr, outputs).ok());
      valid += static_cast<char>('0' + static_cast<int>(fields.back()[0]));
    }
    const bool zero = policy == BadSamplePolicy::kZero;
    EXPECT_EQ(valid, zero ? "11110100" : "11111100");
  }
}

}  // namespace
}  // namespace leat::worker
