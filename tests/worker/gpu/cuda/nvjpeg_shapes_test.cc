// SPDX-License-Identifier: Apache-2.0
//
// Class nvjpeg with regions and scales, through the fake engines, which spoil
// every pixel that the worker must not rely on.
#include <cstdlib>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "tests/support/sanitized.h"
#include "tests/worker/gpu/fixture.h"
#include "tests/worker/gpu/fused/graphs.h"
#include "worker/gpu/device/decode_fault.h"

namespace leat::worker {
namespace {

using testing::MakeJpeg;

// Sizes, samplings and orientations; large enough to be cut and reduced.
const std::vector<std::string>& Photos() {
  static auto& photos = *new std::vector<std::string>();
  const int sizes[][2] = {{300, 200}, {201, 333}, {517, 90}, {640, 479}};
  while (photos.size() < 20) {
    const auto seed = static_cast<uint32_t>(photos.size());
    const int sampling = static_cast<int>(seed % 5);
    const bool gray = sampling == 4;
    photos.push_back(MakeJpeg(
        {.width = sizes[seed / 5][0],
         .height = sizes[seed / 5][1],
         .color = gray ? testing::JpegColor::kGray : testing::JpegColor::kYcc,
         .h = gray ? 1 : 1 + sampling % 2,
         .v = gray ? 1 : 1 + sampling / 2,
         .orientation = static_cast<int>(seed % 9),
         .seed = seed + 1}));
  }
  return photos;
}

double MeanDifference(const RowBytes& a, const RowBytes& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i)
    sum += std::abs(std::to_integer<int>(a[i]) - std::to_integer<int>(b[i]));
  return sum / static_cast<double>(a.size());
}

class NvjpegShapes : public GpuTest {
 protected:
  // Runs rows of these samples of Photos() in a group.
  std::vector<RowBytes> RunSamples(GpuPipeline& pipeline,
                                   const std::vector<uint64_t>& samples) {
    GroupMemory memory(pipeline.schema(), samples.size());
    const GroupOutputs outputs = memory.Outputs(samples.size());
    const auto group = pipeline.kernel().BeginGroup(outputs);
    for (size_t row = 0; row < samples.size(); ++row)
      EXPECT_TRUE(
          group
              ->Prepare(
                  row,
                  {.seed = kGpuTestSeed, .epoch = 1, .sample = samples[row]},
                  StoredImage(AsSpan(photos_[samples[row]]), 0),
                  pipeline.state())
              .ok());
    for (const absl::Status& status : GpuPipeline::RunGroup(*group))
      EXPECT_TRUE(status.ok()) << status;
    std::vector<RowBytes> rows;
    for (size_t row = 0; row < samples.size(); ++row)
      rows.push_back(memory.Row(outputs, row));
    return rows;
  }

