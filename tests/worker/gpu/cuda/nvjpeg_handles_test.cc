// SPDX-License-Identifier: Apache-2.0
//
// nvJPEG's handles of one slot, or of all, and the memory of each slot.
#include <string>
#include <thread>
#include <vector>

#include "tests/worker/gpu/fixture.h"

namespace leat::worker {
namespace {

using testing::MakeJpeg;

using NvjpegHandlesTest = GpuTest;

// States of several samplings share the slot's memory.
TEST_F(NvjpegHandlesTest, MemoryOfOneSamplingServesTheOthers) {
  config_.decoder_bytes = kMaxNvjpegImageBytes;
  config_.slots = 1;
  regions_ = false;
  Open();
  GpuPipeline pipeline(CropGraph(24), *gpus_, DecoderClass::kNvjpeg);
  for (int sampling = 0; sampling < 4; ++sampling)
    ExpectExact(pipeline, {MakeJpeg({.width = 4000,
                                     .height = 3000,
                                     .h = 1 + sampling % 2,
                                     .v = 1 + sampling / 2,
                                     .quality = 30})});
  EXPECT_EQ(gpus_->stats()[0].rows_hardware_total, 4u);
  EXPECT_EQ(gpus_->stats()[0].groups_failed_total, 0u);
}

// Each slot keeps to its own memory, also in a handle that another slot made.
TEST_F(NvjpegHandlesTest, SlotsMayShareAHandle) {
  config_.decoder_bytes = kMaxNvjpegImageBytes;
  for (const bool engines : {true, false})
    for (const bool share : {true, false}) {
      fake_->Set("engines", engines ? 7 : 0);
      config_.decoders_share = share;
      Open();
      EXPECT_EQ(fake_->Count("nvjpeg_handles"),
                (share ? 1 : config_.slots) * (engines ? 2 : 1));
      const uint64_t before = gpus_->stats()[0].memory_bytes;
      std::vector<std::thread> threads;
      for (int thread = 0; thread < config_.slots; ++thread)
        threads.emplace_back([&, thread] {
          std::vector<std::string> files;
          for (const int width : {200, 310, 2000 + 100 * thread})
            files.push_back(MakeJpeg(
                {.width = width, .height = width * 3 / 4, .quality = 30}));
          GpuPipeline pipeline(CropGraph(24), *gpus_, DecoderClass::kNvjpeg);
          const GroupResult result = pipeline.Run(files);
          ASSERT_TRUE(result.ok());
          for (size_t row = 0; row < files.size(); ++row)
            EXPECT_EQ(result.rows[row], *pipeline.OnCpu(files[row], row));
        });
      for (std::thread& thread : threads) thread.join();
      const uint64_t more = gpus_->stats()[0].memory_bytes - before;
      EXPECT_GT(more, 0u);
      EXPECT_LE(more,
                static_cast<uint64_t>(config_.slots) * config_.decoder_bytes);
      EXPECT_EQ(gpus_->stats()[0].groups_failed_total, 0u);
      Close();
    }
}

}  // namespace
}  // namespace leat::worker
