// SPDX-License-Identifier: Apache-2.0
//
// A GPU worker's kernels, through the fake driver: the same bytes as the CPU's.
#include <random>

#include "cuda/driver.h"
#include "gmock/gmock.h"
#include "tests/support/image_maker.h"
#include "tests/worker/gpu/fused_graphs.h"
#include "tests/worker/gpu/gpu_test.h"
#include "tests/worker/gpu/staged_graphs.h"

namespace leat::worker {
namespace {

using testing::MakeJpeg;

// Image and label; `last` behind the image.
Graph WithLast(Graph graph, Node last) {
  last.inputs = {graph.outputs[0].second};
  graph.nodes.push_back(std::move(last));
  graph.outputs[0].second.node = static_cast<uint32_t>(graph.nodes.size() - 1);
  return graph;
}
// An operator without a kernel.
Graph UnfusedGraph() {
  return WithLast(CropGraph(32), {"jpeg_compression_distortion", {}, {}});
}
// Resized twice: a stage.
Graph StagedGraph() {
  return WithLast(CropGraph(16),
                  {"resize", {}, {{"size", std::vector<int64_t>{32, 32}}}});
}

// Whoever asks is told, and asks elsewhere.
TEST_F(GpuTest, RowsInTheMemoryOfAGpuThatDoesNotComputeTheJobAreRefused) {
  Open();
  GpuPipeline pipeline(CropGraph(32), *gpus_);
  ASSERT_TRUE(pipeline.kernel().CanBegin(5));
  const auto group = pipeline.kernel().BeginGroup({.rows = 2, .device = 5});
  ASSERT_NE(group, nullptr);
  const absl::Status status = pipeline.Prepare(*group, 0, MakeJpeg({}));
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(Message(status)), ::testing::HasSubstr("GPU 5"));
  for (const absl::Status& row : GpuPipeline::RunGroup(*group))
    EXPECT_EQ(row, status);
}

TEST_F(GpuTest, ExactRowsOfRandomPipelinesAreTheCpus) {
  Open();
  std::mt19937 random(20'260'101);
  const std::vector<std::string> files = OddImages();
  int computed = 0;
  for (int i = 0; i < 60; ++i) {
    GpuPipeline pipeline(RandomGraph(random).Make(), *gpus_);
    ASSERT_TRUE(pipeline.kernel().staged(false));
    std::vector<std::string> group;
    std::vector<RowBytes> expected;
    for (const std::string& file : files) {
      const auto row = pipeline.OnCpu(file, group.size());
      if (!row.ok()) continue;  // smaller than the crop
      group.push_back(file);
      expected.push_back(*row);
    }
    if (group.empty()) continue;
    const GroupResult result = pipeline.Run(group);
    ASSERT_TRUE(result.ok());
    for (size_t row = 0; row < group.size(); ++row, ++computed)
      ASSERT_EQ(result.rows[row], expected[row])
          << "graph " << i << " row " << row;
  }
  EXPECT_GT(computed, 300);
}

TEST_F(GpuTest, RowsOfPipelinesWithStagesAreTheCpus) {
  Open();
  std::mt19937 random(20'260'302);
  const std::vector<std::string> files = OddImages();
  int staged = 0;
  for (int i = 0; i < 60; ++i) {
    const Graph graph = RandomStagedGraph(random).Make(12);
    if (!Check(graph).ok()) continue;  // an output without a size
    GpuPipeline pipeline(graph, *gpus_);
    if (!pipeline.kernel().staged(false)) continue;
    ++staged;
    std::vector<std::string> group;
    std::vector<RowBytes> expected;
    for (const std::string& file : files) {
      const auto row = pipeline.OnCpu(file, group.size());
      if (!row.ok()) continue;
      group.push_back(file);
      expected.push_back(*row);
    }
    if (group.empty()) continue;
    const GroupResult result = pipeline.Run(group);
    ASSERT_TRUE(result.ok());
    for (size_t row = 0; row < group.size(); ++row)
      ASSERT_EQ(result.rows[row], expected[row]) << "row " << row << "\n"
                                                 << CanonicalText(graph);
  }
  EXPECT_GT(staged, 30);
}

TEST_F(GpuTest, ValuesThatDoNotFitTheSlotLeaveTheJobToTheCores) {
  config_.slot_bytes = 1 << 20;
  config_.group_bytes = 8 << 20;
  Open();
  GpuPipeline large(WithLast(CropGraph(300), {"invert", {}, {}}), *gpus_);
  EXPECT_FALSE(large.kernel().staged(false));
  GpuPipeline small(StagedGraph(), *gpus_);
  EXPECT_TRUE(small.kernel().staged(false));
}

// The image is damaged, and not needed where the coin says so.
TEST_F(GpuTest, AnImageThatIsNotChosenMayBeDamaged) {
  Open();
  Graph graph = CropGraph(12);
  graph.nodes.push_back({"invert", {{2, 0}}, {}});
  graph.nodes.push_back({"coin_flip", {}, {}});
  graph.nodes.push_back({"constant",
                         {},
                         {{"values", std::vector<double>(12 * 12 * 3, 7)},
                          {"shape", std::vector<int64_t>{12, 12, 3}},
                          {"dtype", Value(std::string("uint8"))}}});
  graph.nodes.push_back({"where", {{4, 0}, {5, 0}, {3, 0}}, {}});
  graph.outputs[0].second = {6, 0};
  GpuPipeline pipeline(graph, *gpus_);
  ASSERT_TRUE(pipeline.kernel().staged(false));
  GroupMemory memory(pipeline.schema(), 16);
  const GroupOutputs outputs = memory.Outputs(16);
  const auto group = pipeline.kernel().BeginGroup(outputs);
  int good = 0;
  for (size_t row = 0; row < 16; ++row) {
    const auto want = pipeline.OnCpu("damaged", row);
    EXPECT_EQ(pipeline.Prepare(*group, row, "damaged"), want.status()) << row;
    good += want.ok() ? 1 : 0;
  }
  EXPECT_GT(good, 2);
  EXPECT_LT(good, 14);
}

TEST_F(GpuTest, AFaultySampleFailsAsOnTheCpu) {
  Open();
  GpuPipeline pipeline(CropGraph(224), *gpus_);
  const std::string good = MakeJpeg({.width = 300, .height = 200});
  std::vector<std::string> bad = {
      "not a JPEG", good.substr(0, good.size() / 2),
      testing::MakeJpegClaiming(65'500, 65'500),
      MakeJpeg({.width = 300, .height = 200, .scans = 200})};
  std::string broken = good;
  for (size_t i = broken.size() / 2; i < broken.size() / 2 + 40; ++i)
    broken[i] = '\xff';
  bad.push_back(broken);
  for (const std::string& file : bad) {
    const GroupResult result = pipeline.Run({good, file});
    ASSERT_EQ(result.prepared.size(), 2u);
    EXPECT_TRUE(result.prepared[0].ok());
    EXPECT_EQ(result.prepared[1], pipeline.OnCpu(file, 1).status());
    EXPECT_FALSE(result.prepared[1].ok());
  }
  EXPECT_EQ(SlotsInUse(), 0);
}

TEST_F(GpuTest, RowsThatDoNotFitTheSlotAreComputedByTheCpu) {
  config_.slot_bytes = 1 << 20;
  Open();
  GpuPipeline pipeline(CropGraph(64), *gpus_);
  std::vector<std::string> files;
  for (uint32_t i = 0; i < 12; ++i)
    files.push_back(MakeJpeg({.width = 600, .height = 400, .seed = i}));
  ExpectExact(pipeline, files);
}

// Inverted before it is resized.
Graph OwnSizeGraph(int64_t size) {
  Graph graph = CropGraph(size);
  graph.nodes[2].inputs = {{2, 0}};
  graph.nodes.insert(graph.nodes.begin() + 2, {"invert", {{1, 0}}, {}});
  graph.outputs[0].second = {3, 0};
  return graph;
}

TEST_F(GpuTest, RowsThatAreTooLargeForTheirPlacesAreComputedByTheCpu) {
  config_.slot_bytes = 8 << 20;  // 32 KiB a row, for two values
  Open();
  GpuPipeline pipeline(OwnSizeGraph(16), *gpus_);
  ASSERT_TRUE(pipeline.kernel().staged(false));
  std::vector<std::string> files;
  for (int i = 0; i < 40; ++i)
    files.push_back(MakeJpeg({.width = 5 + i * 37 % 200,
                              .height = 5 + i * 53 % 190,
                              .orientation = 1 + i % 8,
                              .seed = static_cast<uint32_t>(i)}));
  ExpectExact(pipeline, files);
}

TEST_F(GpuTest, PixelsLeaveTheValuesOfStagesTheirRoom) {
  config_.slot_bytes = 1 << 20;
  Open();
  GpuPipeline pipeline(StagedGraph(), *gpus_);
  ASSERT_TRUE(pipeline.kernel().staged(false));
  std::vector<std::string> files;
  for (uint32_t i = 0; i < 30; ++i)
    files.push_back(MakeJpeg({.width = 500, .height = 300, .seed = i}));
  ExpectExact(pipeline, files);
}

TEST_F(GpuTest, PlacesMayBeAnywhere) {
  Open();
  GpuPipeline pipeline(CropGraph(32), *gpus_);
  const std::vector<uint32_t> places = {9, 3, 4, 5, 0, 11};
  const std::string file = MakeJpeg({.width = 90, .height = 80});
  GroupMemory memory(pipeline.schema(), 12);
  const GroupOutputs outputs = memory.Outputs(places.size(), places);
  const auto group = pipeline.kernel().BeginGroup(outputs);
  for (size_t row = 0; row < places.size(); ++row)
    ASSERT_TRUE(pipeline.Prepare(*group, row, file).ok());
  for (const absl::Status& status : GpuPipeline::RunGroup(*group))
    EXPECT_TRUE(status.ok());
  for (size_t row = 0; row < places.size(); ++row)
    EXPECT_EQ(memory.Row(outputs, row), *pipeline.OnCpu(file, row)) << row;
  const GroupOutputs all = memory.Outputs(12);
  for (const size_t untouched : {1, 2, 6, 7, 8, 10})
    EXPECT_THAT(memory.Row(all, untouched), ::testing::Each(std::byte{0x77}));
}

TEST_F(GpuTest, RowsThatWereNotPreparedBecomeZerosAndThenWhatReplacesThem) {
  Open();
  GpuPipeline pipeline(CropGraph(32), *gpus_);
  const std::string file = MakeJpeg({.width = 90, .height = 80});
  GroupMemory memory(pipeline.schema(), 2);
  const GroupOutputs outputs = memory.Outputs(2);
  const auto group = pipeline.kernel().BeginGroup(outputs);
  ASSERT_TRUE(pipeline.Prepare(*group, 1, file).ok());
  GpuPipeline::RunGroup(*group);
  EXPECT_THAT(memory.Row(outputs, 0), ::testing::Each(std::byte{0}));
  EXPECT_EQ(memory.Row(outputs, 1), *pipeline.OnCpu(file, 1));
}

// Memory of the device, which the fake has in the host's.
class DeviceBytes {
 public:
  explicit DeviceBytes(size_t bytes)
      : driver_(*cuda::LoadDriver(cuda::LibrarySearch::FromEnvironment())) {
    driver_->DevicePrimaryCtxRetain(&context_, 0);
    driver_->CtxSetCurrent(context_);
    driver_->MemAlloc(&address_, bytes);
  }
  ~DeviceBytes() {
    driver_->CtxSetCurrent(context_);
    driver_->MemFree(address_);
    driver_->DevicePrimaryCtxRelease(0);
  }
  std::byte* data() const { return reinterpret_cast<std::byte*>(address_); }

