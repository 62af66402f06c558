// SPDX-License-Identifier: Apache-2.0
//
// nvJPEG's handles of one slot, or of all, and the memory of each slot.
#include <string>
#include <thread>
#include <vector>

#include "cuda/driver.h"
#include "tests/worker/gpu/fixture.h"
#include "worker/gpu/cuda/device.h"
#include "worker/gpu/cuda/nvjpeg_memory.h"

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

// Each slot has memory of its own, also in a handle that another slot made: all
// of their images together need more than one may take.
TEST_F(NvjpegHandlesTest, SlotsMayShareAHandle) {
  config_.decoder_bytes = kMaxNvjpegImageBytes;
  regions_ = false;
  const std::vector<std::string> files = {
      MakeJpeg({.width = 4000, .height = 3000, .quality = 30})};
  for (const bool share : {true, false}) {
    fake_->Set("refuse_pinned", 0);
    config_.decoders_share = share;
    Open();
    EXPECT_EQ(fake_->Count("nvjpeg_handles"), 2 * (share ? 1 : config_.slots));
    const uint64_t before = gpus_->stats()[0].memory_bytes;
    const uint64_t calls = fake_->Calls("nvjpegDecodeBatchedEx");
    GpuPipeline pipeline(CropGraph(24), *gpus_, DecoderClass::kNvjpeg);
    const auto slots = static_cast<size_t>(config_.slots);
    std::vector<GroupResult> results(slots);
    std::vector<std::thread> threads;
    fake_->Hold();  // so that each is in a slot
    for (GroupResult& result : results)
      threads.emplace_back([&] {
        result = GpuPipeline(CropGraph(24), *gpus_, DecoderClass::kNvjpeg)
                     .Run(files);
      });
    while (fake_->Calls("nvjpegDecodeBatchedEx") < calls + slots)
      std::this_thread::yield();
    fake_->Release();
    for (std::thread& thread : threads) thread.join();
    const RowBytes expected = *pipeline.OnCpu(files[0], 0);
    for (const GroupResult& result : results) {
      EXPECT_TRUE(result.ok());
      EXPECT_EQ(result.rows[0], expected);
    }
    const uint64_t more = gpus_->stats()[0].memory_bytes - before;
    EXPECT_GT(more, config_.decoder_bytes);
    EXPECT_LE(more, slots * config_.decoder_bytes);
    Close();
  }
}

TEST_F(NvjpegHandlesTest, ABlockMayHaveAllOfTheBytesThatASlotMayTake) {
  fake_->Set("refuse_pinned", 0);
  const auto driver = cuda::LoadDriver(cuda::LibrarySearch::FromEnvironment());
  ASSERT_TRUE(driver.ok()) << driver.status();
  ASSERT_EQ((*driver)->Init(0), cuda::Result::kSuccess);
  const auto gpu = CudaDevice::Open(*driver, nullptr, 0);
  ASSERT_TRUE(gpu.ok()) << gpu.status();
  constexpr size_t kMost = 1'000'000;  // no size of a block
  for (const auto kind :
       {KeptBlocks::Kind::kDevice, KeptBlocks::Kind::kPinned}) {
    KeptBlocks blocks(kind, gpu->get(), kMost);
    EXPECT_NE(blocks.Take(kMost - 1), nullptr);
    EXPECT_EQ(blocks.held_bytes(), kMost);
    EXPECT_EQ(blocks.Take(1), nullptr);
  }
}

}  // namespace
}  // namespace leat::worker
