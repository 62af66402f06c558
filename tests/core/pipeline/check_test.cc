// SPDX-License-Identifier: Apache-2.0
#include "core/pipeline/operators.h"
#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/pipeline/graph_support.h"

namespace leat {
namespace {

using ::testing::AllOf;
using testing::ErrorOf;
using ::testing::HasSubstr;
using testing::Text;

TEST(Check, WhatIsDrawnForAStepMayNotDependOnARow) {
  Graph graph;
  const auto beta = [&](uint32_t alpha) {
    graph.nodes = {{"readers.image_folder", {}, {{"path", Text("/data")}}}};
    graph.nodes.push_back({"beta", {}, {{"per", Text("batch")}}});
    graph.nodes.push_back({"uniform", {}, {}});
    graph.nodes.push_back({"cast", {{0, 1}}, {{"dtype", Text("float32")}}});
    graph.nodes.push_back({"add", {{alpha, 0}, {1, 0}}, {}});
    graph.nodes.push_back(
        {"beta", {}, {{"alpha", NodeRef{4, 0}}, {"per", Text("batch")}}});
    graph.outputs = {{"lam", {5, 0}}};
  };
  for (const uint32_t of_sample : {2u, 3u}) {
    beta(of_sample);
    EXPECT_THAT(ErrorOf(graph),
                AllOf(HasSubstr("node 5 (beta): an argument is a value of each "
                                "sample, and per = \"batch\""),
                      HasSubstr("want numbers, or per = \"sample\"")));
  }
  graph.nodes[5].args["per"] = Text("sample");
  EXPECT_TRUE(Check(graph).ok());
  beta(1);
  const auto of_step = Check(graph);
  EXPECT_TRUE(of_step.ok()) << Message(of_step.status());
}

}  // namespace
}  // namespace leat
