// SPDX-License-Identifier: Apache-2.0
//
// Rows whose pixels kernels make from coefficients have the CPU's bytes, for
// every kind of file, with and without forms; and which rows these are.
#include <random>

#include "tests/support/sanitized.h"
#include "tests/support/test_data.h"
#include "tests/worker/gpu/groups/group_test.h"
#include "tests/worker/image/jpeg/forms/random_keeper.h"
#include "worker/gpu/decoding/jpeg_upload.h"

namespace leat::worker {
namespace {

using testing::JpegColor;
using testing::JpegSpec;
using testing::MakeJpeg;

constexpr int kSamplings[][2] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}};

class GpuCoefficientsTest : public HostGroupTest {
 protected:
  uint64_t Coefficients() const {
    return gpus_->stats()[0].rows_coefficients_total;
  }
};

Value SideOf(int64_t side) { return Value(std::vector<int64_t>{side, side}); }

// Windows of any size, the whole image, and unchanged pixels.
std::vector<Graph> Graphs() {
  std::vector<Graph> graphs;
  for (const bool gray : {false, true}) {
    graphs.push_back(
        ChainOf({{"random_resized_crop",
                  {},
                  {{"size", SideOf(24)},
                   {"area", Value(std::vector<double>{0.0001, 1.0})}}}},
                gray));
    graphs.push_back(ChainOf({{"resize", {}, {{"size", SideOf(40)}}}}, gray));
    graphs.push_back(
        ChainOf({{"random_resized_crop", {}, {{"size", SideOf(1)}}}}, gray));
  }
  return graphs;
}

// Files of every sampling and orientation, with sizes that are multiples of the
// MCU's and others.
std::vector<std::string> FilesOfEveryKind() {
  std::vector<std::string> files;
  std::mt19937 random(8);
  for (const auto& [h, v] : kSamplings)
    for (int orientation = 1; orientation <= 8; ++orientation)
      files.push_back(MakeJpeg({.width = 1 + static_cast<int>(random() % 130),
                                .height = 1 + static_cast<int>(random() % 130),
                                .h = h,
                                .v = v,
                                .quality = 10 + static_cast<int>(random() % 91),
                                .orientation = orientation,
                                .seed = static_cast<uint32_t>(random())}));
  for (const int side : {1, 2, 3, 5, 8, 16, 32, 64})
    files.push_back(MakeJpeg({.width = side, .height = 65 - side}));
  for (const int side : {1, 17, 64})
    files.push_back(MakeJpeg({.width = side,
                              .height = 70,
                              .color = JpegColor::kGray,
                              .h = side % 2 + 1,
                              .v = 1}));
  return files;
}

TEST_F(GpuCoefficientsTest, RowsOfEverySamplingAreTheCpus) {
  Open();
  const std::vector<std::string> files = FilesOfEveryKind();
  uint64_t rows = 0;
  for (const Graph& graph : Graphs()) {
    GpuPipeline pipeline(graph, *gpus_);
    ExpectExact(pipeline, files);
    rows += files.size();
    EXPECT_EQ(Coefficients(), rows);
  }
  EXPECT_EQ(gpus_->stats()[0].rows_exact_total, rows);
}

TEST_F(GpuCoefficientsTest, OddFilesAreLibjpegs) {
  Open();
  std::vector<std::string> files;
  for (const JpegSpec& spec :
       {JpegSpec{.progressive = true}, JpegSpec{.arithmetic = true},
        JpegSpec{.h = 4, .v = 1}, JpegSpec{.h = 1, .v = 3},
        JpegSpec{.color = JpegColor::kRgb}, JpegSpec{.color = JpegColor::kCmyk},
        JpegSpec{.color = JpegColor::kYcck}})
    files.push_back(MakeJpeg(spec));
  for (const Graph& graph : Graphs()) {
    GpuPipeline pipeline(graph, *gpus_);
    ExpectExact(pipeline, files);
  }
  EXPECT_EQ(Coefficients(), 0u);
}

