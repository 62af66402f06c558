// SPDX-License-Identifier: Apache-2.0
//
// Rows that read their partners, on a GPU: the CPU's bytes, and its statuses if
// a partner is bad.
#include <filesystem>

#include "gmock/gmock.h"
#include "tests/support/image_maker.h"
#include "tests/worker/gpu/groups/job.h"
#include "tests/worker/scheduler/fake_rows.h"
#include "worker/scheduler/scheduler.h"

namespace leat::worker {
namespace {

using ::testing::HasSubstr;
using testing::MakeJpeg;

std::vector<std::string> Photos(uint32_t count) {
  std::vector<std::string> files;
  for (uint32_t i = 0; i < count; ++i)
    files.push_back(MakeJpeg({.width = 90 + static_cast<int>(i) * 7,
                              .height = 100,
                              .orientation = static_cast<int>(i % 9),
                              .seed = i + 1}));
  return files;
}

// The partner's image, if a coin says so, after a stage of its own.
Graph ChoosingGraph(const std::string& path = "/data") {
  Graph graph = CropGraph(24, path);
  graph.nodes.push_back({"noise_gaussian", {{2, 0}}, {{"stddev", 9.0}}});
  graph.nodes.push_back({"partner", {{3, 0}}, {}});
  graph.nodes.push_back({"coin_flip", {}, {}});
  graph.nodes.push_back({"where", {{5, 0}, {4, 0}, {2, 0}}, {}});
  graph.outputs[0].second = {6, 0};
  return graph;
}
// Nothing of the row except its label; the fused kernel alone makes the
// partner's.
Graph OtherGraph(const std::string& path = "/data") {
  Graph graph = CropGraph(24, path);
  graph.nodes.push_back({"partner", {{2, 0}}, {}});
  graph.nodes.push_back({"partner", {{0, 1}}, {}});
  graph.nodes.push_back(
      {"transpose", {{3, 0}}, {{"perm", std::vector<int64_t>{2, 0, 1}}}});
  graph.outputs = {{"image", {5, 0}}, {"theirs", {4, 0}}, {"label", {0, 1}}};
  return graph;
}
// The partner's label beside the row's own image.
Graph LabelGraph(const std::string& path = "/data") {
  Graph graph = CropGraph(24, path);
  graph.nodes.push_back({"partner", {{0, 1}}, {}});
  graph.outputs.push_back({"theirs", {3, 0}});
  return graph;
}
// A blur of both that is refused if its sigma is drawn below 0.
Graph RefusingGraph(const std::string& path) {
  Graph graph = CropGraph(24, path);
  graph.nodes.push_back({"uniform", {}, {{"low", -1.0}, {"high", 4.0}}});
  graph.nodes.push_back(
      {"gaussian_blur", {{2, 0}}, {{"sigma", NodeRef{3, 0}}}});
  graph.nodes.push_back({"partner", {{4, 0}}, {}});
  graph.nodes.push_back({"max", {{4, 0}, {5, 0}}, {}});
  graph.outputs[0].second = {6, 0};
  return graph;
}
std::vector<Graph> AllGraphs(const std::string& path = "/data") {
  return {MixupGraph(32, path), CutMixGraph(28, path), ChoosingGraph(path),
          OtherGraph(path), LabelGraph(path)};
}

TEST_F(HostGroupTest, RowsWithPartnersAreTheCpus) {
  Open();
  for (const Graph& graph : AllGraphs()) {
    GpuPipeline pipeline(graph, *gpus_);
    ASSERT_TRUE(pipeline.kernel().staged(false)) << CanonicalText(graph);
    ExpectExact(pipeline, Photos(20));
    EXPECT_EQ(pipeline.asked, 0) << "all by the GPU";
  }
}

// The partner is damaged, cut off, of another format, no image, or missing.
TEST_F(HostGroupTest, AnOddPartnerLeavesTheRowToTheCpu) {
  Open();
  const std::string good = MakeJpeg({.width = 150, .height = 130, .seed = 5});
  const std::vector<std::string> odd = {
      good.substr(0, good.size() / 3) + "\xff\xd9",
      good.substr(0, good.size() / 2),
      testing::MakePng(testing::MakePicture(90, 80, 3)),
      "no image",
      testing::MakeJpegClaiming(65'500, 65'500),
      ""};
  const std::vector<std::string> photos = Photos(8);
  for (const Graph& graph : AllGraphs()) {
    const bool decodes = CanonicalText(graph) != CanonicalText(LabelGraph());
    for (size_t i = 0; i <= odd.size(); ++i) {
      GpuPipeline pipeline(graph, *gpus_);
      pipeline.partner = i < odd.size() ? odd[i] : good;
      if (i == odd.size()) pipeline.readable = NotFound("no such record");
      GroupMemory memory(pipeline.schema(), photos.size());
      const GroupOutputs outputs = memory.Outputs(photos.size());
      const auto group = pipeline.kernel().BeginGroup(outputs);
      std::vector<absl::Status> prepared;
      for (size_t row = 0; row < photos.size(); ++row)
        prepared.push_back(pipeline.Prepare(*group, row, photos[row]));
      const std::vector<absl::Status> computed =
          pipeline.Finish(*group, photos);
      if (decodes || i == odd.size()) {
        EXPECT_GT(pipeline.asked, 0);
      } else {
        EXPECT_EQ(pipeline.asked, 0);
      }
      for (size_t row = 0; row < photos.size(); ++row) {
        const auto expected = pipeline.OnCpu(photos[row], row);
        ASSERT_EQ(prepared[row].ok() ? computed[row] : prepared[row],
                  expected.status())
            << i << " " << row;
        if (expected.ok()) {
          EXPECT_EQ(memory.Row(outputs, row), *expected) << i << " " << row;
        }
      }
    }
  }
  EXPECT_EQ(SlotsInUse(), 0);
}

TEST_F(HostGroupTest, RowsWithPartnersThatFillTheSlotAreTheCpus) {
  config_.slot_bytes = 1 << 20;
  Open();
  GpuPipeline pipeline(CutMixGraph(16), *gpus_);
  const size_t rows = pipeline.kernel().most_rows();
  ASSERT_GE(rows, 30u);
  std::vector<std::string> files;
  for (uint32_t i = 0; i < 30; ++i)
    files.push_back(MakeJpeg({.width = 240, .height = 190, .seed = i}));
  ExpectExact(pipeline, files);
  EXPECT_GT(pipeline.asked, 3);
  EXPECT_LT(pipeline.asked, 27);
  EXPECT_EQ(gpus_->stats()[0].rows_coefficients_total,
            static_cast<uint64_t>(30 - pipeline.asked));
}

TEST_F(HostGroupTest, AGroupHasTheRowsWhoseValuesFitTheSlot) {
  config_.slot_bytes = 2 << 20;
  Open();
  GpuPipeline one(CropGraph(8), *gpus_);
  EXPECT_EQ(one.kernel().most_rows(), kMaxGpuGroupRows);
  // The tables of two images.
  GpuPipeline small(MixupGraph(8), *gpus_), large(MixupGraph(64), *gpus_);
  EXPECT_LT(small.kernel().most_rows(), kMaxGpuGroupRows);
  EXPECT_GT(small.kernel().most_rows(), kMaxGpuGroupRows / 2);
  ASSERT_TRUE(large.kernel().staged(false));
  const size_t rows = large.kernel().most_rows();
  EXPECT_GE(rows, 8u);
  EXPECT_LT(rows, 20u);
  ExpectExact(large, Photos(static_cast<uint32_t>(rows)));
  // Fewer rows than are worth a GPU's launches.
  GpuPipeline huge(MixupGraph(200), *gpus_);
  EXPECT_FALSE(huge.kernel().staged(false));
}

TEST_F(HostGroupTest, PartnersAreOfClassExact) {
  Open();
  for (const Graph& graph : AllGraphs()) {
    const auto refused =
        gpus_->kernels().compile(*Check(graph), DecoderClass::kNvjpeg).status();
    EXPECT_TRUE(absl::IsUnimplemented(refused)) << refused;
    EXPECT_THAT(std::string(Message(refused)), HasSubstr("(partner) gives"));
  }
}

// Files, and images of any size.
TEST_F(HostGroupTest, PartnersWithoutASizeLeaveTheJobToTheCores) {
  Open();
  Graph whole = CropGraph(24);
  whole.nodes.insert(whole.nodes.begin() + 2, {"partner", {{1, 0}}, {}});
  whole.nodes[3].inputs = {{2, 0}};
  whole.outputs[0].second = {3, 0};
  EXPECT_FALSE(GpuPipeline(whole, *gpus_).kernel().staged(false));
  Graph graph = CropGraph(24);
  graph.nodes[1].op = "partner";
  graph.nodes.insert(graph.nodes.begin() + 2, {"decode", {{1, 0}}, {}});
  graph.nodes[3].inputs = {{2, 0}};
  graph.outputs[0].second = {3, 0};
  GpuPipeline pipeline(graph, *gpus_);
  EXPECT_FALSE(pipeline.kernel().staged(false));
}

using GpuPartnerTest = GpuJobTest;

// Batches of 4 end with one of 3 rows, those of 5 with one of a single row.
TEST_F(GpuPartnerTest, RowsOfWholeEpochsAreTheCpus) {
  Open();
  WriteFiles(11);
  for (const uint32_t batch : {4, 5})
    for (const Graph& graph : AllGraphs(dir_.path())) {
      OpenJob(graph, batch);
      ASSERT_TRUE(gpu_->groups().staged(false));
      ExpectCpusEpochs("batch " + std::to_string(batch));
      // A sample that is read by itself is its own partner.
      ExpectCpus({{.step = 99, .row = 0, .sample = 2}}, "alone");
      ExpectCpus({{.step = 0, .row = 1, .sample = 9}}, "another's place");
    }
  EXPECT_EQ(failed_, 0);
  EXPECT_GT(options_.stats->launches.load(), 0u);
}

TEST_F(GpuPartnerTest, BadSamplesAreTheCpusUnderEveryPolicy) {
  Open();
  WriteFiles(13);
  const std::string photo = MakeJpeg({.width = 200, .height = 150, .seed = 7});
  Write(2, "no image");
  Write(4, photo.substr(0, photo.size() / 2) + "\xff\xd9");
  Write(5, testing::MakePng(testing::MakePicture(90, 80, 3)));
  Write(9, photo.substr(0, photo.size() * 9 / 10) + "\xff\xd9");
  const BadSamplePolicy policies[] = {BadSamplePolicy::kFail,
                                      BadSamplePolicy::kReplace,
                                      BadSamplePolicy::kZero};
  for (const BadSamplePolicy policy : policies)
    for (const uint32_t batch : {4, 6}) {
      std::vector<Graph> graphs = AllGraphs(dir_.path());
      graphs.push_back(RefusingGraph(dir_.path()));
      for (const Graph& graph : graphs) {
        OpenJob(graph, batch, policy);
        ExpectCpusEpochs(CanonicalText(graph) + " policy " +
                         std::to_string(static_cast<int>(policy)));
      }
    }
  EXPECT_GT(good_, 500);
  EXPECT_GT(failed_, 50);
}

// A record that was deleted after the index was made.
TEST_F(GpuPartnerTest, AMissingPartnerIsTheCpusUnderEveryPolicy) {
  Open();
  for (const BadSamplePolicy policy :
       {BadSamplePolicy::kFail, BadSamplePolicy::kReplace,
        BadSamplePolicy::kZero}) {
    WriteFiles(9);
    OpenJob(MixupGraph(32, dir_.path()), 4, policy);
    std::filesystem::remove(dir_.path() + "/" + NameOf(3));
    ExpectCpusEpochs("policy " + std::to_string(static_cast<int>(policy)));
  }
  EXPECT_GT(good_, 0);
  EXPECT_GT(failed_, 0);
}

// Also rows of a last partial batch, each requested alone.
TEST_F(GpuPartnerTest, OneRowRequestsGoInGroupsOfWhatFitsTheSlot) {
  config_.slot_bytes = 1 << 20;
  Open();
  WriteFiles(39);
  OpenJob(MixupGraph(32, dir_.path()), 24);
  const size_t most = gpu_->groups().most_rows();
  ASSERT_LT(most, 20u);
  std::vector<RowOf> rows = RowsOf(0, 0);
  for (const RowOf& row : RowsOf(0, 1)) rows.push_back(row);
  ASSERT_EQ(rows.size(), 39u);
  BufferPool pool(256 << 20, wake_, gpus_->buffer_memory());
  Scheduler scheduler({.threads = 0,
                       .group_bytes = config_.group_bytes,
                       .max_rows_per_group = kMaxGpuGroupRows},
                      &pool, wake_, Clock::Real());
  const auto sink = std::make_shared<FakeSink>();
  std::vector<Scheduler::StreamId> streams;
  for (int i = 0; i < 3; ++i)
    streams.push_back(*scheduler.OpenStream(gpu_, sink));
  for (size_t i = 0; i < rows.size(); ++i)
    ASSERT_TRUE(scheduler
                    .Ask(streams[i % 3], {.request_id = i,
                                          .step = rows[i].step,
                                          .rows = {rows[i].row},
                                          .samples = {rows[i].sample}})
                    .ok());
  while (scheduler.RunOne(state_.get())) {
  }
  sink->WaitRows(rows.size());
  for (const FinishedGroup& group : sink->Take()) {
    ASSERT_TRUE(group.status.ok()) << group.status;
    EXPECT_EQ(RowBytes(group.payload.begin(), group.payload.end()),
              *OnCpu(rows[group.request_id]))
        << group.request_id;
  }
  ASSERT_TRUE(scheduler.Stop().none());
  const GpuStats stats = gpus_->stats()[0];
  EXPECT_EQ(stats.groups_total, (rows.size() + most - 1) / most);
  EXPECT_EQ(stats.rows_total(), rows.size());
}

}  // namespace
}  // namespace leat::worker