 private:
  const std::shared_ptr<const cuda::Driver> driver_;
  cuda::Context context_ = nullptr;
  cuda::DevicePtr address_ = 0;
};

TEST_F(GpuTest, RowsAreWrittenStraightIntoLentDeviceMemory) {
  config_.slot_bytes = 1 << 20;
  Open();
  const std::vector<std::string> files(7,
                                       MakeJpeg({.width = 600, .height = 400}));
  const std::pair<Graph, DecoderClass> cases[] = {
      {CropGraph(32), DecoderClass::kExact},
      {CropGraph(32), DecoderClass::kNvjpeg},
      {UnfusedGraph(), DecoderClass::kExact},
      {StagedGraph(), DecoderClass::kExact}};
  for (const auto& [graph, decoder_class] : cases) {
    GpuPipeline pipeline(graph, *gpus_, decoder_class);
    const std::vector<size_t> bytes = {32 * 32 * 3, 4, 1};
    const std::vector<uint64_t> offsets = {0, 40'000, 60'000};
    const std::vector<uint32_t> places = {6, 0, 3, 1, 2, 5, 7};
    const DeviceBytes memory(100'000);
    const GroupOutputs outputs{.rows = 7,
                               .base = memory.data(),
                               .device = 0,
                               .offsets = offsets,
                               .field_bytes = bytes,
                               .places = places};
    const auto group = pipeline.kernel().BeginGroup(outputs);
    for (size_t row = 0; row < 6; ++row)
      ASSERT_TRUE(pipeline.Prepare(*group, row, files[row]).ok());
    for (const absl::Status& status : GpuPipeline::RunGroup(*group))
      EXPECT_TRUE(status.ok()) << status;
    for (size_t row = 0; row < 7; ++row) {
      RowBytes got(outputs.At(0, row), outputs.At(0, row) + bytes[0]);
      got.insert(got.end(), outputs.At(1, row), outputs.At(1, row) + 4);
      EXPECT_EQ(*outputs.At(2, row), std::byte{row < 6}) << row;
      EXPECT_EQ(got, row < 6 ? *pipeline.OnCpu(files[row], row)
                             : RowBytes(got.size(), std::byte{0}))
          << row;
    }
  }
}

// The label, which the fused kernel writes though no view is its own.
TEST_F(GpuTest, HostValuesReachDeviceMemoryWhereSizesAreTheRowsOwn) {
  Open();
  GpuPipeline pipeline(OwnSizeGraph(8), *gpus_);
  ASSERT_TRUE(pipeline.kernel().staged(false));
  const std::vector<size_t> bytes = {8 * 8 * 3, 4};
  const std::vector<uint64_t> offsets = {0, 1024};
  const DeviceBytes memory(2048);
  const GroupOutputs outputs{.rows = 5,
                             .base = memory.data(),
                             .device = 0,
                             .offsets = offsets,
                             .field_bytes = bytes};
  const auto group = pipeline.kernel().BeginGroup(outputs);
  std::vector<std::string> files;
  for (int i = 0; i < 5; ++i)
    files.push_back(MakeJpeg({.width = 9 + 20 * i, .height = 70 - 12 * i}));
  for (size_t row = 0; row < 5; ++row)
    ASSERT_TRUE(pipeline.Prepare(*group, row, files[row]).ok());
  for (const absl::Status& status : GpuPipeline::RunGroup(*group))
    EXPECT_TRUE(status.ok()) << status;
  for (size_t row = 0; row < 5; ++row) {
    RowBytes got(outputs.At(0, row), outputs.At(0, row) + bytes[0]);
    got.insert(got.end(), outputs.At(1, row), outputs.At(1, row) + 4);
    EXPECT_EQ(got, *pipeline.OnCpu(files[row], row)) << row;
  }
}

TEST_F(GpuTest, NvjpegRowsAreThoseOfItsPixels) {
  Open();
  // The fake decodes as libjpeg does.
  GpuPipeline pipeline(CropGraph(96), *gpus_, DecoderClass::kNvjpeg);
  ExpectExact(pipeline, OddImages());
  const GpuStats stats = gpus_->stats()[0];
  EXPECT_GT(stats.rows_hardware_total, 0u);
  EXPECT_GT(stats.rows_host_total, 0u);  // progressive, YCCK
}

TEST_F(GpuTest, FormatsOtherThanJpegAreTheCpus) {
  Open();
  const testing::Picture picture = testing::MakePicture(90, 80, 3);
  for (const DecoderClass decoder_class :
       {DecoderClass::kExact, DecoderClass::kNvjpeg}) {
    GpuPipeline pipeline(CropGraph(32), *gpus_, decoder_class);
    ExpectExact(pipeline, {testing::MakePng(picture), MakeJpeg({}),
                           testing::MakeBmp(picture)});
  }
}

TEST_F(GpuTest, WithoutEnginesCudaDecodes) {
  WithoutEngines();
  Open();
  GpuPipeline pipeline(CropGraph(96), *gpus_, DecoderClass::kNvjpeg);
  ExpectExact(pipeline, OddImages());
  EXPECT_GT(gpus_->stats()[0].rows_cuda_total, 0u);
  EXPECT_EQ(gpus_->stats()[0].rows_hardware_total, 0u);
}

TEST_F(GpuTest, ImagesBeyondTheDecodersMemoryTakeSeveralPasses) {
  config_.decode_bytes = kMaxNvjpegImageBytes;
  regions_ = false;
  Open();
  GpuPipeline pipeline(CropGraph(16), *gpus_, DecoderClass::kNvjpeg);
  const std::vector<std::string> files(
      8, MakeJpeg({.width = 4000, .height = 3000, .quality = 30}));
  ExpectExact(pipeline, files);
}

TEST_F(GpuTest, APipelineThatCannotBeFusedGoesToTheCpuOrIsRefused) {
  Open();
  Graph graph = CropGraph(32);
  graph.nodes.push_back({"decode", {{0, 0}}, {}});
  graph.nodes.push_back(
      {"resize", {{3, 0}}, {{"size", std::vector<int64_t>{8, 8}}}});
  graph.outputs.push_back({"other", {4, 0}});
  const CheckedGraph checked = *Check(graph);
  const auto cpu = gpus_->kernels().compile(checked, 1, DecoderClass::kExact);
  ASSERT_TRUE(cpu.ok()) << cpu.status();
  EXPECT_FALSE((*cpu)->staged(false));
  const auto refused =
      gpus_->kernels().compile(checked, 1, DecoderClass::kNvjpeg).status();
  EXPECT_TRUE(absl::IsUnimplemented(refused)) << refused;
  EXPECT_THAT(std::string(Message(refused)), ::testing::HasSubstr("decode"));
}

TEST_F(GpuTest, SlotsAreBoundedAndComeBack) {
  config_.slots = 2;
  Open();
  GpuPipeline pipeline(CropGraph(32), *gpus_);
  GroupMemory memory(pipeline.schema(), 1);
  const GroupOutputs outputs = memory.Outputs(1);
  auto one = pipeline.kernel().BeginGroup(outputs);
  EXPECT_TRUE(pipeline.kernel().CanBegin(-1));
  const auto two = pipeline.kernel().BeginGroup(outputs);
  EXPECT_FALSE(pipeline.kernel().CanBegin(-1));
  EXPECT_EQ(pipeline.kernel().BeginGroup(outputs), nullptr);
  const uint32_t seen = wake_->Prepare();
  one.reset();
  EXPECT_NE(wake_->Prepare(), seen);
  EXPECT_TRUE(pipeline.kernel().CanBegin(-1));
  EXPECT_EQ(SlotsInUse(), 1);
}

TEST_F(GpuTest, AGroupGoesToTheGpuWithTheMostRoom) {
  WithGpus(2);
  Open();
  ASSERT_EQ(gpus_->devices().size(), 2u);
  GpuPipeline pipeline(CropGraph(32), *gpus_);
  GroupMemory memory(pipeline.schema(), 1);
  const GroupOutputs outputs = memory.Outputs(1);
  const auto one = pipeline.kernel().BeginGroup(outputs);
  const auto two = pipeline.kernel().BeginGroup(outputs);
  for (const GpuStats& stats : gpus_->stats()) EXPECT_EQ(stats.slots_in_use, 1);
}

class GpuOf : public GpuTest, public ::testing::WithParamInterface<TestData> {};
INSTANTIATE_TEST_SUITE_P(Data, GpuOf, AllTestData(), TestDataName);

TEST_P(GpuOf, PhotosGivesTheRowsOfTheCpu) {
  const auto files = TestDataFiles(GetParam(), "imagenet-sample", 48);
  if (files.empty()) GTEST_SKIP() << NoTestData(GetParam(), "imagenet-sample");
  Open();
  GpuPipeline exact(CropGraph(224), *gpus_);
  ExpectExact(exact, files);
  GpuPipeline nvjpeg(CropGraph(224), *gpus_, DecoderClass::kNvjpeg);
  ExpectExact(nvjpeg, files);
}

}  // namespace
}  // namespace leat::worker