// libjpeg decodes rows that make forms, and those that copy pixels.
TEST_F(GpuCoefficientsTest, RowsWithFormsAreTheCpus) {
  Open();
  const std::vector<std::string> files = FilesOfEveryKind();
  RandomKeeper keeper(4);
  uint64_t rows = 0;
  for (int i = 0; i < 3; ++i)
    for (const Graph& graph : Graphs()) {
      GpuPipeline pipeline(graph, *gpus_);
      pipeline.forms = &keeper;
      ExpectExact(pipeline, files);
      rows += files.size();
    }
  EXPECT_GT(keeper.used, 100);
  EXPECT_GT(keeper.made, 100);
  EXPECT_GT(Coefficients(), rows / 5);
  EXPECT_LT(Coefficients(), 2 * rows / 3);
}

TEST_F(GpuCoefficientsTest, PartnersAreMadeOfThemToo) {
  Open();
  GpuPipeline pipeline(MixupGraph(16), *gpus_);
  std::vector<std::string> files = FilesOfEveryKind();
  files.resize(40);  // MixupGraph's classes
  ExpectExact(pipeline, files);
  EXPECT_EQ(Coefficients(), files.size());
  EXPECT_EQ(pipeline.asked, 0);
}

// Images get room in the order in which they are prepared; the host decodes
// those that find none.
TEST_F(GpuCoefficientsTest, ImagesThatFindNoRoomAreLibjpegs) {
  config_.decode_bytes = 1 << 20;
  Open();
  GpuPipeline pipeline(ChainOf({{"resize", {}, {{"size", SideOf(20)}}}}),
                       *gpus_);
  std::vector<std::string> files;
  for (uint32_t i = 0; i < 20; ++i)
    files.push_back(MakeJpeg({.width = 150, .height = 120, .seed = i}));
  ExpectExact(pipeline, files);
  // 72,000 bytes of pixels and half as many samples, of 160 × 128, and less than
  // 4 KiB of working memory.
  EXPECT_LE(Coefficients(), (1u << 20) / (72'000 + 20'480 * 3 / 2));
  EXPECT_GE(Coefficients(), (1u << 20) / (76'096 + 20'480 * 3 / 2));
}

TEST_F(GpuCoefficientsTest, ADeviceWithoutADecoderMakesThem) {
  options_.decodes = false;
  Open();
  GpuPipeline pipeline(CropGraph(32), *gpus_);
  ExpectExact(pipeline, {MakeJpeg({}), MakeJpeg({.h = 1, .v = 1})});
  EXPECT_EQ(Coefficients(), 2u);
}

TEST_F(GpuCoefficientsTest, AreOfClassExactOnly) {
  Open();
  GpuPipeline pipeline(CropGraph(32), *gpus_, DecoderClass::kNvjpeg);
  ExpectExact(pipeline, {MakeJpeg({}), MakeJpeg({.progressive = true})});
  EXPECT_EQ(Coefficients(), 0u);
}

class GpuCoefficientsOf : public GpuCoefficientsTest,
                          public ::testing::WithParamInterface<TestData> {};
INSTANTIATE_TEST_SUITE_P(Data, GpuCoefficientsOf, AllTestData(), TestDataName);

TEST_P(GpuCoefficientsOf, PhotosAreTheCpus) {
  const auto photos = TestDataFiles(GetParam(), "imagenet-sample",
                                    testing::kSanitized ? 8 : 40);
  if (photos.empty()) GTEST_SKIP() << NoTestData(GetParam(), "imagenet-sample");
  config_.slot_bytes = 64 << 20;
  Open();
  GpuPipeline pipeline(CropGraph(64), *gpus_);
  ExpectExact(pipeline, photos);
  EXPECT_GE(Coefficients() * 10, photos.size() * 8);
}

}  // namespace
}  // namespace leat::worker
