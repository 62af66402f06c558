// SPDX-License-Identifier: Apache-2.0
//
// A GPU worker's kernels, through the fake driver: they give the CPU's bytes.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "tests/worker/gpu/device_bytes.h"
#include "tests/worker/gpu/fixture.h"
#include "tests/worker/gpu/groups/compare.h"
#include "tests/worker/gpu/groups/reduced_graphs.h"
#include "worker/compute/host_share.h"

namespace leat::worker {
namespace {

using testing::MakeJpeg;

// A part of the partner's image, pasted into the row's own.
Graph PastedGraph() {
  Graph graph = CutMixGraph(32);
  graph.outputs[1].second = {0, 1};
  return graph;
}

// groups/group_test.cc has more of them, without a driver.
TEST_F(GpuTest, RowsOfRandomPipelinesAreTheCpus) {
  Open();
  CompareRandomGroups(*gpus_, 8, DecoderClass::kExact);
  CompareRandomStagedGroups(*gpus_, StagedPipelines(12));
}

// The host decodes their images, even if the GPU has engines.
TEST_F(GpuTest, ReducedRowsAreTheCpus) {
  Open();
  const std::vector<std::string> files = FilesForReducing();
  int compared = 0;
  for (const DecoderClass decoder :
       {DecoderClass::kExact, DecoderClass::kNvjpeg})
    for (const Graph& graph : ReducedGraphs()) {
      if (decoder == DecoderClass::kNvjpeg &&
          !CheckDecoderForms(*Check(graph)).ok())
        continue;
      GpuPipeline pipeline(graph, *gpus_, decoder);
      if (!pipeline.kernel().staged(false)) continue;  // all of it the CPU's
      ExpectExact(pipeline, files);
      ++compared;
    }
  EXPECT_GE(compared, 7);
  EXPECT_EQ(gpus_->stats()[0].rows_hardware_total, 0u);
  EXPECT_EQ(gpus_->stats()[0].rows_kernels_total, 0u);
}

TEST_F(GpuTest, RowsAreWrittenStraightIntoSharedDeviceMemory) {
  config_.slot_bytes = 1 << 20;
  Open();
  const std::vector<std::string> files(7,
                                       MakeJpeg({.width = 600, .height = 400}));
  const std::pair<Graph, DecoderClass> cases[] = {
      {CropGraph(32), DecoderClass::kExact},
      {CropGraph(32), DecoderClass::kNvjpeg},
      {UnfusedGraph(), DecoderClass::kExact},
      {PastedGraph(), DecoderClass::kExact},
      {PastedGraph(), DecoderClass::kExact},
      {StagedGraph(), DecoderClass::kExact}};
  for (const auto& [graph, decoder_class] : cases) {
    GpuPipeline pipeline(graph, *gpus_, decoder_class);
    const std::vector<size_t> bytes = {32 * 32 * 3, 4, 1};
    const std::vector<uint64_t> offsets = {0, 40'000, 60'000};
    const std::vector<uint32_t> slots = {6, 0, 3, 1, 2, 5, 7};
    const DeviceBytes memory(100'000);
    const GroupOutputs outputs{.rows = 7,
                               .base = memory.data(),
                               .device = 0,
                               .offsets = offsets,
                               .field_bytes = bytes,
                               .slots = slots};
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

// A row that a kernel finds bad has been written to the device's memory by
// then.
TEST_F(GpuTest, RowsThatFailByTheirPixelsAreTheCpusInDeviceMemory) {
  Open();
  GpuPipeline pipeline(DividingGraph(32), *gpus_);
  ASSERT_TRUE(pipeline.kernel().staged(false));
  constexpr size_t kRows = 12, kImage = 32 * 32 * 3;
  const std::vector<size_t> bytes = {kImage, 4, kImage * 4, 1};
  const std::vector<uint64_t> offsets = {0, 40'000, 80'000, 600'000};
  const DeviceBytes memory(700'000);
  const GroupOutputs outputs{.rows = kRows,
                             .base = memory.data(),
                             .device = 0,
                             .offsets = offsets,
                             .field_bytes = bytes};
  const auto group = pipeline.kernel().BeginGroup(outputs);
  std::vector<std::string> files;
  for (uint32_t i = 0; i < kRows; ++i)
    files.push_back(MakeJpeg({.width = 90, .height = 70, .seed = i}));
  for (size_t row = 0; row < kRows; ++row)
    ASSERT_TRUE(pipeline.Prepare(*group, row, files[row]).ok());
  const std::vector<absl::Status> first = GpuPipeline::RunGroup(*group);
  size_t failed = 0;
  for (size_t row = 0; row < kRows; ++row) {
    const absl::Status expected = pipeline.OnCpu(files[row], row).status();
    ASSERT_EQ(absl::IsAborted(first[row]), !expected.ok()) << first[row];
    if (first[row].ok()) continue;
    ++failed;
    EXPECT_EQ(pipeline.Prepare(*group, row, files[row]), expected);
  }
  EXPECT_GT(failed, 1u);
  EXPECT_LT(failed, kRows - 1);
  for (const absl::Status& status : GpuPipeline::RunGroup(*group))
    EXPECT_TRUE(status.ok()) << status;
  for (size_t row = 0; row < kRows; ++row) {
    RowBytes got;
    for (size_t f = 0; f < 3; ++f)
      got.insert(got.end(), outputs.At(f, row), outputs.At(f, row) + bytes[f]);
    EXPECT_EQ(*outputs.At(3, row), std::byte{first[row].ok()}) << row;
    EXPECT_EQ(got, first[row].ok() ? *pipeline.OnCpu(files[row], row)
                                   : RowBytes(got.size(), std::byte{0}))
        << row;
  }
}

// The label, which the fused kernel writes though it has no view of its own.
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

TEST_F(GpuTest, WithoutEnginesCudaDecodes) {
  WithoutEngines();
  Open();
  GpuPipeline pipeline(CropGraph(96), *gpus_, DecoderClass::kNvjpeg);
  ExpectExact(pipeline, OddImages());
  EXPECT_GT(gpus_->stats()[0].rows_kernels_total, 0u);
  EXPECT_EQ(gpus_->stats()[0].rows_hardware_total, 0u);
}

TEST_F(GpuTest, SizesFollowFromTheGpusMemory) {
  constexpr uint64_t kGiB = uint64_t{1} << 30, kMiB = 1 << 20;
  const GpuConfig small = GpuConfig{}.For(8 * kGiB);
  const GpuConfig large = GpuConfig{}.For(141 * kGiB);
  EXPECT_EQ(small.group_bytes, 16 * kMiB);
  EXPECT_EQ(small.decode_bytes, 256 * kMiB);
  EXPECT_EQ(small.decoder_bytes, kGiB);
  EXPECT_EQ(large.group_bytes, 64 * kMiB);
  EXPECT_EQ(large.decode_bytes, kGiB);
  EXPECT_EQ(large.decoder_bytes, 2 * kGiB);
  EXPECT_EQ(large.For(8 * kGiB).group_bytes, large.group_bytes) << "if set";
  config_ = {.slots = 1};
  const Graph graph = CropGraph(224);
  uint64_t held[2] = {};
  for (const bool more : {false, true}) {
    fake_->Set("memory", more ? 64 * kGiB : 16 * kGiB);
    Open();
    GpuPipeline pipeline(graph, *gpus_);
    const size_t bytes = pipeline.schema().row_bytes();
    EXPECT_EQ(gpus_->group_bytes(), (more ? 32 : 16) * kMiB);
    EXPECT_EQ(
        pipeline.kernel().most_rows(),
        std::min<size_t>((more ? 32 : 16) * kMiB / bytes, kMaxGpuGroupRows));
    held[more] = gpus_->stats()[0].memory_bytes;
    Close();
  }
  EXPECT_GE(held[1], held[0] + 256 * kMiB);
}

// tests/golden does not know this rule: these are of a second implementation,
// by Python's hashlib.
TEST_F(GpuTest, TheFileAloneDecidesWhoseItIs) {
  std::vector<size_t> hosts;
  for (size_t i = 0; i < 40; ++i) {
    std::vector<std::byte> file(40 * i);
    for (size_t j = 0; j < file.size(); ++j)
      file[j] = static_cast<std::byte>(j * (i + 1) * 7 + i);
    if (IsHosts(file)) hosts.push_back(i);
  }
  EXPECT_EQ(hosts, (std::vector<size_t>{3, 6, 11, 13, 27, 29, 35, 39}));
}

TEST_F(GpuTest, AShareOfTheFilesIsDecodedAsInClassExact) {
  std::vector<std::string> files;
  size_t hosts = 0;
  for (uint32_t i = 0; i < 60; ++i) {
    files.push_back(MakeJpeg({.width = 100 + static_cast<int>(i),
                              .height = 90,
                              .h = 1 + static_cast<int>(i % 2),
                              .v = 1 + static_cast<int>(i / 2 % 2),
                              .seed = i + 1}));
    hosts += IsHosts(AsSpan(files.back()));
  }
  ASSERT_GT(hosts, 5u);
  Open();
  EXPECT_THAT(gpus_->decoder_classes(),
              ::testing::Contains(DecoderClass::kNvjpegShared));
  GpuPipeline pipeline(CropGraph(32), *gpus_, DecoderClass::kNvjpegShared);
  // Whatever else is in the group.
  for (const size_t groups : {1, 4}) {
    const GpuStats before = gpus_->stats()[0];
    for (size_t begin = 0; begin < files.size(); begin += files.size() / groups)
      ExpectExact(pipeline,
                  {files.begin() + static_cast<ptrdiff_t>(begin),
                   files.begin() +
                       static_cast<ptrdiff_t>(begin + files.size() / groups)});
    const GpuStats after = gpus_->stats()[0];
    EXPECT_EQ(after.rows_hardware_total - before.rows_hardware_total,
              files.size() - hosts);
    EXPECT_EQ(after.rows_host_total - before.rows_host_total, hosts);
    EXPECT_EQ(after.rows_codes_total - before.rows_codes_total, hosts);
  }
}

// Kernels make their images beside those of the engines.
TEST_F(GpuTest, LargeImagesOfASharedClassHaveRoomBesideEachOther) {
  config_.slot_bytes = 64 << 20;
  regions_ = false;
  const std::string photo =
      MakeJpeg({.width = 4000, .height = 3000, .quality = 30});
  std::vector<std::string> files;
  // Decoders ignore bytes after the end of an image, and IsHosts does not.
  for (size_t more = 0; files.size() < 5; ++more) {
    std::string file = photo + std::string(more, '\0');
    if (IsHosts(AsSpan(file)) == (files.size() % 2 == 1))
      files.push_back(std::move(file));
  }
  config_.decode_bytes = kMaxNvjpegImageBytes + (uint64_t{160} << 20);
  Open();
  GpuPipeline pipeline(CropGraph(16), *gpus_, DecoderClass::kNvjpegShared);
  ExpectExact(pipeline, files);
  EXPECT_EQ(gpus_->stats()[0].rows_hardware_total, 3u);
  EXPECT_GT(gpus_->stats()[0].rows_codes_total, 0u);
}

TEST_F(GpuTest, ImagesBeyondTheDecodersMemoryTakeSeveralPasses) {
  config_.decode_bytes = kMaxNvjpegImageBytes;
  regions_ = false;
  Open();
  GpuPipeline pipeline(CropGraph(16), *gpus_, DecoderClass::kNvjpeg);
  const std::vector<std::string> files(
      5, MakeJpeg({.width = 4000, .height = 3000, .quality = 30}));
  ExpectExact(pipeline, files);
}

// Another process, whose driver is alone in its folder: a library that was
// loaded once stays loaded.
using GpuWithoutVideo = GpuTest;
TEST_F(GpuWithoutVideo, SaysWhatAContainerNeeds) {
  if (std::string(std::getenv("LEAT_CUDA_LIBRARY")).find("compute") ==
      std::string::npos)
    GTEST_SKIP() << "this driver has libnvcuvid beside it";
  Open();
  EXPECT_EQ(gpus_->devices()[0].jpeg_engines, 0);
  EXPECT_THAT(gpus_->devices()[0].no_engines,
              ::testing::AllOf(
                  ::testing::HasSubstr("ARCH_MISMATCH (7); no libnvcuvid.so.1 "
                                       "could be loaded: "),
                  ::testing::HasSubstr("fake_cuda_compute/libnvcuvid.so.1"),
                  ::testing::EndsWith(": a container needs "
                                      "NVIDIA_DRIVER_CAPABILITIES with "
                                      "video")));
  GpuPipeline pipeline(CropGraph(96), *gpus_, DecoderClass::kNvjpeg);
  ExpectExact(pipeline, OddImages());
  EXPECT_EQ(gpus_->stats()[0].rows_hardware_total, 0u);
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
