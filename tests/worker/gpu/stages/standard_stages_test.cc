// SPDX-License-Identifier: Apache-2.0
#include "gtest/gtest.h"
#include "tests/worker/gpu/stages/graphs.h"
#include "tests/worker/gpu/stages/support.h"

namespace leat::worker {
namespace {

using Ints = std::vector<int64_t>;

// Floats, whose sums depend on the order: two columns of huge numbers cancel
// each other, and values added before them are lost.
TEST(StandardStages, StatisticsAreSummedInTheCpusOrder) {
  using Floats = std::vector<double>;
  const Node floats{"brightness",
                    {},
                    {{"brightness", Value(0.3712)},
                     {"dtype", Value(std::string("float32"))}}};
  const auto column = [](double x, double value) {
    return Node{"erase",
                {},
                {{"anchor", Floats{0, x}},
                 {"shape", Floats{1000, 1}},
                 {"fill_value", Floats{value}}}};
  };
  const Node plus = column(0, 1e20), minus = column(1, -1e20);
  for (const Ints& axes : {Ints{}, Ints{0, 1}, Ints{2}, Ints{1}, Ints{0, 2}})
    for (const int64_t ddof : {0, 1}) {
      const Node standardize{
          "standardize",
          {},
          {{"axes", axes}, {"ddof", Value(ddof)}, {"scale", Value(50.0)}}};
      const Node crop{"crop", {}, {{"size", Ints{18, 17}}}};
      for (const std::vector<Node>& nodes :
           {std::vector<Node>{crop, floats, plus, minus, standardize},
            std::vector<Node>{floats, plus, minus, standardize, crop}}) {
        const Graph graph = ChainOf(nodes);
        const auto checked = Check(graph);
        ASSERT_TRUE(checked.ok()) << checked.status();
        StagedRunner gpu(*checked, 2, {.value_bytes = size_t{4} << 20});
        ASSERT_TRUE(gpu.status().ok()) << gpu.status();
        EXPECT_EQ(CompareRows(graph, gpu, 2, Images(), 0), 5)
            << CanonicalText(graph);
      }
    }
}

}  // namespace
}  // namespace leat::worker