  const std::vector<std::string>& photos_ = Photos();
};

TEST_F(NvjpegShapes, RegionsOfRandomPipelinesHaveTheWholeImagesBytes) {
  std::vector<std::string> files = photos_;
  for (std::string& file : OddImages()) files.push_back(std::move(file));
  std::mt19937 random(20'261'121);
  Open();
  int computed = 0;
  for (int i = 0; i < 10; ++i) {
    GpuPipeline pipeline(RandomGraph(random).Make(), *gpus_,
                         DecoderClass::kNvjpeg);
    std::vector<std::string> group;
    std::vector<RowBytes> expected;
    for (const std::string& file : files) {
      const auto row = pipeline.OnCpu(file, group.size());
      if (!row.ok()) continue;  // smaller than the crop
      group.push_back(file);
      expected.push_back(*row);
    }
    const GroupResult result = pipeline.Run(group);
    ASSERT_TRUE(result.ok());
    for (size_t row = 0; row < group.size(); ++row, ++computed)
      ASSERT_EQ(result.rows[row], expected[row])
          << "graph " << i << " row " << row;
  }
  EXPECT_GT(computed, 200);
  EXPECT_GT(fake_->Count("region_images"), 50);
  EXPECT_EQ(fake_->Count("scaled_images"), 0);
}

TEST_F(NvjpegShapes, WhatTheEnginesCannotDoIsNotAskedOfThem) {
  for (const bool regions : {false, true})
    for (const bool scales : {false, true}) {
      regions_ = regions;
      scales_ = scales;
      Open();
      // Small crops, and small rows of large ones.
      GpuPipeline center(CenterGraph(40), *gpus_, DecoderClass::kNvjpeg);
      ExpectExact(center, photos_);
      EXPECT_EQ(fake_->Count("region_images") > 0, regions);
      EXPECT_EQ(fake_->Count("scaled_images"), 0);
      GpuPipeline small(CropGraph(16), *gpus_, DecoderClass::kNvjpeg);
      const GroupResult result = small.Run(photos_);
      ASSERT_TRUE(result.ok());
      EXPECT_EQ(fake_->Count("scaled_images") > 0, scales);
      for (size_t row = 0; row < photos_.size() && !scales; ++row)
        EXPECT_EQ(result.rows[row], *small.OnCpu(photos_[row], row)) << row;
      EXPECT_EQ(gpus_->stats()[0].rows_hardware_total, 2 * photos_.size());
      Close();
    }
}

TEST_F(NvjpegShapes, ARowDependsOnItsImageAndViewAlone) {
  scales_ = true;
  Open();
  GpuPipeline pipeline(CropGraph(24), *gpus_, DecoderClass::kNvjpeg);
  std::vector<uint64_t> samples(photos_.size());
  for (size_t i = 0; i < samples.size(); ++i) samples[i] = i;
  const std::vector<RowBytes> expected = RunSamples(pipeline, samples);
  EXPECT_GT(fake_->Count("scaled_images"), 0);
  EXPECT_GT(fake_->Count("region_images"), 0);
  for (const uint64_t sample : samples)
    EXPECT_EQ(RunSamples(pipeline, {sample})[0], expected[sample]) << sample;
  std::mt19937 random(1);
  for (int round = 0; round < 10; ++round) {
    std::shuffle(samples.begin(), samples.end(), random);
    const std::vector<uint64_t> some(samples.begin(),
                                     samples.begin() + 1 + random() % 19);
    // If memory fails, groups are halved; if the engines fail, images are tried
    // one by one.
    if (round % 3 == 1) fake_->Fail("cuLaunchKernel", 1, false, 2);
    if (round % 3 == 2)
      fake_->Fail("nvjpegDecodeBatchedEx", 1 + random() % 3, false, 6);
    const std::vector<RowBytes> rows = RunSamples(pipeline, some);
    for (size_t i = 0; i < some.size(); ++i)
      EXPECT_EQ(rows[i], expected[some[i]]) << some[i];
  }
  EXPECT_EQ(SlotsInUse(), 0);
}

// An engine works in whole MCUs, and may write them: the rows and the images
// beside an image stay unchanged.
TEST_F(NvjpegShapes, WhatEnginesWriteBesideAnImageHarmsNone) {
  std::vector<std::string> files;  // rows need almost all of each
  for (const int more : {0, 1, 2, 5, 11})
    for (const auto& [h, v] : {std::pair(1, 1), std::pair(2, 2)})
      files.push_back(MakeJpeg({.width = 60 + more,
                                .height = 71 - more,
                                .h = h,
                                .v = v,
                                .seed = static_cast<uint32_t>(more)}));
  for (const bool regions : {true, false}) {
    fake_->Set("whole_mcus", 1);
    regions_ = regions;
    Open();
    Graph gray = CenterGraph(60);
    gray.nodes[1].args["output"] = std::string("gray");
    for (const Graph& graph : {CenterGraph(60), gray}) {
      GpuPipeline pipeline(graph, *gpus_, DecoderClass::kNvjpeg);
      ExpectExact(pipeline, files);
      ExpectExact(pipeline, photos_);
    }
    EXPECT_GT(fake_->Count("hardware_images"), 50);
    Close();
  }
}

TEST_F(NvjpegShapes, PassesAreCountedByWhatIsDecoded) {
  config_.decode_bytes = kMaxNvjpegImageBytes;
  const std::vector<std::string> files(
      3, MakeJpeg({.width = 4000, .height = 3000, .quality = 30}));
  const auto launches = [&](bool regions, bool scales) {
    regions_ = regions;
    scales_ = scales;
    Open();
    GpuPipeline pipeline(CropGraph(16), *gpus_, DecoderClass::kNvjpeg);
    const GroupResult result = pipeline.Run(files);
    EXPECT_TRUE(result.ok());
    const int64_t count = fake_->Count("launches");
    Close();
    return count;
  };
  EXPECT_EQ(launches(false, false), 2);  // 36 MB each: two per pass
  EXPECT_EQ(launches(false, true), 1);
  EXPECT_EQ(launches(true, false), 1);
}

// NVJPEG_STATUS_EXECUTION_FAILED, again and again, for a sound image: another
// backend would give other bytes.
TEST_F(NvjpegShapes, AnEngineThatFailsFailsTheGroupAndNotTheNext) {
  scales_ = true;
  Open();
  GpuPipeline pipeline(CropGraph(24), *gpus_, DecoderClass::kNvjpeg);
  const std::vector<RowBytes> expected = pipeline.Run(photos_).rows;
  // The first batch, of one sampling, its first half, the half of that, …, and
  // the first image twice.
  uint64_t nth = kDecodeTries;
  for (size_t images = photos_.size() / 5; images > 1; images /= 2) ++nth;
  for (; nth > 0; --nth) fake_->Fail("nvjpegDecodeBatchedEx", nth, false, 6);
  GroupResult result = pipeline.Run(photos_);
  ASSERT_EQ(result.computed.size(), photos_.size());
  for (const absl::Status& status : result.computed) {
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_THAT(std::string(Message(status)),
                ::testing::HasSubstr("GPU 0: nvJPEG fails on sample 0"));
  }
  EXPECT_EQ(gpus_->stats()[0].groups_failed_total, 1u);
  result = pipeline.Run(photos_);
  EXPECT_TRUE(result.ok());
  EXPECT_EQ(result.rows, expected);
  EXPECT_EQ(SlotsInUse(), 0);
}

TEST_F(NvjpegShapes, ACudaBackendThatFailsFailsTheGroup) {
  WithoutEngines();
  Open();
  GpuPipeline pipeline(CropGraph(24), *gpus_, DecoderClass::kNvjpeg);
  fake_->Fail("nvjpegDecodeJpegHost", 2, false, 6);
  ExpectExact(pipeline, photos_);
  for (const uint64_t nth : {2, 3})
    fake_->Fail("nvjpegDecodeJpegHost", nth, false, 8);
  for (const absl::Status& status : pipeline.Run(photos_).computed)
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  ExpectExact(pipeline, photos_);
}

TEST_F(NvjpegShapes, AQuestionThatFailsIsAskedAgain) {
  Open();
  GpuPipeline pipeline(CropGraph(24), *gpus_, DecoderClass::kNvjpeg);
  fake_->Fail("nvjpegDecodeBatchedSupportedEx", 1, false, 6);
  ExpectExact(pipeline, photos_);
  fake_->Fail("nvjpegDecodeBatchedSupportedEx", 1, true, 6);
  for (const absl::Status& status : pipeline.Run(photos_).prepared)
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(SlotsInUse(), 0);
}

// Whatever an engine reports about damaged files, they are the samples' fault.
TEST_F(NvjpegShapes, ADamagedImageIsFoundOutByTheHost) {
  for (const bool engines : {true, false})
    for (const int code : {2, 3, 4, 6, 8, 10}) {
      fake_->Set("engines", engines ? 7 : 0);
      fake_->Set("damaged", code);
      fake_->Set("batch_damaged", code);
      fake_->Set("gray", 0);
      Open();
      GpuPipeline pipeline(CropGraph(32), *gpus_, DecoderClass::kNvjpeg);
      std::vector<std::string> files = photos_;
      std::string& broken = files[3];
      for (size_t i = broken.size() / 2; i < broken.size() - 2; ++i)
        broken[i] = static_cast<char>(0xff);
      const GroupResult result = pipeline.Run(files);
      ASSERT_EQ(result.computed.size(), files.size());
      for (size_t row = 0; row < files.size(); ++row) {
        const auto expected = pipeline.OnCpu(files[row], row);
        EXPECT_EQ(result.computed[row], expected.status()) << code;
        if (expected.ok()) {
          EXPECT_EQ(result.rows[row], *expected) << row;
        }
      }
      EXPECT_EQ(gpus_->stats()[0].groups_failed_total, 0u);
      Close();
    }
}

TEST_F(NvjpegShapes, FilesAreInPageLockedMemoryIfThereIsRoom) {
  std::vector<std::string> files;
  while (files.size() < 64)
    files.push_back(MakeJpeg({.width = 400, .height = 300, .quality = 98}));
  for (const uint64_t slot_bytes : {16 << 20, 1 << 20}) {
    config_.slot_bytes = slot_bytes;
    fake_->Set("refuse_pinned", 0);
    Open();
    GpuPipeline pipeline(CropGraph(24), *gpus_, DecoderClass::kNvjpeg);
    ExpectExact(pipeline, files);
    const int64_t pageable = fake_->Count("pageable_files");
    EXPECT_EQ(pageable > 0, slot_bytes == 1 << 20);
    EXPECT_LT(pageable, 64);
    Close();
  }
}

TEST_F(NvjpegShapes, OneBadImageCostsFewBatches) {
  fake_->Set("gray", 0);
  Open();
  GpuPipeline pipeline(CropGraph(32), *gpus_, DecoderClass::kNvjpeg);
  std::vector<std::string> files;
  for (size_t i = 0; i < kMaxGpuGroupRows; ++i)
    files.push_back(MakeJpeg({.seed = static_cast<uint32_t>(i) + 1}));
  std::string& broken = files[77];
  for (size_t i = broken.size() / 2; i < broken.size() - 2; ++i)
    broken[i] = static_cast<char>(0xff);
  const uint64_t before = fake_->Calls("nvjpegDecodeBatchedEx");
  const GroupResult result = pipeline.Run(files);
  // Two of each size below 128, and a second try for the image itself.
  EXPECT_LE(fake_->Calls("nvjpegDecodeBatchedEx") - before, 16u);
  for (size_t row = 0; row < files.size(); ++row)
    EXPECT_EQ(result.computed[row].ok(), row != 77) << row;
}

// The header does not show it, so the engines would be used, and they replace
// the missing part by gray.
TEST_F(NvjpegShapes, ATruncatedFileIsDamagedThoughTheEnginesTakeIt) {
  for (const bool engines : {true, false}) {
    fake_->Set("engines", engines ? 7 : 0);
    Open();
    GpuPipeline pipeline(CropGraph(32), *gpus_, DecoderClass::kNvjpeg);
    std::vector<std::string> files = photos_;
    files[2].resize(files[2].size() * 3 / 4);
    const GroupResult result = pipeline.Run(files);
    EXPECT_TRUE(absl::IsDataLoss(result.prepared[2])) << result.prepared[2];
    Close();
  }
}

TEST_F(NvjpegShapes, APreAllocationThatSucceedsChangesNoByte) {
  for (const uint64_t fault : {0, 5, 9}) {
    fake_->Set("preallocate", fault);
    Open();
    GpuPipeline pipeline(CropGraph(24), *gpus_, DecoderClass::kNvjpeg);
    ExpectExact(pipeline, photos_);
    EXPECT_GT(fake_->Count("hardware_images"), 0);
    Close();
  }
}

// Smaller batches fit, and the bound is kept.
TEST_F(NvjpegShapes, NvjpegTakesNoMoreThanItMay) {
  config_.decoder_bytes = kMaxNvjpegImageBytes;
  config_.slots = 2;
  for (const bool engines : {true, false}) {
    fake_->Set("engines", engines ? 7 : 0);
    Open();
    GpuPipeline pipeline(CropGraph(24), *gpus_, DecoderClass::kNvjpeg);
    const uint64_t before = gpus_->stats()[0].memory_bytes;
    for (int more = 0; more < 1200; more += testing::kSanitized ? 240 : 60) {
      std::vector<std::string> files;
      for (int i = 1; i <= 4; ++i)
        files.push_back(
            MakeJpeg({.width = 100 * i + more, .height = 80 * i + more}));
      ExpectExact(pipeline, files);
    }
    const uint64_t after = gpus_->stats()[0].memory_bytes;
    EXPECT_GT(after, before);
    EXPECT_LE(after - before, 2 * config_.decoder_bytes);
    Close();
  }
}

class NvjpegShapesOf : public NvjpegShapes,
                       public ::testing::WithParamInterface<TestData> {};
INSTANTIATE_TEST_SUITE_P(Data, NvjpegShapesOf, AllTestData(), TestDataName);

TEST_P(NvjpegShapesOf, PhotosThatAreReducedAreNearTheWholeOnes) {
  const auto files = TestDataFiles(GetParam(), "imagenet-sample", 100);
  if (files.empty()) GTEST_SKIP() << NoTestData(GetParam(), "imagenet-sample");
  scales_ = true;
  Open();
  for (const int64_t size : {32, 64, 128}) {
    GpuPipeline pipeline(CropGraph(size), *gpus_, DecoderClass::kNvjpeg);
    double sum = 0, most = 0;
    for (size_t begin = 0; begin < files.size(); begin += 100) {
      const std::vector<std::string> group(
          files.begin() + static_cast<ptrdiff_t>(begin),
          files.begin() +
              static_cast<ptrdiff_t>(std::min(begin + 100, files.size())));
      const GroupResult result = pipeline.Run(group);
      ASSERT_TRUE(result.ok());
      for (size_t row = 0; row < group.size(); ++row) {
        const double difference =
            MeanDifference(result.rows[row], *pipeline.OnCpu(group[row], row));
        sum += difference;
        most = std::max(most, difference);
      }
    }
    const double mean = sum / static_cast<double>(files.size());
    RecordProperty("mean_" + std::to_string(size), std::to_string(mean));
    RecordProperty("most_" + std::to_string(size), std::to_string(most));
    EXPECT_LT(mean, 2.5) << size;
    EXPECT_LT(most, 12) << size;
  }
  EXPECT_GT(fake_->Count("scaled_images"), 100);
}

}  // namespace
}  // namespace leat::worker
