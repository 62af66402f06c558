// SPDX-License-Identifier: Apache-2.0
#include "worker/source/arranged/column_groups.h"

#include <algorithm>
#include <string>
#include <vector>

#include "core/cluster/fault.h"
#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/source/arranged/arrange.h"

namespace leat::worker {
namespace {

using testing::ElementsAre;

// Rows of a number, a fraction and a text.
class StoredRows final : public FormatSource {
 public:
  struct Row {
    int64_t id = 0;
    float score = 0;
    std::string text;
  };
  std::vector<Row> rows;
  std::vector<uint64_t> bad;

  uint64_t num_samples() const override { return rows.size(); }
  uint64_t RecordOf(uint64_t sample) const override { return sample; }
  absl::StatusOr<StoredSample> Read(uint64_t sample) const override {
    if (std::ranges::find(bad, sample) != bad.end())
      return WithFault(DataLoss("damaged"), Fault::kSample);
    const Row& row = rows[sample];
    StoredSample stored;
    stored.fields = {{std::as_bytes(std::span(&row.id, 1)), {}},
                     {std::as_bytes(std::span(&row.score, 1)), {}},
                     {std::as_bytes(std::span(row.text)), {}}};
    return stored;
  }
  const Digest& fingerprint() const override { return fingerprint_; }
  std::string Describe(uint64_t sample) const override {
    return fmt::format("row {}", sample);
  }
  absl::StatusOr<RecordPlace> Locate(uint64_t) const override {
    return RecordPlace{.file = "/rows"};
  }

 private:
  const Digest fingerprint_{};
};

class GroupedRows : public ::testing::Test {
 protected:
  GroupedRows() {
    using Kind = ValueType::Kind;
    base_.name = "rows";
    base_.types = {{Kind::kTensor, DType::kInt64, {}},
                   {Kind::kTensor, DType::kFloat32, {}},
                   {Kind::kEncoded, DType::kUint8, {}}};
    rows_.rows = {
        {7, 0.5, "en"}, {-3, 1, "de"}, {7, 2, "en"}, {1, 1, "caf\xe9"}};
  }
  absl::StatusOr<BuiltIndex> By(const std::string& column) {
    base_.shards = *ShardTable::Uniform(rows_.rows.size(), 8);
    return Arrange({.by = column},
                   {.base = base_, .reader = reader_, .source = rows_}, {});
  }

  const Node reader_{
      .op = "readers.parquet",
      .inputs = {},
      .args = {{"columns", std::vector<std::string>{"id", "score", "text"}}}};
  DatasetInfo base_;
  StoredRows rows_;
};

TEST_F(GroupedRows, ANumberOrATextNamesTheGroup) {
  EXPECT_THAT(By("id")->groups,
              ElementsAre(Group{"-3", 1}, Group{"1", 1}, Group{"7", 2}));
  EXPECT_THAT(By("text")->groups, ElementsAre(Group{"caf\\xe9", 1},
                                              Group{"de", 1}, Group{"en", 2}));
  EXPECT_THAT(By("length(text)")->groups,
              ElementsAre(Group{"2", 3}, Group{"4", 1}));
}

TEST_F(GroupedRows, ASampleWithoutAValueIsLeftOutAndCounted) {
  rows_.bad = {1, 2};
  const auto index = By("id");
  ASSERT_TRUE(index.ok()) << index.status();
  EXPECT_THAT(index->groups, ElementsAre(Group{"1", 1}, Group{"7", 1}));
  EXPECT_EQ(index->shards.num_samples(), 2u);
  EXPECT_THAT(
      index->passed_over,
      ElementsAre(PassedOver{"samples without a value of id", 2, "row 1"}));
  rows_.bad = {0, 1, 2, 3};
  EXPECT_EQ(Message(By("id").status()),
            "weights: none of 4 samples has a value of id");
}

TEST_F(GroupedRows, OtherValuesAreAnError) {
  EXPECT_EQ(Message(By("score").status()),
            "by: column score of row 0 is 0.5; want whole numbers or texts");
  rows_.rows[2].text.assign(257, 'x');
  EXPECT_EQ(
      Message(By("text").status()),
      "by: column text of row 2 is a text of 257 bytes; want at most 256");
}

TEST_F(GroupedRows, ThereIsAMostOfGroups) {
  rows_.rows.clear();
  for (size_t i = 0; i <= kMaxGroups; ++i)
    rows_.rows.push_back({static_cast<int64_t>(i), 0, ""});
  EXPECT_EQ(Message(By("id").status()),
            "weights: over 65536 groups, of one value of id each: want at most "
            "so many");
  rows_.rows.pop_back();
  EXPECT_EQ(By("id")->groups.size(), kMaxGroups);
}

}  // namespace
}  // namespace leat::worker
