// SPDX-License-Identifier: Apache-2.0
//
// Every call of CUDA and of nvJPEG that a GPU worker makes fails in turn: rows
// are right, or a clear error is reported, and nothing is leaked.
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "tests/support/sanitized.h"
#include "tests/worker/gpu/fixture.h"
#include "tests/worker/gpu/fused/graphs.h"

namespace leat::worker {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::MakeJpeg;

constexpr int kInvalidValue = 1, kNoMemory = 2, kIllegalAddress = 700;
constexpr int kBadJpeg = 3, kAllocatorFailure = 5, kExecutionFailed = 6;

// Calls when a worker starts.
const char* const kStartCalls[] = {"cuInit",
                                   "cuDriverGetVersion",
                                   "cuDeviceGetCount",
                                   "cuDeviceGet",
                                   "cuDeviceGetName",
                                   "cuDeviceGetUuid_v2",
                                   "cuDeviceGetAttribute",
                                   "cuDeviceTotalMem_v2",
                                   "cuDevicePrimaryCtxRetain",
                                   "cuCtxSetCurrent",
                                   "cuModuleLoadData",
                                   "cuModuleGetFunction",
                                   "cuMemHostAlloc",
                                   "cuMemAlloc_v2",
                                   "cuStreamCreate",
                                   "cuEventCreate",
                                   "nvjpegCreateExV2",
                                   "nvjpegJpegStreamCreate",
                                   "nvjpegJpegStateCreate",
                                   "nvjpegDecoderCreate",
                                   "nvjpegDecoderStateCreate",
                                   "nvjpegBufferPinnedCreateV2",
                                   "nvjpegBufferDeviceCreateV2",
                                   "nvjpegStateAttachDeviceBuffer",
                                   "nvjpegDecodeParamsCreate",
                                   "nvjpegDecodeParamsSetOutputFormat",
                                   "nvjpegDecodeParamsSetExifOrientation"};

// Calls for each group.
const char* const kCudaCalls[] = {
    "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuLaunchKernel",
    "cuEventRecord",        "cuEventSynchronize",   "cuStreamSynchronize"};
const char* const kEngineCalls[] = {
    "nvjpegJpegStreamParse",          "nvjpegJpegStreamGetChromaSubsampling",
    "nvjpegDecodeBatchedSupportedEx", "nvjpegDecodeParamsSetOutputFormat",
    "nvjpegDecodeParamsSetROI",       "nvjpegDecodeParamsSetScaleFactor",
    "nvjpegDecodeBatchedInitialize",  "nvjpegDecodeBatchedEx"};
const char* const kPhaseCalls[] = {"nvjpegJpegStreamParse",
                                   "nvjpegDecoderJpegSupported",
                                   "nvjpegStateAttachPinnedBuffer",
                                   "nvjpegDecodeJpegHost",
                                   "nvjpegDecodeJpegTransferToDevice",
                                   "nvjpegDecodeJpegDevice"};

class GpuFaultsTest : public GpuTest {
 protected:
  GpuFaultsTest() {
    for (uint32_t i = 0; i < 6; ++i)
      files_.push_back(MakeJpeg({.width = 120 + static_cast<int>(i),
                                 .height = 90,
                                 .color = i == 4 ? testing::JpegColor::kGray
                                                 : testing::JpegColor::kYcc,
                                 .h = i == 4 ? 1 : 2,
                                 .v = i == 4 ? 1 : 2,
                                 .seed = i}));
  }

  // Runs a group: it is computed as the CPU does it, or refused as a whole by a
  // status that sends consumers elsewhere.
  bool RunGroup(GpuPipeline& pipeline) {
    const GroupResult result = pipeline.Run(files_);
    if (result.ok()) {
      for (size_t row = 0; row < files_.size(); ++row)
        EXPECT_EQ(result.rows[row], *pipeline.OnCpu(files_[row], row)) << row;
      return true;
    }
    for (const auto* statuses : {&result.prepared, &result.computed})
      for (const absl::Status& status : *statuses)
        EXPECT_TRUE(status.ok() || absl::IsUnavailable(status)) << status;
    for (const absl::Status& status : result.computed)
      EXPECT_THAT(std::string(Message(status)), HasSubstr("GPU 0"));
    return false;
  }

