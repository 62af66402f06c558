// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>

#include "gmock/gmock.h"
#include "tests/worker/image/operators/values_support.h"

namespace leat::worker::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Bytes = std::vector<uint8_t>;
using Singles = std::vector<float>;

TEST(LookupTable, FindsKeysAndTheirDefault) {
  const Args args = {{"keys", Ints{0, 2, 3, 300, 3}},
                     {"values", Floats{.5, .25, 1, 7, -1}},
                     {"default_value", Value(9.0)}};
  const Array wide = Array::Of<int64_t>(
      {6}, {0, 3, 300, 301, -1, std::numeric_limits<int64_t>::min()});
  EXPECT_THAT(Computed("lookup_table", args, {wide}).Values<float>(),
              ElementsAre(.5f, -1, 7, 9, 9, 9));
  EXPECT_THAT(
      Computed("lookup_table", args, {Array::Of<uint8_t>({3}, {2, 255, 1})})
          .Values<float>(),
      ElementsAre(.25f, 9, 9));
  EXPECT_THAT(Refusal("lookup_table", args, {Array::Scalar(1)}),
              HasSubstr("want integers"));
  EXPECT_THAT(Refusal("lookup_table",
                      {{"keys", Ints{1, 2}}, {"values", Floats{1}}}, {wide}),
              HasSubstr("2 and 1"));
}

TEST(OneHot, PutsOneInItsPlaceAndNamesAWrongClass) {
  const Args args = {{"num_classes", Value(int64_t{4})}};
  EXPECT_THAT(
      Computed("one_hot", args, {Array::Of<int32_t>({}, {2})}).Values<float>(),
      ElementsAre(0, 0, 1, 0));
  EXPECT_EQ(Computed("one_hot", args, {Array::Of<int32_t>({1}, {2})}).shape,
            (Shape{4}));
  const Array two = Computed("one_hot",
                             {{"num_classes", Value(int64_t{3})},
                              {"on_value", Value(7.0)},
                              {"off_value", Value(2.0)},
                              {"dtype", Text("uint8")}},
                             {Array::Of<int64_t>({2}, {2, 0})});
  EXPECT_EQ(two.shape, (Shape{2, 3}));
  EXPECT_THAT(two.Values<uint8_t>(), ElementsAre(2, 2, 7, 7, 2, 2));
  for (const int32_t wrong : {-1, 4, 1000})
    EXPECT_THAT(Refusal("one_hot", args, {Array::Of<int32_t>({}, {wrong})}),
                AllOf(HasSubstr(std::to_string(wrong)), HasSubstr("0 to 3")));
}

