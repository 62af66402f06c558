// SPDX-License-Identifier: Apache-2.0
//
// A machine that lacks page-locked memory, and a GPU that disappears while a
// worker uses it: what costs time, what fails rows, and what ends the worker.
#include <chrono>
#include <future>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/log.h"
#include "core/status.h"
#include "gmock/gmock.h"
#include "spdlog/sinks/ostream_sink.h"
#include "tests/worker/gpu/fixture.h"
#include "worker/gpu/cuda/nvjpeg_phases.h"
#include "worker/gpu/resources/slot.h"
#include "worker/gpu/resources/watch.h"

namespace leat::worker {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::MakeJpeg;

constexpr int kNotReleased = 1;  // CUDA_ERROR_INVALID_VALUE
constexpr int kDeviceUnavailable = 46, kNoDevice = 100, kInvalidDevice = 101;
constexpr int kSystemNotReady = 802, kUnknown = 999;
constexpr auto kPatience = std::chrono::seconds(60);

class GpuScarce : public GpuTest {
 protected:
  GpuScarce() {
    for (int i = 0; i < 6; ++i)
      files_.push_back(MakeJpeg({.width = 200 + 3 * i,
                                 .height = 150 - i,
                                 .seed = static_cast<uint32_t>(i) + 1}));
  }
  // Expects every row to have a status that sends the request to another
  // worker.
  static void ExpectUnavailable(const GroupResult& result) {
    EXPECT_FALSE(result.ok());
    for (const auto* statuses : {&result.prepared, &result.computed})
      for (const absl::Status& status : *statuses)
        EXPECT_TRUE(status.ok() || absl::IsUnavailable(status)) << status;
  }
  // Has a call of the driver fail with the code while a group runs. Expects
  // that it ends the worker, with a message that matches.
  template <typename Matcher>
  void ExpectItEndsTheWorker(const char* call, int code,
                             const Matcher& message) {
    Open();
    GpuPipeline pipeline(CropGraph(32), *gpus_);
    ExpectExact(pipeline, files_);
    fake_->Fail(call, 1, false, code);
    for (int round = 0; round < 2; ++round)
      ExpectUnavailable(pipeline.Run(files_));
    EXPECT_TRUE(absl::IsUnavailable(fatal_)) << code << " " << call;
    EXPECT_THAT(std::string(Message(fatal_)),
                AllOf(message, HasSubstr(" (" + std::to_string(code) + ")")));
    EXPECT_EQ(SlotsInUse(), 0);
    // Another worker, or the CPU, computes the row, with the same bytes.
    EXPECT_TRUE(pipeline.OnCpu(files_[0], 0).ok());
    Close();
    fatal_ = absl::OkStatus();
  }

