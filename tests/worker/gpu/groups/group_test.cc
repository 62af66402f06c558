// SPDX-License-Identifier: Apache-2.0
//
// Groups of rows, slots and kernels, on devices that are the host: they give
// the CPU's bytes.
#include "tests/worker/gpu/groups/group_test.h"

#include "gmock/gmock.h"
#include "tests/support/image_maker.h"
#include "tests/support/sanitized.h"
#include "tests/worker/gpu/groups/compare.h"
#include "worker/gpu/groups/kernel.h"
#include "worker/gpu/layout/fused_layout.h"

namespace leat::worker {
namespace {

using testing::MakeJpeg;

// The caller gets an error, and asks another worker.
TEST_F(HostGroupTest, RowsInTheMemoryOfAGpuThatDoesNotComputeTheJobAreRefused) {
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

TEST_F(HostGroupTest, ExactRowsOfRandomPipelinesAreTheCpus) {
  Open();
  CompareRandomGroups(*gpus_, testing::kSanitized ? 20 : 60,
                      DecoderClass::kExact);
}

// Images that the device's decoder takes, and others.
TEST_F(HostGroupTest, DecodedRowsOfRandomPipelinesAreTheCpus) {
  Open();
  CompareRandomGroups(*gpus_, 20, DecoderClass::kNvjpeg);
  EXPECT_GT(options_.stats->decoded.load(), 60u);
  EXPECT_GT(gpus_->stats()[0].rows_hardware_total, 60u);
  EXPECT_GT(gpus_->stats()[0].rows_host_total, 20u);
}

TEST_F(HostGroupTest, RowsOfPipelinesWithStagesAreTheCpus) {
  Open();
  constexpr int graphs = testing::kSanitized ? 15 : 60;
  CompareRandomStagedGroups(*gpus_, graphs);
  EXPECT_GT(gpus_->stats()[0].rows_hardware_total, graphs * 5u / 6);
}

// A group has as many rows as fit the slot. In class exact, cores compute jobs
// with too few of them.
TEST_F(HostGroupTest, ValuesThatDoNotFitTheSlotMakeGroupsSmaller) {
  config_.slot_bytes = 1 << 20;
  config_.group_bytes = 8 << 20;
  Open();
  const auto inverted = [](int64_t side) {
    return WithLast(CropGraph(side), {"invert", {}, {}});
  };
  const auto refused =
      gpus_->kernels()
          .compile(*Check(inverted(420)), DecoderClass::kNvjpeg)
          .status();  // over half of the slot
  EXPECT_TRUE(absl::IsUnimplemented(refused)) << refused;
  EXPECT_THAT(std::string(Message(refused)),
              ::testing::HasSubstr("--gpu-slot-bytes"));
  std::vector<std::string> files;
  for (uint32_t i = 0; i < 7; ++i)
    files.push_back(MakeJpeg({.width = 500, .height = 300, .seed = i}));
  for (const auto& [side, most] : {std::pair{300, 1}, {200, 4}, {32, 128}}) {
    GpuPipeline exact(inverted(side), *gpus_);
    EXPECT_EQ(exact.kernel().staged(false), most >= 8) << side;
    GpuPipeline pipeline(inverted(side), *gpus_, DecoderClass::kNvjpeg);
    EXPECT_EQ(pipeline.kernel().most_rows(), static_cast<size_t>(most)) << side;
    ExpectExact(pipeline, files);
  }
}

// The image is damaged, and not needed if the coin says so.
TEST_F(HostGroupTest, AnImageThatIsNotChosenMayBeDamaged) {
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

TEST_F(HostGroupTest, AFaultySampleFailsAsOnTheCpu) {
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
    EXPECT_TRUE(result.computed[0].ok());
    // Kernels find some of the damage.
    const absl::Status& status =
        result.prepared[1].ok() ? result.computed[1] : result.prepared[1];
    EXPECT_EQ(status, pipeline.OnCpu(file, 1).status());
    EXPECT_FALSE(status.ok());
  }
  EXPECT_EQ(SlotsInUse(), 0);
}

TEST_F(HostGroupTest, RowsThatDoNotFitTheSlotAreComputedByTheCpu) {
  config_.slot_bytes = 1 << 20;
  Open();
  GpuPipeline pipeline(CropGraph(64), *gpus_);
  std::vector<std::string> files;
  for (uint32_t i = 0; i < 12; ++i)
    files.push_back(MakeJpeg({.width = 600, .height = 400, .seed = i}));
  ExpectExact(pipeline, files);
}

TEST_F(HostGroupTest, RowsThatAreTooLargeForTheirPlacesAreComputedByTheCpu) {
  config_.slot_bytes = 1 << 20;  // 64 KiB per row of eight, for two values
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

// A group has fewer rows if a photo would have no room otherwise.
TEST_F(HostGroupTest, RowsOfASamplesOwnSizeHaveRoomForAPhoto) {
  for (const auto& [mebibytes, rows] :
       {std::pair{1, 8}, {64, 24}, {512, 128}}) {
    config_.slot_bytes = uint64_t{static_cast<uint64_t>(mebibytes)} << 20;
    const auto program =
        CompileForGpu(*Check(OwnSizeGraph(16)), DecoderClass::kExact,
                      config_.group_bytes, config_.slot_bytes);
    ASSERT_TRUE(program.ok()) << program.status();
    ASSERT_NE(program->fused, nullptr);
    EXPECT_EQ(program->most_rows, static_cast<size_t>(rows)) << mebibytes;
    EXPECT_EQ(program->fused->most_elements() >= 500 * 375 * 3, rows > 8);
    EXPECT_LE(program->fused->ValueBytes(program->most_rows),
              config_.slot_bytes / 2);
  }
}

// Each field of a group begins at an aligned address, and the room of the
// group's photos follows the last one.
TEST_F(HostGroupTest, FieldsOfAFullGroupLeaveTheRoomBehindThemAlone) {
  const CheckedGraph graph = *Check(CropGraph(32));
  const size_t row_bytes = graph.schema.row_bytes();
  for (const uint64_t rows : {2, 7, 33, 69}) {
    const uint64_t group_bytes = rows * row_bytes;
    const auto program = CompileForGpu(graph, DecoderClass::kExact, group_bytes,
                                       config_.slot_bytes);
    ASSERT_TRUE(program.ok()) << program.status();
    uint64_t end = 0;
    for (const Field& field : graph.schema.fields)
      end += Aligned(program->most_rows * field.row_bytes);
    EXPECT_LE(end, group_bytes) << rows;
  }
}

// Which rows these are depends on --gpu-slot-bytes, and libjpeg-turbo would
// make their pixels.
TEST_F(HostGroupTest, ValuesOfASamplesOwnSizeAreOfClassExact) {
  Open();
  const auto refused =
      gpus_->kernels()
          .compile(*Check(OwnSizeGraph(16)), DecoderClass::kNvjpeg)
          .status();
  EXPECT_TRUE(absl::IsUnimplemented(refused)) << refused;
  EXPECT_THAT(std::string(Message(refused)),
              ::testing::HasSubstr("node 2 (invert) has values whose size"));
}

TEST_F(HostGroupTest, PixelsLeaveTheValuesOfStagesTheirRoom) {
  config_.slot_bytes = 1 << 20;
  Open();
  GpuPipeline pipeline(StagedGraph(), *gpus_);
  ASSERT_TRUE(pipeline.kernel().staged(false));
  std::vector<std::string> files;
  for (uint32_t i = 0; i < 30; ++i)
    files.push_back(MakeJpeg({.width = 500, .height = 300, .seed = i}));
  ExpectExact(pipeline, files);
}

// Tables of substitutes take room beside those of the bad samples. Whether
// there is room depends on the group's other rows, which must not decide how a
// row is decoded.
TEST_F(HostGroupTest,
       ASubstituteThatFindsNoRoomIsLibjpegTurbosInClassExactOnly) {
  Open();
  Graph graph = CropGraph(1);
  graph.nodes[2] = {"resize",
                    {{1, 0}},
                    {{"size", std::vector<int64_t>{8, 1000}},
                     {"interpolation", std::string("lanczos3")}}};
  const std::string first = MakeJpeg({.width = 5'000, .height = 8});
  const std::string larger = MakeJpeg({.width = 10'000, .height = 8});
  for (const DecoderClass decoder_class :
       {DecoderClass::kExact, DecoderClass::kNvjpeg}) {
    GpuPipeline pipeline(graph, *gpus_, decoder_class);
    const size_t rows = pipeline.kernel().most_rows();
    ASSERT_EQ(rows, kMaxGpuGroupRows);
    GroupMemory memory(pipeline.schema(), rows);
    const GroupOutputs outputs = memory.Outputs(rows);
    auto group = pipeline.kernel().BeginGroup(outputs);
    for (size_t row = 0; row < rows; ++row)
      ASSERT_TRUE(pipeline.Prepare(*group, row, first).ok());
    int refused = 0;
    for (size_t row = 0; row < rows; ++row) {
      const absl::Status status = pipeline.Prepare(*group, row, larger);
      if (status.ok()) continue;
      ASSERT_TRUE(absl::IsUnavailable(status)) << status;
      ++refused;
    }
    if (decoder_class == DecoderClass::kExact) {
      EXPECT_EQ(refused, 0);
      continue;
    }
    EXPECT_GT(refused, 0);
    EXPECT_LT(refused, static_cast<int>(rows));
    group.reset();
    ExpectExact(pipeline, {larger});  // alone
  }
}

TEST_F(HostGroupTest, PlacesMayBeAnywhere) {
  Open();
  GpuPipeline pipeline(CropGraph(32), *gpus_);
  const std::vector<uint32_t> slots = {9, 3, 4, 5, 0, 11};
  const std::string file = MakeJpeg({.width = 90, .height = 80});
  GroupMemory memory(pipeline.schema(), 12);
  const GroupOutputs outputs = memory.Outputs(slots.size(), slots);
  const auto group = pipeline.kernel().BeginGroup(outputs);
  for (size_t row = 0; row < slots.size(); ++row)
    ASSERT_TRUE(pipeline.Prepare(*group, row, file).ok());
  for (const absl::Status& status : GpuPipeline::RunGroup(*group))
    EXPECT_TRUE(status.ok());
  for (size_t row = 0; row < slots.size(); ++row)
    EXPECT_EQ(memory.Row(outputs, row), *pipeline.OnCpu(file, row)) << row;
  const GroupOutputs all = memory.Outputs(12);
  for (const size_t untouched : {1, 2, 6, 7, 8, 10})
    EXPECT_THAT(memory.Row(all, untouched), ::testing::Each(std::byte{0x77}));
}

TEST_F(HostGroupTest,
       RowsThatWereNotPreparedBecomeZerosAndThenWhatReplacesThem) {
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

TEST_F(HostGroupTest, FormatsOtherThanJpegAreTheCpus) {
  Open();
  const testing::Picture picture = testing::MakePicture(90, 80, 3);
  for (const DecoderClass decoder_class :
       {DecoderClass::kExact, DecoderClass::kNvjpeg}) {
    GpuPipeline pipeline(CropGraph(32), *gpus_, decoder_class);
    ExpectExact(pipeline, {testing::MakePng(picture), MakeJpeg({}),
                           testing::MakeBmp(picture)});
  }
}

TEST_F(HostGroupTest, APipelineThatCannotBeFusedGoesToTheCpuOrIsRefused) {
  Open();
  Graph graph = CropGraph(32);
  graph.nodes.push_back({"decode", {{0, 0}}, {}});
  graph.nodes.push_back(
      {"resize", {{3, 0}}, {{"size", std::vector<int64_t>{8, 8}}}});
  graph.outputs.push_back({"other", {4, 0}});
  const CheckedGraph checked = *Check(graph);
  const auto cpu = gpus_->kernels().compile(checked, DecoderClass::kExact);
  ASSERT_TRUE(cpu.ok()) << cpu.status();
  EXPECT_FALSE((*cpu)->staged(false));
  const auto refused =
      gpus_->kernels().compile(checked, DecoderClass::kNvjpeg).status();
  EXPECT_TRUE(absl::IsUnimplemented(refused)) << refused;
  EXPECT_THAT(std::string(Message(refused)), ::testing::HasSubstr("decode"));
}

TEST_F(HostGroupTest, SlotsAreBoundedAndComeBack) {
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

TEST_F(HostGroupTest, ADeviceWithoutADecoderHasClassExactOnly) {
  options_.decodes = false;
  Open();
  EXPECT_EQ(gpus_->decoder_classes(),
            std::vector<DecoderClass>{DecoderClass::kExact});
  const auto refused =
      gpus_->kernels().compile(*Check(CropGraph(32)), DecoderClass::kNvjpeg);
  EXPECT_TRUE(absl::IsUnimplemented(refused.status())) << refused.status();
  GpuPipeline pipeline(CropGraph(32), *gpus_);
  ExpectExact(pipeline, {MakeJpeg({})});
}

TEST_F(HostGroupTest, AGroupGoesToTheGpuWithTheMostRoom) {
  options_.num_devices = 2;
  Open();
  ASSERT_EQ(gpus_->devices().size(), 2u);
  GpuPipeline pipeline(CropGraph(32), *gpus_);
  GroupMemory memory(pipeline.schema(), 1);
  const GroupOutputs outputs = memory.Outputs(1);
  const auto one = pipeline.kernel().BeginGroup(outputs);
  const auto two = pipeline.kernel().BeginGroup(outputs);
  for (const GpuStats& stats : gpus_->stats()) EXPECT_EQ(stats.slots_in_use, 1);
}

}  // namespace
}  // namespace leat::worker
