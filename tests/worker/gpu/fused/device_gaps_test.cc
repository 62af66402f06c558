// SPDX-License-Identifier: Apache-2.0
//
// The text for each gap in the table of what GPUs compute
// (core/pipeline/device_forms.h), which `leat describe job` shows to users; and
// that the compiler for GPUs refuses the same node.
#include <string>
#include <utility>
#include <vector>

#include "core/pipeline/device_forms.h"
#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/gpu/fused/program.h"

namespace leat::worker {
namespace {

using ::testing::HasSubstr;
using Sizes2 = std::vector<int64_t>;
using Numbers = std::vector<double>;

Value Quoted(const char* text) { return Value(std::string(text)); }

// Nodes of GraphWith's graph.
enum : uint32_t {
  kDecode = 1,
  kImage = 3,  // of 8 × 9 pixels, by a launch
  kWhole,      // of a size that differs per sample, by a launch
  kPixel = 7,  // a scalar that depends on pixels
  kFlag = 9,   // also a scalar that depends on pixels
  kConstant,   // of 5 × 4 pixels, the host's
  kNext
};

// An image, a label, a large array; followed by `more`, whose last node is an
// output.
absl::StatusOr<CheckedGraph> GraphWith(std::vector<Node> more) {
  Graph graph;
  graph.nodes = {
      {"readers.numpy", {}, {{"path", Quoted("/data")}}},
      {"decode", {{0, 0}}, {}},
      {"resize", {{1, 0}}, {{"size", Sizes2{8, 9}}}},
      {"invert", {{2, 0}}, {}},
      {"invert", {{1, 0}}, {}},
      {"crop", {{2, 0}}, {{"size", Sizes2{1, 1}}}},
      {"slice", {{5, 0}}, {{"axes", Sizes2{2}}, {"shape", Sizes2{1}}}},
      {"reshape", {{6, 0}}, {{"shape", Sizes2{}}}},
      {"uniform", {}, {}},
      {"lt", {{7, 0}, {8, 0}}, {}},
      {"constant",
       {},
       {{"values", Numbers(5 * 4 * 3, 7)},
        {"shape", Sizes2{5, 4, 3}},
        {"dtype", Quoted("uint8")}}}};
  graph.nodes.insert(graph.nodes.end(), more.begin(), more.end());
  graph.outputs = {{"x", {static_cast<uint32_t>(graph.nodes.size() - 1), 0}}};
  return Check(graph,
               std::vector<ValueType>{
                   {ValueType::Kind::kEncoded, DType::kUint8, {}},
                   {ValueType::Kind::kTensor, DType::kInt32, {}},
                   {ValueType::Kind::kTensor, DType::kUint8, {100, 100, 3}}});
}

// Returns the text about the pipeline, from the operator on; empty: a GPU
// computes it. The compiler must agree, and name the same node. Only a second
// decode is named by the last operator of the same pass.
std::string WhyNot(std::vector<Node> more) {
  const auto graph = GraphWith(std::move(more));
  EXPECT_TRUE(graph.ok()) << graph.status();
  if (!graph.ok()) return "";
  const std::string why(CheckDeviceForms(*graph).message());
  const absl::Status compiled = FusedProgram::Compile(*graph).status();
  EXPECT_EQ(compiled.ok(), why.empty()) << why << "; " << compiled;
  const size_t op = why.find('(');
  if (!why.starts_with("node ") || op == std::string::npos) return why;
  if (why.compare(op, 8, "(decode)") != 0) {
    EXPECT_THAT(std::string(compiled.message()),
                HasSubstr(why.substr(0, why.find(')') + 1)));
  }
  return why.substr(op);
}

TEST(DeviceGaps, NameTheNodeAndWhy) {
  const Node resize{"resize", {{kNext, 0}}, {{"size", Sizes2{4, 4}}}};
  EXPECT_EQ(WhyNot({{"brightness", {{kImage, 0}}, {}}}), "");
  EXPECT_EQ(WhyNot({{"jpeg_compression_distortion", {{kImage, 0}}, {}}}),
            "(jpeg_compression_distortion) has no device form");
  EXPECT_EQ(WhyNot({{"peek_shape", {{0, 0}}, {}}}),
            "(peek_shape) has no device form");
  EXPECT_EQ(
      WhyNot({{"stored_bytes", {{0, 0}}, {}}, {"length", {{kNext, 0}}, {}}}),
      "(stored_bytes) has no device form");
  EXPECT_EQ(
      WhyNot(
          {{"mul", {{kPixel, 0}, {8, 0}}, {}},
           {"brightness", {{kImage, 0}}, {{"brightness", NodeRef{kNext, 0}}}}}),
      "(brightness) takes an argument that the host does not compute");
  EXPECT_EQ(
      WhyNot({{"where", {{kFlag, 0}, {kWhole, 0}, {kWhole, 0}}, {}}, resize}),
      "(where) chooses between sizes by what the host does not "
      "compute");
  EXPECT_EQ(WhyNot({{"length", {{kWhole, 0}}, {}}}),
            "(length) is computed of a value whose size differs from "
            "sample to sample");
  EXPECT_EQ(WhyNot({{"decode", {{0, 0}}, {}},
                    resize,
                    {"add", {{kNext + 1, 0}, {kPixel, 0}}, {}}}),
            "(decode) is a second decode");
}

// The kernels that make all views also make views of a smaller image, but not
// where colours are rounded before.
TEST(DeviceGaps, OfReducedDecodesYcbcrHasNoForm) {
  for (const char* colours : {"rgb", "gray", "bgr", "ycbcr"}) {
    Graph graph;
    graph.nodes = {{"readers.image_folder", {}, {{"path", Quoted("/data")}}},
                   {"decode",
                    {{0, 0}},
                    {{"output", Quoted(colours)}, {"reduce", Quoted("auto")}}},
                   {"resize", {{1, 0}}, {{"size", Sizes2{8, 9}}}}};
    graph.outputs = {{"x", {2, 0}}};
    const auto checked = Check(graph);
    ASSERT_TRUE(checked.ok()) << checked.status();
    const bool ycbcr = std::string(colours) == "ycbcr";
    EXPECT_EQ(std::string(CheckDeviceForms(*checked).message()),
              ycbcr ? "node 1 (decode) makes YCbCr of an image of a smaller "
                      "scale"
                    : "");
    EXPECT_EQ(FusedProgram::Compile(*checked).ok(), !ycbcr);
  }
}

// A GPU's kernels find out which rows fail. After its own decoder no operator
// may fail, since the CPU would judge other pixels.
TEST(DeviceGaps, OperatorsThatMayFailByPixelsAreTheDecodersOnly) {
  const auto decoder = [](const std::vector<Node>& nodes) {
    EXPECT_EQ(WhyNot(nodes), "") << nodes[0].op;
    return std::string(CheckDecoderForms(*GraphWith(nodes)).message());
  };
  const auto classes = [](NodeRef of) {
    return Node{"one_hot", {of}, {{"num_classes", Value(int64_t{10})}}};
  };
  EXPECT_THAT(decoder({classes({kImage, 0})}),
              HasSubstr("(one_hot) may fail by a sample's pixels"));
  EXPECT_EQ(decoder({classes({0, 1}), {"mul", {{kNext, 0}, {kPixel, 0}}, {}}}),
            "");
  EXPECT_THAT(decoder({{"floordiv", {{kImage, 0}, {kImage, 0}}, {}}}),
              HasSubstr("(floordiv) may fail by a sample's pixels"));
  EXPECT_EQ(decoder({{"floordiv", {{kImage, 0}, {0, 1}}, {}}}), "");
}

TEST(DeviceGaps, OfPartnersNameTheNodeAndWhy) {
  const Node resize{"resize", {{kNext, 0}}, {{"size", Sizes2{4, 4}}}};
  EXPECT_EQ(WhyNot({{"partner", {{0, 2}}, {}}}),
            "(partner) gives another row's stored value");
  EXPECT_EQ(WhyNot({{"partner", {{0, 2}}, {}},
                    {"add", {{kNext, 0}, {kPixel, 0}}, {}}}),
            "(partner) gives another row's stored value");
  EXPECT_EQ(WhyNot({{"partner", {{kWhole, 0}}, {}}, resize}),
            "(partner) gives another row's value, whose size differs "
            "from sample to sample");
  EXPECT_EQ(WhyNot({{"partner", {{kImage, 0}}, {}}}), "");
}

TEST(DeviceGaps, OfValuesForTheHostNameTheNodeAndWhy) {
  EXPECT_EQ(WhyNot({{"invert", {{0, 2}}, {}}}),
            "(invert) takes a stored value that is no image and over "
            "16 KiB, or of any size");
  EXPECT_EQ(
      WhyNot({{"one_hot", {{0, 1}}, {{"num_classes", Value(int64_t{4097})}}}}),
      "(one_hot) gives more than the host computes for a GPU");
}

// Kernels make views and launches of host values, but without a decoded image
// there is nothing to launch them for.
TEST(DeviceGaps, APipelineWithoutAnImageIsNoGpus) {
  const char* const none = "no output is made of an image";
  const Node resize{"resize", {{kConstant, 0}}, {{"size", Sizes2{9, 9}}}};
  EXPECT_EQ(WhyNot({resize}), none);
  EXPECT_EQ(WhyNot({resize, {"brightness", {{kNext, 0}}, {}}}), none);
  EXPECT_EQ(
      WhyNot({resize, {"cast", {{kNext, 0}}, {{"dtype", Quoted("int32")}}}}),
      none);
  EXPECT_EQ(WhyNot({{"uniform", {}, {}}}), none);
  EXPECT_EQ(WhyNot({{"resize", {{kDecode, 0}}, {{"size", Sizes2{9, 9}}}}}), "");
}

// If both sides have per-sample sizes, the host must know which one is taken.
// If one of them has one size, or fewer axes, it need not.
TEST(DeviceGaps, AChoiceOfSizesNeedsTheHostsFlagWhereBothSidesHaveTheirOwn) {
  const auto where = [](NodeRef a, NodeRef b) {
    return WhyNot({{"where", {{kFlag, 0}, a, b}, {}},
                   {"resize", {{kNext, 0}}, {{"size", Sizes2{4, 4}}}}});
  };
  const NodeRef whole{kWhole, 0};
  EXPECT_THAT(where(whole, whole), HasSubstr("chooses between sizes"));
  EXPECT_EQ(where(whole, {kImage, 0}), "");
  EXPECT_EQ(where({kImage, 0}, whole), "");
  EXPECT_EQ(where(whole, {kPixel, 0}), "");
  EXPECT_EQ(where({kPixel, 0}, whole), "");
}

}  // namespace
}  // namespace leat::worker
