// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "core/pipeline/operators.h"
#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/pipeline/graph_support.h"

namespace leat {
namespace {

using testing::ErrorOf;
using ::testing::HasSubstr;
using Texts = std::vector<std::string>;
using Kind = ValueType::Kind;

// A pipeline of a reader whose last output is the result.
Graph Reading(const char* op, const char* fields, const Texts& names,
              const Texts& types, std::map<std::string, Value> more = {}) {
  Graph graph;
  Node reader{op, {}, std::move(more)};
  reader.args.emplace("paths", Texts{"/d/"});
  reader.args.emplace(fields, names);
  reader.args.emplace("types", types);
  graph.nodes = {std::move(reader)};
  graph.outputs = {{"x", {0, static_cast<uint32_t>(names.size() - 1)}}};
  return graph;
}
Graph Tfrecord(const Texts& names, const Texts& types) {
  return Reading("readers.tfrecord", "features", names, types);
}
Graph Webdataset(const Texts& names, const Texts& types,
                 const char* missing = "error") {
  return Reading("readers.webdataset", "ext", names, types,
                 {{"missing", std::string(missing)}});
}

TEST(RecordReaders, HaveAnOutputForEachFieldOfItsType) {
  const auto tfrecord = Check(
      Tfrecord({"image", "ids", "label"}, {"encoded", "int64[?]", "int64"}));
  ASSERT_TRUE(tfrecord.ok()) << tfrecord.status();
  ASSERT_EQ(tfrecord->types[0].size(), 3u);
  EXPECT_EQ(tfrecord->types[0][0].kind, Kind::kEncoded);
  EXPECT_EQ(tfrecord->types[0][1].shape, Shape({-1}));
  EXPECT_EQ(tfrecord->types[0][2].dtype, DType::kInt64);
  const auto webdataset =
      Check(Webdataset({"jpg;png", "cls"}, {"bytes", "int32"}));
  ASSERT_TRUE(webdataset.ok()) << webdataset.status();
  EXPECT_EQ(webdataset->types[0][0].shape, Shape({-1}));
  EXPECT_EQ(webdataset->types[0][1].dtype, DType::kInt32);
}

TEST(RecordReaders, SayWhatIsWrongWithTheirArguments) {
  EXPECT_THAT(ErrorOf(Tfrecord({"a", "b"}, {"int64"})),
              HasSubstr("\"types\" has 1 entries, want 2"));
  EXPECT_THAT(ErrorOf(Tfrecord({"a"}, {"int65"})),
              HasSubstr("\"int65\" is no type"));
  EXPECT_THAT(ErrorOf(Tfrecord({"a"}, {"int32"})),
              HasSubstr("feature \"a\" is int32 scalar"));
  EXPECT_THAT(ErrorOf(Tfrecord({"a"}, {"uint8"})),
              HasSubstr("feature \"a\" is uint8 scalar"));
  EXPECT_THAT(ErrorOf(Tfrecord({"a", "a"}, {"int64", "int64"})),
              HasSubstr("\"a\" twice"));
  EXPECT_THAT(ErrorOf(Tfrecord({""}, {"int64"})), HasSubstr("empty"));
  EXPECT_THAT(ErrorOf(Webdataset({"cls"}, {"float32"})),
              HasSubstr("\"cls\" is float32 scalar"));
  EXPECT_THAT(ErrorOf(Webdataset({"cls"}, {"int32"}, "empty")),
              HasSubstr("wants a type that may have no elements"));
  EXPECT_THAT(ErrorOf(Webdataset({"cls"}, {"int32"}, "ignore")),
              HasSubstr("missing"));
  Graph nothing = Tfrecord({"a"}, {"int64"});
  nothing.nodes[0].args["paths"] = Texts{};
  EXPECT_THAT(ErrorOf(nothing), HasSubstr("\"paths\""));
}

TEST(ExternalReader, HasAnOutputForEachTypeAndAName) {
  Graph graph;
  graph.nodes = {{"readers.external",
                  {},
                  {{"num_samples", int64_t{10}},
                   {"types", Texts{"encoded", "uint8[?,?,3]", "int32"}}}}};
  graph.outputs = {{"x", {0, 2}}};
  const auto checked = Check(graph);
  ASSERT_TRUE(checked.ok()) << checked.status();
  ASSERT_EQ(checked->types[0].size(), 3u);
  EXPECT_EQ(checked->types[0][0].kind, Kind::kEncoded);
  EXPECT_EQ(checked->types[0][1].shape, Shape({-1, -1, 3}));
  const auto error = [&](const char* argument, Value value) {
    Graph other = graph;
    other.nodes[0].args[argument] = std::move(value);
    return ErrorOf(other);
  };
  EXPECT_THAT(error("types", Texts{}), HasSubstr("0 values, want 1"));
  EXPECT_THAT(error("types", Texts{"a", "b", "c"}), HasSubstr("\"a\" is no"));
  EXPECT_THAT(error("types", Texts(101, "int32")), HasSubstr("at most 100"));
  EXPECT_THAT(error("name", std::string()), HasSubstr("\"name\" is empty"));
  EXPECT_THAT(error("num_samples", int64_t{0}), HasSubstr("1 to"));
}

}  // namespace
}  // namespace leat
