// SPDX-License-Identifier: Apache-2.0
//
// The trial of nvJPEG when a worker starts, and the memory that it is given.
#include <algorithm>
#include <chrono>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "core/status.h"
#include "gmock/gmock.h"
#include "tests/worker/gpu/fixture.h"
#include "worker/gpu/resources/watch.h"

namespace leat::worker {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::MakeJpeg;

class NvjpegTrial : public GpuTest {
 protected:
  // The worker starts without nvJPEG, logs why, and computes class exact.
  void ExpectNone(const std::string& why) {
    scales_ = true;
    Open();
    EXPECT_THAT(gpus_->decoder_classes(), ElementsAre(DecoderClass::kExact));
    const GpuInfo& info = gpus_->devices()[0];
    EXPECT_EQ(info.decoder_version, "");
    EXPECT_EQ(info.jpeg_engines, 0);
    EXPECT_THAT(info.no_engines, HasSubstr(why));
    GpuPipeline pipeline(CropGraph(32), *gpus_);
    ExpectExact(pipeline, {MakeJpeg({.width = 90}), MakeJpeg({.seed = 5})});
    Close();
  }
};

TEST_F(NvjpegTrial, WrongPixelsAreFoundOutAtTheStart) {
  const char* const kinds[] = {"RGB, whole by engines",
                               "luma, whole by engines",
                               "a region by engines",
                               "whole at 1/2 by engines",
                               "whole at 1/4 by engines",
                               "whole at 1/8 by engines",
                               "whole by the device's processors",
                               "4:2:0, large, RGB, whole by the device's"};
  for (uint64_t kind = 1; kind <= std::size(kinds); ++kind) {
    fake_->Set("wrong", kind);
    ExpectNone(kinds[kind - 1]);
  }
}

TEST_F(NvjpegTrial, WritesBesideAPicturesRoomAreFoundOut) {
  fake_->Set("whole_mcus", 2);
  ExpectNone("nvJPEG ");
}

TEST_F(NvjpegTrial, ALibraryThatDecodesNothingIsFoundOut) {
  fake_->Fail("nvjpegDecodeBatchedEx", 1, true, 8);
  ExpectNone("nvJPEG does not decode a picture (4:2:0, RGB, whole by engines)");
}

// A poisoned context is useless for all later work.
TEST_F(NvjpegTrial, AnErrorThatPoisonsIsTheGpus) {
  config_.devices = {.all = false, .indices = {0}};
  fake_->Fail("cuStreamSynchronize", 1, true, 700);
  const auto gpus = GpuWorker::Open(config_, {}, wake_, nullptr);
  EXPECT_THAT(std::string(Message(gpus.status())),
              AllOf(HasSubstr("--devices 0: "), HasSubstr("(700)")));
  fatal_ = gpus.status();  // nothing of it can be released
}

TEST_F(NvjpegTrial, ATrialThatDoesNotEndIsToldOf) {
  std::promise<absl::Status> lost;
  auto told = lost.get_future();
  fake_->Set("stop", 5);
  absl::Status opened;
  std::thread start([&] {
    opened = GpuWorker::Open(config_, {}, wake_,
                             [&lost](const absl::Status& status) {
                               lost.set_value(status);
                             })
                 .status();
  });
  std::future_status status = std::future_status::timeout;
  for (int i = 0; i < 200 && status != std::future_status::ready; ++i) {
    clock_.Advance(GpuWatch::kLeast);
    status = told.wait_for(std::chrono::milliseconds(300));
  }
  EXPECT_EQ(status, std::future_status::ready);
  fake_->Set("stop", 0);
  start.join();
  ASSERT_EQ(status, std::future_status::ready);
  EXPECT_EQ(std::string(Message(told.get())),
            "GPU 0 cannot be used: the trial of its decoder has not ended "
            "within 10 s, where such took 0 s on average");
  EXPECT_TRUE(absl::IsUnavailable(opened)) << opened;
}

// nvJPEG allocates the prepared memory twice, for its pipeline.
TEST_F(NvjpegTrial, WhatIsPreparedLeavesRoomForTheRest) {
  fake_->Set("preallocate", 0);
  fake_->Set("refuse_pinned", 0);
  config_.slots = 1;
  Open();
  EXPECT_EQ(fake_->Calls("nvjpegJpegStateDestroy"), 0u) << "it was prepared";
  const GpuStats stats = gpus_->stats()[0];
  EXPECT_GT(stats.memory_bytes,
            config_.For(fake_->Get("memory")).decoder_bytes / 2);
  std::vector<std::string> files;
  for (const auto color : {testing::JpegColor::kYcc, testing::JpegColor::kGray})
    files.push_back(MakeJpeg({.width = 4001,
                              .height = 3001,
                              .color = color,
                              .h = 1,
                              .v = 1,
                              .quality = 30}));
  GpuPipeline pipeline(CenterGraph(32), *gpus_, DecoderClass::kNvjpeg);
  regions_ = false;
  ExpectExact(pipeline, files);
  EXPECT_EQ(gpus_->stats()[0].splits_total, 0u);
}

}  // namespace
}  // namespace leat::worker