  std::vector<std::string> files_;
};

TEST_F(GpuFaultsTest, AFailureAtTheStartIsAnErrorAndLeaksNothing) {
  config_.devices = {.all = false, .indices = {0}};
  config_.slots = 2;
  for (const char* call : kStartCalls)
    for (const uint64_t nth : {1, 2, 3}) {
      fake_->Fail(call, nth, false, 2);
      auto gpus = GpuWorker::Open(config_, {}, wake_, nullptr);
      // If these fail there is class exact, or a slower slot; a GPU's later
      // allocations are nvJPEG's, which tries once more.
      const bool spare = std::string(call).starts_with("nvjpeg") ||
                         std::string(call) == "cuMemHostAlloc" ||
                         (std::string(call) == "cuMemAlloc_v2" && nth > 1);
      if (gpus.ok()) {
        // It was not called as often, or class exact does not need it, or a
        // thread that begins later calls it.
        const bool met = fake_->Calls(call) >= nth;
        const bool later = nth > 2 && std::string(call) == "cuCtxSetCurrent";
        EXPECT_TRUE(!met || spare || later) << call << " " << nth;
      } else if (nth <= 2) {
        EXPECT_THAT(std::string(Message(gpus.status())),
                    HasSubstr("--devices 0: "))
            << call;
      }
      gpus = absl::UnknownError("");
      EXPECT_EQ(fake_->Live(), 0) << call << " " << nth;
      fake_->Reset();
    }
}

TEST_F(GpuFaultsTest, AGpuThatCannotBeHadSaysWhatToDo) {
  config_.devices = {.all = false, .indices = {0}};
  const auto why = [this] {
    const auto gpus = GpuWorker::Open(config_, {}, wake_, nullptr);
    return std::string(Message(gpus.status()));
  };
  fake_->Set("memory", 300 << 20);
  EXPECT_THAT(why(),
              HasSubstr("of 314572800 bytes are free (fewer --gpu-slots"));
  fake_->Reset();
  constexpr int kDeviceUnavailable = 46;
  fake_->Fail("cuDevicePrimaryCtxRetain", 1, false, kDeviceUnavailable);
  EXPECT_THAT(why(), HasSubstr("compute mode exclusive"));
  fake_->Reset();
  fake_->Set("compute", 70);
  EXPECT_THAT(why(), AllOf(HasSubstr("here are 7.0 and a driver for 13.0"),
                           HasSubstr("CUDA_ERROR_NO_BINARY_FOR_GPU (209)")));
  fake_->Reset();
  fake_->Set("version", 11040);
  EXPECT_THAT(why(),
              AllOf(HasSubstr("here are 9.0 and a driver for 11.4"),
                    HasSubstr("CUDA_ERROR_UNSUPPORTED_PTX_VERSION (222)")));
  fake_->Reset();
}

TEST_F(GpuFaultsTest, AGpuWithoutEnginesSaysWhy) {
  WithoutEngines();
  Open();
  EXPECT_THAT(gpus_->devices()[0].no_engines,
              ::testing::EndsWith("NVJPEG_STATUS_ARCH_MISMATCH (7)"));
}

TEST_F(GpuFaultsTest, AFailedCallFailsAGroupAndNotTheNext) {
  for (const char* call : kCudaCalls) {
    // Waiting calls decide whether the context is still good.
    if (std::string(call).find("Synchronize") != std::string::npos) continue;
    for (const uint64_t nth : {1, 2}) {
      Open();
      GpuPipeline pipeline(CropGraph(32), *gpus_);
      EXPECT_TRUE(RunGroup(pipeline));
      fake_->Fail(call, nth, false, kInvalidValue);
      int failed = 0;
      for (int group = 0; group < 4; ++group) failed += !RunGroup(pipeline);
      EXPECT_EQ(failed, 1) << call << " " << nth;
      EXPECT_TRUE(RunGroup(pipeline)) << call << " " << nth;
      EXPECT_TRUE(fatal_.ok()) << call;
      EXPECT_EQ(SlotsInUse(), 0);
      Close();
    }
  }
}

TEST_F(GpuFaultsTest, WhereTheGpuHasNoMemoryTheGroupIsHalved) {
  Open();
  GpuPipeline pipeline(CropGraph(32), *gpus_);
  // The kernels that make samples, pixels and fields.
  for (const uint64_t kernel : {1, 2, 3}) {
    fake_->Fail("cuLaunchKernel", kernel, false, kNoMemory);
    EXPECT_TRUE(RunGroup(pipeline));
    EXPECT_EQ(gpus_->stats()[0].splits_total, kernel);
  }
  EXPECT_EQ(gpus_->stats()[0].rows_coefficients_total,
            gpus_->stats()[0].rows_exact_total);
  // Halved down to single rows, and then it is an error.
  fake_->Fail("cuLaunchKernel", 1, true, kNoMemory);
  EXPECT_FALSE(RunGroup(pipeline));
  EXPECT_TRUE(fatal_.ok());
}

TEST_F(GpuFaultsTest, APoisonedContextIsTheEndAndSaidOnce) {
  for (const char* call : kCudaCalls) {
    Open();
    GpuPipeline pipeline(CropGraph(32), *gpus_);
    EXPECT_TRUE(RunGroup(pipeline));
    fake_->Fail(call, 1, true, kIllegalAddress);
    if (std::string(call) == "cuStreamSynchronize")
      fake_->Fail("cuLaunchKernel", 1, true, kInvalidValue);
    const uint64_t waits = fake_->Calls("cuStreamSynchronize");
    EXPECT_FALSE(RunGroup(pipeline)) << call;
    EXPECT_TRUE(absl::IsUnavailable(fatal_)) << call;
    // Nothing is written after the rows' statuses are reported: the queue or
    // its mark was waited for.
    EXPECT_TRUE(fake_->Calls("cuStreamSynchronize") > waits ||
                std::string(call) == "cuEventSynchronize")
        << call;
    EXPECT_THAT(std::string(Message(fatal_)),
                HasSubstr("GPU 0 cannot be used any more"));
    // A later request is refused, and does not wait for a slot for ever.
    EXPECT_TRUE(pipeline.kernel().CanBegin(-1));
    EXPECT_FALSE(RunGroup(pipeline));
    EXPECT_EQ(SlotsInUse(), 0);
    Close();
    fatal_ = absl::OkStatus();
  }
}

TEST_F(GpuFaultsTest, AGpuThatFailsAgainAndAgainIsGivenUp) {
  config_.max_failures = 3;
  Open();
  GpuPipeline pipeline(CropGraph(32), *gpus_);
  for (int round = 0; round < 3; ++round) {
    fake_->Fail("cuLaunchKernel", 1, false, kInvalidValue);
    EXPECT_FALSE(RunGroup(pipeline));
    EXPECT_TRUE(RunGroup(pipeline));  // restarts the count
  }
  EXPECT_TRUE(fatal_.ok());
  fake_->Fail("cuLaunchKernel", 1, true, kInvalidValue);
  for (int round = 0; round < 3; ++round) EXPECT_FALSE(RunGroup(pipeline));
  EXPECT_THAT(std::string(Message(fatal_)),
              HasSubstr("GPU 0 is given up after 3 failures"));
}

TEST_F(GpuFaultsTest, WithTwoGpusTheOtherGoesOn) {
  WithGpus(2);
  config_.max_failures = 1;
  Open();
  GpuPipeline pipeline(CropGraph(32), *gpus_);
  fake_->Fail("cuLaunchKernel", 1, false, kInvalidValue);
  EXPECT_FALSE(RunGroup(pipeline));
  EXPECT_TRUE(fatal_.ok());
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(RunGroup(pipeline));
  EXPECT_EQ(gpus_->stats()[0].groups_failed_total +
                gpus_->stats()[1].groups_failed_total,
            1u);
}

// Each takes its own memory; the one that comes too late reports that.
TEST_F(GpuFaultsTest, TwoWorkersShareAGpuWhileItHasRoom) {
  config_.devices = {.all = false, .indices = {0}};
  Open();
  const uint64_t each = gpus_->stats()[0].memory_bytes;
  auto beside = GpuWorker::Open(config_, {}, wake_, nullptr);
  ASSERT_TRUE(beside.ok()) << beside.status();
  for (const DecoderClass decoder :
       {DecoderClass::kExact, DecoderClass::kNvjpeg})
    for (GpuWorker* const worker : {gpus_.get(), beside->get()}) {
      GpuPipeline pipeline(CropGraph(32), *worker, decoder);
      EXPECT_TRUE(RunGroup(pipeline));
    }
  beside->reset();
  fake_->Set("memory", each * 3 / 2);
  beside = GpuWorker::Open(config_, {}, wake_, nullptr);
  EXPECT_THAT(std::string(Message(beside.status())),
              HasSubstr("bytes are free (fewer --gpu-slots"));
  GpuPipeline pipeline(CropGraph(32), *gpus_);
  EXPECT_TRUE(RunGroup(pipeline));
}

TEST_F(GpuFaultsTest, AnImageThatNvjpegRefusesIsTheHosts) {
  for (const bool engines : {true, false}) {
    fake_->Set("engines", engines ? 7 : 0);
    for (const char* call : engines ? std::span(kEngineCalls)
                                    : std::span<const char* const>(kPhaseCalls))
      for (const uint64_t nth : {1, 2, 5})
        for (const int code : {kBadJpeg, kExecutionFailed, kAllocatorFailure}) {
          if (testing::kSanitized && nth == 2) continue;
          Open();
          GpuPipeline pipeline(CropGraph(32), *gpus_, DecoderClass::kNvjpeg);
          fake_->Fail(call, nth, false, code);
          // Without memory a group is halved, down to single rows.
          EXPECT_TRUE(RunGroup(pipeline)) << call << " " << nth << " " << code;
          EXPECT_TRUE(fatal_.ok());
          Close();
        }
  }
}

TEST_F(GpuFaultsTest, DamagedAndHostileImagesFailNoOther) {
  fake_->Set("gray", 0);
  Open();
  GpuPipeline pipeline(CropGraph(32), *gpus_, DecoderClass::kNvjpeg);
  std::string broken = files_[0];
  for (size_t i = broken.size() / 2; i < broken.size() - 2; ++i)
    broken[i] = static_cast<char>(0xff);
  std::vector<std::string> files = files_;
  files.insert(files.begin() + 2, broken);
  const GroupResult result = pipeline.Run(files);
  ASSERT_EQ(result.computed.size(), files.size());
  for (size_t row = 0; row < files.size(); ++row) {
    const auto expected = pipeline.OnCpu(files[row], row);
    EXPECT_EQ(result.computed[row].code(), expected.status().code()) << row;
    if (expected.ok()) {
      EXPECT_EQ(result.rows[row], *expected) << row;
    }
  }
  EXPECT_FALSE(result.computed[2].ok());
}

TEST_F(GpuFaultsTest, ManyGroupsTakeNoMoreMemoryThanFew) {
  Open();
  GpuPipeline pipeline(CropGraph(16), *gpus_, DecoderClass::kNvjpeg);
  EXPECT_TRUE(RunGroup(pipeline));
  const int64_t live = fake_->Live();
  const uint64_t allocations = fake_->Calls("cuMemAlloc_v2") +
                               fake_->Calls("cuMemHostAlloc") +
                               fake_->Calls("cuMemFree_v2");
  for (int i = 0; i < 200; ++i) pipeline.Run(files_);
  EXPECT_EQ(fake_->Live(), live);
  EXPECT_EQ(fake_->Calls("cuMemAlloc_v2") + fake_->Calls("cuMemHostAlloc") +
                fake_->Calls("cuMemFree_v2"),
            allocations);
}

}  // namespace
}  // namespace leat::worker
