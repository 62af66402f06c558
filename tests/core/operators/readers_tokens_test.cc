// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "core/pipeline/operators.h"
#include "core/status.h"
#include "gmock/gmock.h"
#include "tests/core/pipeline/graph_support.h"

namespace leat {
namespace {

using testing::ErrorOf;
using ::testing::HasSubstr;
using testing::Text;

Graph OfTokens(std::map<std::string, Value> args) {
  Graph graph;
  args.try_emplace("files", std::vector<std::string>{"/data/a.bin"});
  graph.nodes = {{"readers.tokens", {}, std::move(args)},
                 {"slice",
                  {{0, 0}},
                  {{"start", Value(std::vector<int64_t>{0})},
                   {"shape", Value(std::vector<int64_t>{8})},
                   {"out_of_bounds_policy", Text("pad")}}}};
  graph.outputs = {{"tokens", {1, 0}}};
  return graph;
}

TEST(TokensReader, TakesItsTypeFromTheData) {
  const auto before = Check(OfTokens({}));
  ASSERT_TRUE(before.ok()) << before.status();
  EXPECT_FALSE(before->typed);
  const auto checked = Check(
      OfTokens({}),
      std::vector<ValueType>{{ValueType::Kind::kTensor, DType::kUint16, {-1}}});
  ASSERT_TRUE(checked.ok()) << checked.status();
  EXPECT_EQ(checked->schema.fields[0],
            (Field{"tokens", DType::kUint16, {8}, 16}));
}

TEST(TokensReader, NamesWrongArguments) {
  EXPECT_THAT(ErrorOf(OfTokens({{"dtype", Text("bool")}})),
              HasSubstr("argument \"dtype\""));
  EXPECT_THAT(ErrorOf(OfTokens({{"end", Value(int64_t{-2})}})),
              HasSubstr("argument \"end\""));
  EXPECT_THAT(ErrorOf(OfTokens({{"unit", Text("page")}})),
              HasSubstr("argument \"unit\""));
}

}  // namespace
}  // namespace leat
