// SPDX-License-Identifier: Apache-2.0
#include "worker/index_command/sequence_report.h"

#include <algorithm>
#include <random>
#include <vector>

#include "core/packing/fit_window.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(SequenceReport, CountsDocumentsAndPacksThem) {
  const std::vector<uint64_t> rows = {4, 5};
  SequenceReport report(rows);
  for (const uint64_t length : {3, 0, 2, 1, 6}) report.Add(length);
  const auto json = report.Finish();
  EXPECT_EQ(json["documents"], 5);
  EXPECT_EQ(json["elements"], 12);
  EXPECT_EQ(json["empty"], 1);
  EXPECT_EQ(json["least"], 0);
  EXPECT_EQ(json["p50"], 2);
  EXPECT_EQ(json["most"], 6);
  EXPECT_DOUBLE_EQ(json["mean"], 2.4);
  ASSERT_EQ(json["packed"].size(), 2u);
  EXPECT_EQ(json["packed"][0]["rows"], 3) << "6 is cut into 4 and 2";
  EXPECT_DOUBLE_EQ(json["packed"][0]["fill"], 1.0);
  EXPECT_EQ(json["packed"][1]["rows"], 3);
  EXPECT_DOUBLE_EQ(json["packed"][1]["fill"], 0.8);
}

TEST(SequenceReport, QuantilesAreThoseOfASortedList) {
  std::mt19937_64 draw(7);
  std::lognormal_distribution<double> lengths(6, 2);
  std::vector<uint64_t> all;
  SequenceReport report({});
  for (int i = 0; i < 20'000; ++i) {
    all.push_back(static_cast<uint64_t>(lengths(draw)));
    report.Add(all.back());
  }
  std::ranges::sort(all);
  const auto json = report.Finish();
  for (const auto& [name, share] : std::vector<std::pair<const char*, double>>{
           {"p1", .01}, {"p10", .1}, {"p50", .5}, {"p90", .9}, {"p99", .99}}) {
    const uint64_t found = json[name];
    const uint64_t exact =
        all[static_cast<size_t>(share * static_cast<double>(all.size())) - 1];
    EXPECT_LE(found, exact) << name;
    EXPECT_GE(found + found / 512 + (found < 1024 ? 0 : 1), exact) << name;
  }
}

TEST(SequenceReport, ADocumentThatIsTooLongForALengthSaysSo) {
  const std::vector<uint64_t> rows = {1, 1 << 24};
  SequenceReport report(rows);
  report.Add(5'000'000);
  const auto json = report.Finish();
  EXPECT_THAT(json["packed"][0]["error"].get<std::string>(),
              HasSubstr("document 0"));
  EXPECT_EQ(json["packed"][1]["rows"], 1);
  EXPECT_LE(json["p50"], 5'000'000);
}

TEST(SequenceReport, NumbersHaveTheirType) {
  const std::vector<uint8_t> bytes = {0xFF, 0xFF, 0x01, 0x00, 0x07};
  const auto span = std::as_bytes(std::span(bytes));
  EXPECT_THAT(WholeNumbers(span, DType::kUint16), ElementsAre(65535, 1));
  EXPECT_THAT(WholeNumbers(span, DType::kInt16), ElementsAre(-1, 1));
  EXPECT_THAT(WholeNumbers(span, DType::kInt32), ElementsAre(131071));
  EXPECT_THAT(WholeNumbers(span, DType::kFloat32), ElementsAre());
  EXPECT_TRUE(IsSequence({ValueType::Kind::kTensor, DType::kUint16, {-1}}));
  EXPECT_FALSE(IsSequence({ValueType::Kind::kTensor, DType::kUint16, {4}}));
  EXPECT_FALSE(IsSequence({ValueType::Kind::kTensor, DType::kFloat32, {-1}}));
}

}  // namespace
}  // namespace leat::worker
