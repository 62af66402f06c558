// SPDX-License-Identifier: Apache-2.0
//
// How images are asked about, and which of them the engines decode together.
#include <string>
#include <thread>
#include <vector>

#include "tests/worker/gpu/fixture.h"

namespace leat::worker {
namespace {

using testing::MakeJpeg;

class NvjpegQuestionsTest : public GpuTest {
 protected:
  // Twice each of four samplings, and gray.
  NvjpegQuestionsTest() {
    for (int i = 0; i < 10; ++i) {
      const bool gray = i % 5 == 4;
      photos_.push_back(MakeJpeg(
          {.width = 200 + 11 * i,
           .height = 180 - 3 * i,
           .color = gray ? testing::JpegColor::kGray : testing::JpegColor::kYcc,
           .h = gray ? 1 : 1 + i % 5 % 2,
           .v = gray ? 1 : 1 + i % 5 / 2,
           .seed = static_cast<uint32_t>(i) + 1}));
    }
  }
  std::vector<std::string> photos_;
};

TEST_F(NvjpegQuestionsTest, ABatchHasOneSampling) {
  Open();
  GpuPipeline pipeline(CropGraph(24), *gpus_, DecoderClass::kNvjpeg);
  const uint64_t before = fake_->Calls("nvjpegDecodeBatchedEx");
  ExpectExact(pipeline, photos_);
  // Each of four samplings, and luma.
  EXPECT_EQ(fake_->Calls("nvjpegDecodeBatchedEx") - before, 5u);
  EXPECT_EQ(fake_->Count("hardware_images"), 10);
  EXPECT_EQ(fake_->Count("mixed_images"), 0);
}

// Both parses end when both run.
TEST_F(NvjpegQuestionsTest, NoImageWaitsForTheQuestionsOfAnother) {
  Open();
  GpuPipeline pipeline(CropGraph(24), *gpus_, DecoderClass::kNvjpeg);
  const RowKernelFactory factory = gpus_->kernels();
  GroupMemory memory(pipeline.schema(), 2);
  const GroupOutputs outputs = memory.Outputs(2);
  const auto group = pipeline.kernel().BeginGroup(outputs);
  fake_->Set("parse_together", 2);
  std::vector<std::thread> threads;
  for (size_t row = 0; row < 2; ++row)
    threads.emplace_back([&, row] {
      const auto state = factory.make_thread_state();
      EXPECT_TRUE(
          group
              ->Prepare(row, {.seed = kGpuTestSeed, .epoch = 1, .sample = row},
                        StoredImage(AsSpan(photos_[row]), 0), state.get())
              .ok());
    });
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& status : GpuPipeline::RunGroup(*group))
    EXPECT_TRUE(status.ok()) << status;
}

}  // namespace
}  // namespace leat::worker
