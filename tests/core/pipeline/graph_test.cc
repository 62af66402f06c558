// SPDX-License-Identifier: Apache-2.0
#include "core/pipeline/graph.h"

#include <cmath>
#include <set>

#include "gtest/gtest.h"

namespace leat {
namespace {

Node With(Value value) { return {"op", {}, {{"x", std::move(value)}}}; }

TEST(CanonicalText, IsGolden) {
  Graph graph;
  graph.nodes = {
      {"readers.image_folder",
       {},
       {{"path", Value(std::string("/a \"b\"\n"))}, {"repeat", int64_t{2}}}},
      {"op",
       {{0, 0}, {0, 1}},
       {{"b", true},
        {"d", 0.1},
        {"f", std::vector<double>{-0.5, 3.0}},
        {"i", std::vector<int64_t>{1, -2}},
        {"r", NodeRef{0, 1}}}}};
  graph.outputs = {{"image", {1, 0}}, {"label", {0, 1}}};
  EXPECT_EQ(CanonicalText(graph),
            "0 readers.image_folder path=\"/a \\\"b\\\"\\x0a\" repeat=2\n"
            "1 op (0:0) (0:1) b=true d=0x1.999999999999ap-4 "
            "f=floats[-0x1p-1,0x1.8p+1] i=ints[1,-2] r=(0:1)\n"
            "output \"image\" 1:0\n"
            "output \"label\" 0:1\n");
}

TEST(CanonicalText, DiffersWhereGraphsDiffer) {
  const std::vector<Value> values = {true,
                                     false,
                                     int64_t{0},
                                     int64_t{1},
                                     int64_t{-1},
                                     0.0,
                                     -0.0,
                                     1.0,
                                     0.1,
                                     std::nextafter(0.1, 1),
                                     5e-324,
                                     1e308,
                                     INFINITY,
                                     -INFINITY,
                                     std::string(),
                                     std::string("1"),
                                     std::string("true"),
                                     std::string("\""),
                                     std::string("\\\""),
                                     std::string("\\"),
                                     std::string("\n"),
                                     std::string("\\x0a"),
                                     std::string(1, '\0'),
                                     std::vector<int64_t>{},
                                     std::vector<int64_t>{1},
                                     std::vector<int64_t>{1, 1},
                                     std::vector<int64_t>{11},
                                     std::vector<double>{},
                                     std::vector<double>{1},
                                     NodeRef{0, 0},
                                     NodeRef{0, 1},
                                     NodeRef{1, 0}};
  std::set<std::string> texts;
  for (const Value& value : values) texts.insert(CanonicalText(With(value)));
  EXPECT_EQ(texts.size(), values.size());
}

TEST(CanonicalText, CannotBeForgedByNames) {
  const Node one{"op", {}, {{"x", int64_t{1}}, {"y", int64_t{2}}}};
  const Node two{"op", {}, {{"x=1 y", int64_t{2}}}};
  const Node three{"op x=1 y=2", {}, {}};
  EXPECT_NE(CanonicalText(one), CanonicalText(two));
  EXPECT_NE(CanonicalText(one), CanonicalText(three));
}

}  // namespace
}  // namespace leat