size_t ResidentBytes() {
  size_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

// A pipeline may have 1,000 nodes.
TEST(OneHot, TakesNoMemoryForItsClassesBeforeARow) {
  Graph graph;
  graph.nodes = {{"readers.numpy", {}, {{"path", Text("/none.npy")}}}};
  for (uint32_t i = 0; i < 5; ++i) {
    graph.nodes.push_back({"one_hot",
                           {{0, 0}},
                           {{"num_classes", Value(int64_t{10'000'000})},
                            {"off_value", Value(1.0)},
                            {"dtype", Text("int64")}}});
    graph.nodes.push_back({"slice", {{2 * i + 1, 0}}, {{"end", Ints{1}}}});
    graph.outputs.push_back({std::to_string(i), {2 * i + 2, 0}});
  }
  const ValueType label{ValueType::Kind::kTensor, DType::kInt32, {}};
  const auto checked = Check(graph, std::span(&label, 1));
  ASSERT_TRUE(checked.ok()) << Message(checked.status());
  const size_t before = ResidentBytes();
  const auto program = RowProgram::Compile(*checked);
  ASSERT_TRUE(program.ok()) << Message(program.status());
  EXPECT_LT(ResidentBytes(), before + 100'000'000);
}

// 2^24 + 1 is no float32.
TEST(Constants, KeepTheDigitsOfIntegers) {
  constexpr int32_t kOdd = 16'777'217;
  const Value odd(double{kOdd});
  const Floats odds = {kOdd};
  const Array zero = Array::Of<int32_t>({1}, {0});
  const auto last = [](const Array& array) {
    return array.dtype == DType::kInt32
               ? int64_t{array.Values<int32_t>().back()}
               : array.Values<int64_t>().back();
  };
  for (const char* dtype : {"int32", "int64"}) {
    const Value type = Text(dtype);
    EXPECT_EQ(
        last(Computed("lookup_table",
                      {{"keys", Ints{0}}, {"values", odds}, {"dtype", type}},
                      {zero})),
        kOdd);
    EXPECT_EQ(last(Computed("lookup_table",
                            {{"keys", Ints{5}},
                             {"values", Floats{1}},
                             {"default_value", odd},
                             {"dtype", type}},
                            {zero})),
              kOdd);
    EXPECT_EQ(last(Computed("one_hot",
                            {{"num_classes", Value(int64_t{1})},
                             {"on_value", odd},
                             {"dtype", type}},
                            {zero})),
              kOdd);
    EXPECT_EQ(last(Computed("one_hot",
                            {{"num_classes", Value(int64_t{2})},
                             {"off_value", odd},
                             {"dtype", type}},
                            {zero})),
              kOdd);
    EXPECT_EQ(last(Computed("choice", {{"values", odds}, {"dtype", type}},
                            {Array::Flag(true)}, 0)),
              kOdd);
  }
  EXPECT_EQ(
      last(Computed("pad", {{"shape", Ints{2}}, {"fill_value", odd}}, {zero})),
      kOdd);
  EXPECT_EQ(last(Computed("slice",
                          {{"shape", Ints{2}},
                           {"out_of_bounds_policy", Text("pad")},
                           {"fill_values", odds}},
                          {zero})),
            kOdd);
  EXPECT_EQ(last(Computed("erase", {{"shape", Floats{1}}, {"fill_value", odds}},
                          {zero})),
            kOdd);
}

TEST(Standardize, UsesTheSamplesOwnStatistics) {
  const Array image = Ramp();
  const Bytes in = image.Values<uint8_t>();
  const std::vector<Ints> choices = {{}, {0, 1}, {2}, {0}, {1, 2}, {1}, {0, 2}};
  for (const Ints& axes : choices) {
    Args args = {{"ddof", Value(int64_t{1})}, {"scale", Value(2.0)}};
    if (!axes.empty()) args["axes"] = axes;
    const Singles out = Computed("standardize", args, {image}).Values<float>();
    const auto kept = [&](size_t i) {  // the statistics of an element
      const size_t index[] = {i / 96, i / 3 % 32, i % 3};
      size_t key = 0;
      for (int64_t a = 0; a < 3 && !axes.empty(); ++a)
        if (std::find(axes.begin(), axes.end(), a) == axes.end())
          key = key * 32 + index[a];
      return key;
    };
    std::map<size_t, std::vector<double>> groups;
    for (size_t i = 0; i < in.size(); ++i) groups[kept(i)].push_back(in[i]);
    for (size_t i = 0; i < in.size(); i += 17) {
      const auto& group = groups[kept(i)];
      double mean = 0, squares = 0;
      for (const double x : group)
        mean += x / static_cast<double>(group.size());
      for (const double x : group) squares += (x - mean) * (x - mean);
      const double deviation =
          std::sqrt(squares / static_cast<double>(group.size() - 1));
      ASSERT_NEAR(out[i], 2 * (in[i] - mean) / deviation, 1e-5);
    }
  }
  EXPECT_THAT(Computed("standardize", {{"shift", Value(3.0)}},
                       {Array::Of<uint8_t>({4}, {5, 5, 5, 5})})
                  .Values<float>(),
              ::testing::Each(3));
  EXPECT_THAT(Refusal("standardize", {{"axes", Ints{0, 3}}}, {image}),
              HasSubstr("want some of the 3 axes"));
  EXPECT_THAT(Refusal("standardize",
                      {{"axes", Ints{0, 1}}, {"mean", Floats{1, 2}}}, {image}),
              HasSubstr("one for each of (3)"));
}

// The ones in a run with 1e16 are lost, those of a whole run are not.
TEST(Standardize, AddsRunsAndThenTheirSums) {
  Singles values(3 * 1024, 1);
  values.front() = 1e16f;
  values[2 * 1024] = -1e16f;
  const Singles out =
      Computed(
          "standardize", {{"stddev", Floats{1}}},
          {Array::Of<float>({static_cast<int64_t>(values.size())}, values)})
          .Values<float>();
  EXPECT_EQ(out[1], 1 - static_cast<float>(1024.0 / 3072));
}

}  // namespace
}  // namespace leat::worker::testing
