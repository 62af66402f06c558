// SPDX-License-Identifier: Apache-2.0
//
// Rows that fail by their pixels while a GPU computes them (a divisor of 0, an
// unknown class): they get the CPU's statuses, beside rows that do not fail.
#include "tests/support/image_maker.h"
#include "tests/worker/gpu/groups/compare.h"
#include "tests/worker/gpu/groups/job.h"

namespace leat::worker {
namespace {

uint32_t Add(Node node, Graph* graph) {
  graph->nodes.push_back(std::move(node));
  return static_cast<uint32_t>(graph->nodes.size() - 1);
}

uint32_t AddClasses(Graph* graph) {
  const uint32_t index = AddPixel(9, 4, graph);
  return Add({"one_hot", {{index, 0}}, {{"num_classes", int64_t{9}}}}, graph);
}

Graph ClassesGraph(const std::string& path) {
  Graph graph = CropGraph(24, path);
  graph.outputs.push_back({"hot", {AddClasses(&graph), 0}});
  return graph;
}
Graph BothGraph(const std::string& path) {
  Graph graph = DividingGraph(24, path);
  graph.outputs[0].second = {AddClasses(&graph), 0};
  return graph;
}
// A coin per sample decides whether the failing value is needed.
Graph ChosenGraph(const std::string& path) {
  Graph graph = DividingGraph(24, path);
  const NodeRef quotient = graph.outputs.back().second;
  graph.outputs.pop_back();
  const uint32_t coin = Add({"coin_flip", {}, {}}, &graph);
  const uint32_t image =
      Add({"cast", {{2, 0}}, {{"dtype", Value(std::string("int32"))}}}, &graph);
  graph.outputs[0].second = {
      Add({"where", {{coin, 0}, quotient, {image, 0}}, {}}, &graph), 0};
  return graph;
}
// The row's own or the partner's pixels may be the bad ones.
Graph PartnersGraph(const std::string& path) {
  Graph graph = DividingGraph(24, path);
  const NodeRef quotient = graph.outputs.back().second;
  const uint32_t theirs = Add({"partner", {quotient}, {}}, &graph);
  graph.outputs[0].second = {Add({"max", {quotient, {theirs, 0}}, {}}, &graph),
                             0};
  graph.outputs.back() = {"hot", {AddClasses(&graph), 0}};
  return graph;
}
constexpr size_t kChosenGraph = 3;  // of FailingGraphs
std::vector<Graph> FailingGraphs(const std::string& path = "/data") {
  return {DividingGraph(24, path), ClassesGraph(path), BothGraph(path),
          ChosenGraph(path), PartnersGraph(path)};
}

std::vector<std::string> SmallPhotos() {
  std::vector<std::string> files;
  for (uint32_t i = 0; i < 40; ++i)
    files.push_back(testing::MakeJpeg({.width = 60 + static_cast<int>(i) * 3,
                                       .height = 50,
                                       .orientation = static_cast<int>(i % 9),
                                       .seed = i + 1}));
  return files;
}

TEST_F(HostGroupTest, RowsThatAKernelFindsBadAreTheCpus) {
  Open();
  const std::vector<Graph> graphs = FailingGraphs();
  for (size_t i = 0; i < graphs.size(); ++i) {
    const std::string where = " graph " + std::to_string(i);
    GpuPipeline pipeline(graphs[i], *gpus_);
    ASSERT_TRUE(pipeline.kernel().staged(false)) << where;
    const Compared compared = CompareGroup(pipeline, SmallPhotos(), where);
    EXPECT_GT(compared.same, 2) << where;
    EXPECT_GT(compared.failed, 2) << where;
    // Some of the rows that choose did not need the bad value.
    if (i == kChosenGraph) {
      EXPECT_GT(compared.again, compared.failed);
    } else {
      EXPECT_EQ(compared.again, compared.failed) << where;
    }
  }
  EXPECT_EQ(SlotsInUse(), 0);
}

// One copy per group tells the host which rows a kernel has found bad.
TEST_F(HostGroupTest, OnlyPipelinesThatMayFailCopyFaults) {
  config_.slots = 1;
  Open();
  Graph sound = DividingGraph(24);
  sound.nodes.back() = {"mul", {{2, 0}, sound.nodes.back().inputs[1]}, {}};
  // Kernels decode no codes of this file, which they could refuse.
  const std::vector<std::string> files(
      20, testing::MakeJpeg({.progressive = true}));
  std::vector<uint64_t> copies;
  for (const Graph& graph : {sound, DividingGraph(24)}) {
    GpuPipeline pipeline(graph, *gpus_);
    GroupMemory memory(pipeline.schema(), files.size());
    const GroupOutputs outputs = memory.Outputs(files.size());
    const auto group = pipeline.kernel().BeginGroup(outputs);
    for (size_t row = 0; row < files.size(); ++row)
      ASSERT_TRUE(pipeline.Prepare(*group, row, files[row]).ok());
    const uint64_t before = options_.stats->copies_to_host.load();
    GpuPipeline::RunGroup(*group);
    copies.push_back(options_.stats->copies_to_host.load() - before);
  }
  EXPECT_EQ(copies[0] + 1, copies[1]);
}

// A row that was found bad and is not prepared again becomes empty.
TEST_F(HostGroupTest, ARowThatIsNotPreparedAgainBecomesZeros) {
  Open();
  GpuPipeline pipeline(DividingGraph(24), *gpus_);
  const std::vector<std::string> files = SmallPhotos();
  GroupMemory memory(pipeline.schema(), files.size());
  const GroupOutputs outputs = memory.Outputs(files.size());
  const auto group = pipeline.kernel().BeginGroup(outputs);
  for (size_t row = 0; row < files.size(); ++row)
    ASSERT_TRUE(pipeline.Prepare(*group, row, files[row]).ok());
  const std::vector<absl::Status> first = GpuPipeline::RunGroup(*group);
  const std::vector<absl::Status> second = GpuPipeline::RunGroup(*group);
  int bad = 0;
  for (size_t row = 0; row < files.size(); ++row) {
    EXPECT_TRUE(second[row].ok()) << second[row];
    if (first[row].ok()) {
      EXPECT_EQ(memory.Row(outputs, row), *pipeline.OnCpu(files[row], row));
      continue;
    }
    ++bad;
    EXPECT_TRUE(absl::IsAborted(first[row])) << first[row];
    for (const std::byte byte : memory.Row(outputs, row))
      ASSERT_EQ(byte, std::byte{0});
  }
  EXPECT_GT(bad, 4);
}

// Substitutes may fail by their pixels, too, in the group's next run.
TEST_F(GpuJobTest, RowsThatFailByTheirPixelsAreTheCpusUnderEveryPolicy) {
  Open();
  WriteFiles(13);
  Write(6, "no image");
  for (const BadSamplePolicy policy :
       {BadSamplePolicy::kFail, BadSamplePolicy::kReplace,
        BadSamplePolicy::kZero})
    for (const Graph& graph : FailingGraphs(dir_.path())) {
      OpenJob(graph, 6, policy);
      ASSERT_TRUE(gpu_->groups().staged(false));
      ExpectCpusEpochs(CanonicalText(graph) + " policy " +
                       std::to_string(static_cast<int>(policy)));
    }
  EXPECT_GT(good_, 100);
  EXPECT_GT(failed_, 50);
}

}  // namespace
}  // namespace leat::worker
