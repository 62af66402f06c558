// SPDX-License-Identifier: Apache-2.0
//
// Operators that fail by a row's pixels: a kernel finds exactly those rows bad
// that the CPU refuses.
#include <functional>

#include "gtest/gtest.h"
#include "tests/support/jpeg_maker.h"
#include "tests/worker/gpu/stages/support.h"

namespace leat::worker {
namespace {

using Ints = std::vector<int64_t>;

Value Type(const char* dtype) { return Value(std::string(dtype)); }

// A lookup that gives each byte the value that `value_of` returns for it.
Node Table(const char* dtype, const std::function<int(int)>& value_of) {
  Ints keys;
  std::vector<double> values;
  for (int byte = 0; byte < 256; ++byte) {
    keys.push_back(byte);
    values.push_back(value_of(byte));
  }
  return {"lookup_table",
          {},
          {{"keys", keys}, {"values", values}, {"dtype", Type(dtype)}}};
}

// Node 3 is the image, of a per-sample size or of one size for all rows; node 5
// is the result of `table` for one pixel of each row.
Graph WithPixel(bool own_sizes, Node table) {
  Graph graph;
  const NodeRef image{own_sizes ? 1u : 2u, 0};
  table.inputs = {{4, 0}};
  graph.nodes = {{"readers.image_folder", {}, {{"path", Type("/data")}}},
                 {"decode", {{0, 0}}, {}},
                 {"resize", {{1, 0}}, {{"size", Ints{12, 10}}}},
                 {"invert", {image}, {}},
                 {"random_resized_crop", {{1, 0}}, {{"size", Ints{1, 1}}}},
                 std::move(table)};
  return graph;
}

// Expects some of 40 rows to fail, and the others not.
void ExpectFaults(const Graph& graph, const std::string& where) {
  constexpr size_t kRows = 40;
  const auto checked = Check(graph);
  ASSERT_TRUE(checked.ok()) << checked.status() << where;
  StagedRunner gpu(*checked, 2, {.value_bytes = size_t{1} << 18});
  ASSERT_TRUE(gpu.status().ok()) << gpu.status() << where;
  EXPECT_EQ(gpu.program().FaultBytes(kRows), kRows * sizeof(uint32_t));
  std::vector<std::string> images;
  for (uint32_t i = 0; i < kRows; ++i)
    images.push_back(testing::MakeJpeg(
        {.width = 30 + static_cast<int>(i), .height = 20, .seed = i}));
  const std::vector<absl::Status> statuses = gpu.Run(images, 3, 1);
  Runner cpu(graph, 2);
  Scratch scratch({});
  size_t failed = 0;
  for (size_t row = 0; row < kRows; ++row) {
    const absl::Status want = cpu.Run(images[row], scratch, row, 3);
    ASSERT_EQ(absl::IsAborted(statuses[row]), !want.ok())
        << statuses[row] << " row " << row << where;
    failed += want.ok() ? 0 : 1;
    for (size_t f = 0; f < cpu.outputs.size() && want.ok(); ++f)
      ASSERT_EQ(gpu.output(row, f), cpu.outputs[f])
          << "row " << row << " field " << f << where;
  }
  EXPECT_GT(failed, kRows / 10) << where;
  EXPECT_LT(failed, kRows - kRows / 10) << where;
}

TEST(StageFaults, ADivisorOf0AmongThePixels) {
  for (const bool own_sizes : {false, true})
    for (const char* dividend : {"bool", "uint8", "int32", "int64"})
      for (const char* divisor : {"uint8", "int32", "int64"}) {
        const int least = divisor[0] == 'u' ? 0 : -2;
        Graph graph = WithPixel(own_sizes, Table(divisor, [&](int byte) {
                                  return least + byte % 5;
                                }));
        graph.nodes.push_back({"cast", {{3, 0}}, {{"dtype", Type(dividend)}}});
        graph.nodes.push_back({"floordiv", {{6, 0}, {5, 0}}, {}});
        if (own_sizes)
          graph.nodes.push_back(
              {"pad", {{7, 0}}, {{"shape", Ints{80, 80, 3}}}});
        else
          graph.nodes.push_back({"neg", {{7, 0}}, {}});
        graph.outputs = {{"quotient", {8, 0}}, {"pixel", {5, 0}}};
        ExpectFaults(graph, std::string(" ") + dividend + " by " + divisor +
                                (own_sizes ? " of own sizes" : ""));
      }
}

TEST(StageFaults, AClassThatIsNoneAmongThePixels) {
  for (const char* given : {"uint8", "int32", "int64"})
    for (const char* dtype :
         {"bool", "uint8", "int32", "int64", "float16", "float32"})
      for (const int64_t classes : {1, 6}) {
        const int none =
            given[0] == 'u' ? static_cast<int>(classes) : -static_cast<int>(1);
        Graph graph = WithPixel(
            false, Table(given, [&](int byte) {
              return byte % 7 == 6 ? none : byte % static_cast<int>(classes);
            }));
        graph.nodes.push_back({"one_hot",
                               {{5, 0}},
                               {{"num_classes", Value(classes)},
                                {"on_value", Value(2.5)},
                                {"off_value", Value(-1.0)},
                                {"dtype", Type(dtype)}}});
        graph.outputs = {{"image", {3, 0}}, {"hot", {6, 0}}};
        ExpectFaults(graph, std::string(" ") + given + " to " + dtype + " of " +
                                std::to_string(classes));
      }
}

// Every place of a value has its class in the last axis; a single element has
// no other axis.
TEST(StageFaults, ClassesOfManyPixelsAndOfOne) {
  for (const Ints& size : {Ints{1, 1}, Ints{2, 3}}) {
    Graph graph = WithPixel(true, Table("uint8", [](int byte) {
                              return byte % 60 == 59 ? 4 : byte % 4;
                            }));
    graph.nodes[4].args["size"] = size;
    if (size[0] == 1) {
      graph.nodes.push_back(
          {"slice", {{5, 0}}, {{"axes", Ints{2}}, {"shape", Ints{1}}}});
      graph.nodes[5] = Table("uint8", [](int byte) { return byte % 5; });
      graph.nodes[5].inputs = {{4, 0}};
    } else {
      graph.nodes.push_back({"transpose", {{5, 0}}, {{"perm", Ints{2, 0, 1}}}});
    }
    graph.nodes.push_back(
        {"one_hot", {{6, 0}}, {{"num_classes", Value(int64_t{4})}}});
    graph.nodes.push_back({"mul", {{7, 0}, {7, 0}}, {}});
    graph.outputs = {{"hot", {8, 0}}};
    ExpectFaults(graph, " " + std::to_string(size[0]));
  }
}

// The host knows before a launch whether a divisor is 0: no words are needed.
TEST(StageFaults, ProgramsThatCannotFailHaveNoWords) {
  Graph graph = WithPixel(true, Table("int32", [](int byte) { return byte; }));
  graph.nodes.push_back({"floordiv", {{5, 0}, {0, 1}}, {}});
  graph.nodes.push_back(
      {"one_hot", {{0, 1}}, {{"num_classes", Value(int64_t{9})}}});
  graph.outputs = {{"quotient", {6, 0}}, {"label", {7, 0}}};
  StagedRunner gpu(*Check(graph), 2);
  ASSERT_TRUE(gpu.status().ok()) << gpu.status();
  EXPECT_GT(gpu.program().stages(), 0u);
  EXPECT_EQ(gpu.program().FaultBytes(40), 0u);
  EXPECT_EQ(gpu.program().ValueBytes(40), gpu.program().FaultsAt(40));
}

}  // namespace
}  // namespace leat::worker