  std::vector<std::string> files_;
};

// --- Page-locked memory ------------------------------------------------------

TEST_F(GpuScarce, SomePageLockedMemoryIsRefusedInOrdinaryTests) {
  Open();
  EXPECT_GE(fake_->Count("pinned_refusals"), config_.slots / 2);
  EXPECT_GE(fake_->Count("host_allocations"), config_.slots / 2);
}

TEST_F(GpuScarce, ASlotThatMayNotBePageLockedIsSlowerAndRight) {
  fake_->Set("refuse_pinned", 1);
  Open();
  EXPECT_EQ(fake_->Count("host_allocations"), 0);
  GpuPipeline pipeline(CropGraph(32), *gpus_);
  ExpectExact(pipeline, files_);
  EXPECT_GT(fake_->Count("pageable_copies"), 0);
  EXPECT_EQ(gpus_->stats()[0].groups_failed_total, 0u);
}

// A group of one image cannot be halved: there is no other second chance.
TEST_F(GpuScarce, ABlockThatIsRefusedIsAskedForOnceMore) {
  for (const bool engines : {true, false}) {
    fake_->Set("engines", engines ? 7 : 0);
    Open();
    GpuPipeline pipeline(CropGraph(32), *gpus_, DecoderClass::kNvjpeg);
    const int64_t before = fake_->Count("pinned_refusals");
    for (const std::string& file : files_) ExpectExact(pipeline, {file});
    EXPECT_GT(fake_->Count("pinned_refusals"), before);
    EXPECT_EQ(gpus_->stats()[0].groups_failed_total, 0u);
    Close();
  }
}

TEST_F(GpuScarce, BlocksThatAreKeptGoBackWhereMemoryIsShort) {
  fake_->Set("refuse_pinned", 0);
  config_.slots = 1;
  constexpr uint64_t kForNvjpeg = 1536 << 10;
  fake_->Set("pinned", kSlotBlockBytes + config_.slot_bytes + kForNvjpeg);
  Open();
  GpuPipeline pipeline(CropGraph(32), *gpus_, DecoderClass::kNvjpeg);
  // Each takes a larger block than the one before; together they do not fit.
  uint64_t all = 0;
  for (int side = 200; all < 2 * kForNvjpeg; side += 40) {
    const std::string file =
        MakeJpeg({.width = side, .height = side, .quality = 98});
    ASSERT_LT(file.size(), kForNvjpeg / 2 - (128 << 10));
    all += file.size();
    ExpectExact(pipeline, {file});
  }
  EXPECT_EQ(gpus_->stats()[0].groups_failed_total, 0u);
}

TEST_F(GpuScarce, AGpuIsNotGivenUpForWantOfMemory) {
  config_.max_failures = 2;
  Open();
  GpuPipeline pipeline(CropGraph(32), *gpus_, DecoderClass::kNvjpeg);
  fake_->Set("refuse_pinned", 1);
  for (int round = 0; round < 4; ++round)
    ExpectUnavailable(pipeline.Run(files_));
  EXPECT_TRUE(fatal_.ok()) << fatal_;
  EXPECT_EQ(SlotsInUse(), 0);
  GpuPipeline exact(CropGraph(32), *gpus_);
  ExpectExact(exact, files_);
  fake_->Set("refuse_pinned", 2);
  ExpectExact(pipeline, files_);
}

// --- A GPU that goes ---------------------------------------------------------

// CUDA's documents do not say which error a process sees if its GPU is reset or
// its MIG instance is destroyed: any error that means a missing device is taken
// for that.
TEST_F(GpuScarce, AGpuThatGoesIsSaidOnceAndEndsTheWorker) {
  for (const int code : {kDeviceUnavailable, kNoDevice, kInvalidDevice,
                         kSystemNotReady, kUnknown})
    for (const char* call : {"cuLaunchKernel", "cuEventSynchronize"})
      ExpectItEndsTheWorker(
          call, code,
          AllOf(HasSubstr("GPU 0 cannot be used any more: it may have been "
                          "reset"),
                HasSubstr("lost its MIG instance")));
}

// NVIDIA's multi-process service ends, or one of its clients has failed.
TEST_F(GpuScarce, AnMpsServerThatEndsEndsTheWorker) {
  for (const int code : {806, 810})  // MPS_RPC_FAILURE, MPS_CLIENT_TERMINATED
    for (const char* call : {"cuMemcpyHtoDAsync_v2", "cuEventSynchronize"})
      ExpectItEndsTheWorker(call, code,
                            HasSubstr("GPU 0 cannot be used any more: "));
}

TEST_F(GpuScarce, AGpuThatGoesIsFoundOutThoughNoGroupRuns) {
  fake_->Set("scale", 0);
  std::promise<absl::Status> lost;
  auto told = lost.get_future();
  Use(GpuWorker::Open(config_, {}, wake_, [&lost](const absl::Status& status) {
    lost.set_value(status);
  }));
  GpuPipeline pipeline(CropGraph(32), *gpus_, DecoderClass::kNvjpeg);
  ExpectExact(pipeline, files_);
  fake_->Fail("cuCtxSetCurrent", 1, false, kDeviceUnavailable);
  const GroupResult result = pipeline.Run(files_);
  ExpectUnavailable(result);
  EXPECT_TRUE(result.computed.empty());
  ASSERT_EQ(told.wait_for(kPatience), std::future_status::ready);
  fatal_ = told.get();
  EXPECT_THAT(std::string(Message(fatal_)),
              HasSubstr("GPU 0 cannot be used any more"));
}

// Nothing else ends such a wait: the driver has no watchdog.
TEST_F(GpuScarce, AGpuThatDoesNotComeBackEndsTheWorker) {
  for (const DecoderClass decoder :
       {DecoderClass::kExact, DecoderClass::kNvjpeg}) {
    std::promise<absl::Status> lost;
    auto told = lost.get_future();
    Use(GpuWorker::Open(
        config_, {}, wake_,
        [&lost](const absl::Status& status) { lost.set_value(status); }));
    GpuPipeline pipeline(CenterGraph(96), *gpus_, decoder);
    ExpectExact(pipeline, files_);
    // Stops the engines, if there are any, or a stream.
    fake_->Set("stop", 2);
    GroupResult result;
    std::thread group([&] { result = pipeline.Run(files_); });
    clock_.Advance(GpuWatch::kLeast - std::chrono::seconds(1));
    EXPECT_EQ(told.wait_for(std::chrono::milliseconds(300)),
              std::future_status::timeout);
    // However long groups have taken on this clock.
    std::future_status status = std::future_status::timeout;
    for (int i = 0; i < 100 && status != std::future_status::ready; ++i) {
      clock_.Advance(std::chrono::seconds(2) + 1000 * GpuWatch::kLeast);
      status = told.wait_for(std::chrono::milliseconds(300));
    }
    ASSERT_EQ(status, std::future_status::ready);
    fatal_ = told.get();
    EXPECT_TRUE(absl::IsUnavailable(fatal_));
    EXPECT_THAT(std::string(Message(fatal_)),
                AllOf(HasSubstr("GPU 0 cannot be used any more: "),
                      HasSubstr(" has not ended within ")));
    // Later requests are sent to another worker.
    ExpectUnavailable(pipeline.Run(files_));
    fake_->Set("stop", 0);
    group.join();
    EXPECT_EQ(SlotsInUse(), 0);
    Close();
    fatal_ = absl::OkStatus();
  }
}

// As on a GPU whose MIG mode was enabled, before instances are made.
TEST_F(GpuScarce, AProcessThatIsShownNoGpuSaysWhy) {
  fake_->Set("devices", 0);
  config_.devices = {.all = false, .indices = {0}};
  const auto gpus = GpuWorker::Open(config_, {}, wake_, nullptr);
  EXPECT_THAT(std::string(Message(gpus.status())),
              AllOf(HasSubstr("--devices 0: the driver shows this process no "
                              "GPU"),
                    HasSubstr("MIG mode has no compute instance"),
                    HasSubstr("CUDA_ERROR_NO_DEVICE (100)")));
}

// --- How the driver is used --------------------------------------------------

TEST_F(GpuScarce, ThreadsThatWaitForTheGpuSleep) {
  for (const bool engines : {true, false}) {
    fake_->Set("engines", engines ? 7 : 0);
    Open();
    const uint64_t waits = fake_->Calls("cuStreamSynchronize");
    for (const DecoderClass decoder :
         {DecoderClass::kExact, DecoderClass::kNvjpeg}) {
      GpuPipeline pipeline(CropGraph(32), *gpus_, decoder);
      ExpectExact(pipeline, files_);
    }
    EXPECT_EQ(fake_->Calls("cuStreamSynchronize") > waits, !engines);
    EXPECT_GT(fake_->Calls("cuEventSynchronize"), 0u);
    EXPECT_EQ(fake_->Count("spinning_waits"), 0);
    Close();
  }
}

// The engines do not follow their stream: they would overwrite images that the
// kernel of the previous pass still reads.
TEST_F(GpuScarce, TheEnginesAreCalledWhenThePassBeforeHasEnded) {
  fake_->Set("refuse_pinned", 0);
  config_.decode_bytes = kMaxNvjpegImageBytes;
  regions_ = false;
  Open();
  GpuPipeline pipeline(CropGraph(16), *gpus_, DecoderClass::kNvjpeg);
  // 36 MB each: two per pass.
  const std::vector<std::string> files(
      3, MakeJpeg({.width = 4000, .height = 3000, .quality = 30}));
  const auto waits = [this] { return fake_->Calls("cuStreamSynchronize"); };
  const auto batches = [this] { return fake_->Calls("nvjpegDecodeBatchedEx"); };
  const uint64_t waits_before = waits(), batches_before = batches();
  fake_->Hold();
  GroupResult result;
  std::thread group([&] { result = pipeline.Run(files); });
  while (waits() == waits_before && batches() < batches_before + 2)
    std::this_thread::yield();
  EXPECT_EQ(batches(), batches_before + 1);
  fake_->Release();
  group.join();
  EXPECT_EQ(batches(), batches_before + 2);
  EXPECT_TRUE(result.ok());
  ExpectExact(pipeline, files);
}

// A group of two passes waits between them, and no other group does meanwhile.
TEST_F(GpuScarce, AGroupThatWaitsForItsPassHoldsUpNoOther) {
  fake_->Set("refuse_pinned", 0);
  config_.decode_bytes = kMaxNvjpegImageBytes;
  regions_ = false;
  Open();
  const std::vector<std::string> large(
      3, MakeJpeg({.width = 4000, .height = 3000, .quality = 30}));
  GpuPipeline first(CropGraph(16), *gpus_, DecoderClass::kNvjpeg);
  GpuPipeline second(CropGraph(16), *gpus_, DecoderClass::kNvjpeg);
  const auto batches = [this] { return fake_->Calls("nvjpegDecodeBatchedEx"); };
  const uint64_t before = batches();
  fake_->Hold();
  GroupResult results[2];
  std::thread waits([&] { results[0] = first.Run(large); });
  while (batches() < before + 1) std::this_thread::yield();
  std::thread other([&] { results[1] = second.Run(files_); });
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (batches() < before + 2 && std::chrono::steady_clock::now() < end)
    std::this_thread::yield();
  EXPECT_EQ(batches(), before + 2);
  fake_->Release();
  waits.join();
  other.join();
  for (const GroupResult& result : results) EXPECT_TRUE(result.ok());
}

TEST_F(GpuScarce, TheSizeOfAnImageAloneChoosesItsBackend) {
  WithoutEngines();
  Open();
  GpuPipeline pipeline(CropGraph(32), *gpus_, DecoderClass::kNvjpeg);
  const std::string small = MakeJpeg({.width = 1000, .height = 1000});
  const std::string large = MakeJpeg({.width = 1001, .height = 1000});
  static_assert(1000 * 1000 == kGpuHuffmanPixels);
  const std::vector<std::string> groups[] = {
      {small}, {large}, {small, large, small}, {large, large, small}};
  int64_t smalls = 0, larges = 0;
  for (const auto& files : groups) {
    ExpectExact(pipeline, files);
    for (const std::string& file : files) ++(file == small ? smalls : larges);
    EXPECT_EQ(fake_->Count("hybrid_images"), smalls);
    EXPECT_EQ(fake_->Count("gpu_hybrid_images"), larges);
  }
}

// A destructor's errors are logged, once per GPU.
TEST_F(GpuScarce, WhatIsNotReleasedIsSaidOnce) {
  const char* const kCalls[] = {"cuMemFree_v2",
                                "cuMemFreeHost",
                                "cuEventDestroy_v2",
                                "cuStreamDestroy_v2",
                                "cuModuleUnload",
                                "cuDevicePrimaryCtxRelease_v2",
                                "nvjpegDestroy",
                                "nvjpegJpegStateDestroy",
                                "nvjpegDecoderDestroy",
                                "nvjpegDecodeParamsDestroy",
                                "nvjpegBufferPinnedDestroy",
                                "nvjpegBufferDeviceDestroy",
                                "nvjpegJpegStreamDestroy"};
  std::ostringstream log;
  auto& sinks = Logger()->sinks();
  sinks.push_back(std::make_shared<spdlog::sinks::ostream_sink_mt>(log));
  for (const char* call : kCalls) {
    WithoutEngines();
    Open();
    log.str("");
    // Several objects may make a call; all of them fail.
    fake_->Fail(call, 1, true, kNotReleased);
    gpus_.reset();
    const std::string said = log.str();
    const size_t first = said.find("gpu.not_released gpu=0 error=");
    EXPECT_NE(first, std::string::npos) << call;
    EXPECT_EQ(said.find("gpu.not_released", first + 1), std::string::npos)
        << said;
    fake_->Reset();
  }
  sinks.pop_back();
}

}  // namespace
}  // namespace leat::worker
