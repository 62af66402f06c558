// SPDX-License-Identifier: Apache-2.0
#include "worker/source/arranged/arrange.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <numeric>
#include <utility>

#include "gmock/gmock.h"
#include "tests/worker/source/arranged/arranged_fixture.h"
#include "tests/worker/source/arranged/kept_parts.h"

namespace leat::worker {
namespace {

using testing::ElementsAre;
using testing::Gt;
using testing::Lt;

class ArrangeTest : public ArrangedTest {};

TEST_F(ArrangeTest, ARangeHasItsNumbers) {
  EXPECT_THAT(Chosen({.samples = {.begin = 190, .end = 200, .step = 3}}),
              ElementsAre(190, 193, 196, 199));
}

TEST_F(ArrangeTest, AListKeepsItsOrder) {
  EXPECT_THAT(Chosen({.samples = {.list = {7, 199, 0, 8}}}),
              ElementsAre(7, 199, 0, 8));
}

TEST_F(ArrangeTest, NamesAndCountsWhatIsThere) {
  const auto index = Made({.samples = {.begin = 0, .end = 50, .step = 1}});
  ASSERT_TRUE(index.ok()) << index.status();
  EXPECT_EQ(index->name, base_.name + " › 0:50");
  EXPECT_EQ(index->shards.num_samples(), 50u);
  EXPECT_EQ(index->bytes, base_.bytes / 4);
  EXPECT_EQ(index->classes, base_.classes);
}

TEST_F(ArrangeTest, NumbersThatTheBaseLacksAreAnError) {
  const std::string want = fmt::format(
      "; want numbers below 200, the samples of dataset \"{}\"", base_.name);
  EXPECT_EQ(ErrorOf({.samples = {.begin = 0, .end = 201, .step = 1}}),
            "samples has 200" + want);
  EXPECT_EQ(ErrorOf({.samples = {.list = {3, 50'000}}}),
            "samples has 50000" + want);
}

// The digest of the items decides, not the way to write them down or to cut
// them into blocks.
TEST_F(ArrangeTest, TheFingerprintIsOfBaseTextAndItems) {
  const Arrangement range{.samples = {.begin = 1, .end = 4, .step = 1}};
  const auto first = Made(range), again = Made(range);
  ASSERT_TRUE(first.ok() && again.ok());
  EXPECT_EQ(first->fingerprint, again->fingerprint);
  EXPECT_EQ(first->content, again->content);
  EXPECT_NE(first->content, first->fingerprint);
  const auto list = Made({.samples = {.list = {1, 2, 3}}});
  ASSERT_TRUE(list.ok());
  EXPECT_NE(list->fingerprint, first->fingerprint);
  base_.fingerprint[0] ^= 1;
  const auto of_other = Made(range);
  ASSERT_TRUE(of_other.ok());
  EXPECT_NE(of_other->fingerprint, first->fingerprint);
  EXPECT_EQ(of_other->content, first->content);
}

// Collects blocks as the coordinator does.
class Blocks final : public IndexSink {
 public:
  absl::Status Add(std::string bytes, uint64_t samples) override {
    blocks.emplace_back(std::move(bytes), samples);
    return absl::OkStatus();
  }
  std::vector<std::pair<std::string, uint64_t>> blocks;
};

TEST_F(ArrangeTest, EachBlockOpensWithTheHeadAlone) {
  Blocks sink;
  limits_.blocks = &sink;
  limits_.block_bytes = 64;
  Arrangement all{.samples = {.list = std::vector<uint64_t>(kFiles)}};
  std::iota(all.samples.list.rbegin(), all.samples.list.rend(), 0);
  const auto index = Made(all);
  ASSERT_TRUE(index.ok()) << index.status();
  EXPECT_TRUE(index->blob.empty());
  ASSERT_GT(sink.blocks.size(), 5u);
  EXPECT_EQ(sink.blocks[0].second, 0u);
  std::vector<uint64_t> chosen;
  for (size_t i = 1; i < sink.blocks.size(); ++i) {
    EXPECT_LE(sink.blocks[i].first.size(), limits_.block_bytes);
    const auto source =
        OpenArranged(sink.blocks[0].first + sink.blocks[i].first,
                     {source_, base_.fingerprint}, index->fingerprint);
    ASSERT_TRUE(source.ok()) << source.status();
    EXPECT_EQ((*source)->num_samples(), sink.blocks[i].second);
    for (uint64_t item = 0; item < (*source)->num_samples(); ++item)
      chosen.push_back((*source)->RecordOf(item));
  }
  EXPECT_EQ(chosen, all.samples.list);
  limits_.blocks = nullptr;
  const auto whole = Made(all);
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(whole->fingerprint, index->fingerprint);
}

TEST_F(ArrangeTest, EndsWhenTheWorkerStops) {
  const std::atomic<bool> cancelled = true;
  limits_.cancelled = &cancelled;
  EXPECT_TRUE(absl::IsCancelled(
      Made({.samples = {.begin = 0, .end = 5, .step = 1}}).status()));
}

// --- A listing that is killed, and goes on

// 50,000 rows of a number and 0 to 6 tokens, and counts what is read of them.
class CountedRows final : public FormatSource {
 public:
  static constexpr uint64_t kRows = 50'000;

  uint64_t num_samples() const override { return kRows; }
  uint64_t RecordOf(uint64_t sample) const override { return sample; }
  absl::StatusOr<StoredSample> Read(uint64_t sample) const override {
    ++reads;
    struct Row {
      int64_t number;
      std::array<int32_t, 6> tokens{};
    };
    const auto row = std::make_shared<Row>(Row{static_cast<int64_t>(sample)});
    StoredSample stored;
    stored.fields.push_back({std::as_bytes(std::span(&row->number, 1)), {}});
    const auto tokens = std::span(row->tokens).first(sample % 7);
    stored.fields.push_back(
        {std::as_bytes(tokens), {static_cast<int64_t>(tokens.size())}});
    stored.owner = row;
    return stored;
  }
  const Digest& fingerprint() const override { return fingerprint_; }
  std::string Describe(uint64_t sample) const override {
    return fmt::format("row {}", sample);
  }
  absl::StatusOr<RecordPlace> Locate(uint64_t sample) const override {
    return RecordPlace{.file = "/rows"};
  }

  mutable std::atomic<uint64_t> reads = 0;

 private:
  const Digest fingerprint_{};
};

enum class Reads { kCondition, kLengths, kGroups };

class KilledListing : public testing::TestWithParam<Reads> {
 protected:
  KilledListing() {
    base_.name = "rows";
    base_.fingerprint = HashOf("rows");
    base_.shards = *ShardTable::Uniform(CountedRows::kRows, 1000);
    base_.types = {{ValueType::Kind::kTensor, DType::kInt64, {}},
                   {ValueType::Kind::kTensor, DType::kInt32, {-1}}};
    if (GetParam() == Reads::kCondition)
      arrangement_.where = "id < 40000 and id != 7";
    if (GetParam() == Reads::kGroups) arrangement_.by = "length(tokens)";
    if (GetParam() == Reads::kLengths)
      arrangement_.pack =
          PackNode{.packing = {.how = PackHow::kFit, .length = 16},
                   .outputs = {1},
                   .fill_values = {0}};
  }
  absl::StatusOr<BuiltIndex> Made(TrailKeeper* keeper) {
    rows_.reads = 0;
    return Arrange(arrangement_,
                   {.base = base_,
                    .reader = reader_,
                    .source = rows_,
                    .keeper = keeper,
                    .trail = {.first_interval = Duration(1)}},
                   {});
  }

  const Node reader_{
      .op = "readers.parquet",
      .inputs = {},
      .args = {{"columns", std::vector<std::string>{"id", "tokens"}}}};
  DatasetInfo base_;
  CountedRows rows_;
  Arrangement arrangement_;
};

TEST_P(KilledListing, GoesOnWhereItWas) {
  const auto whole = Made(nullptr);
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_EQ(rows_.reads, CountedRows::kRows);
  KeptParts kept;
  kept.most = 6;
  EXPECT_TRUE(absl::IsCancelled(Made(&kept).status()));
  const uint64_t before = rows_.reads;
  EXPECT_THAT(before, Gt(CountedRows::kRows / 3));
  EXPECT_THAT(kept.progress.walked, Gt(CountedRows::kRows / 3));
  EXPECT_EQ(kept.progress.of, CountedRows::kRows);
  kept.most = SIZE_MAX;
  const auto again = Made(&kept);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->fingerprint, whole->fingerprint);
  EXPECT_EQ(again->blob, whole->blob);
  EXPECT_EQ(again->groups, whole->groups);
  // One part at most is read again of what was read before.
  EXPECT_THAT(rows_.reads.load(), Lt(CountedRows::kRows - before + 5000));
}

TEST_P(KilledListing, ReadsWhatATrailDoesNotSayWell) {
  const auto whole = Made(nullptr);
  KeptParts kept;
  ASSERT_TRUE(Made(&kept).ok());
  for (std::string& part : kept.parts) {
    stored::v1::ListingTrail trail;
    ASSERT_TRUE(trail.ParseFromString(part));
    for (auto& result : *trail.mutable_results()) result.set_result("\x80");
    part = trail.SerializeAsString();
  }
  const auto again = Made(&kept);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(rows_.reads, CountedRows::kRows);
  EXPECT_EQ(again->blob, whole->blob);
}

INSTANTIATE_TEST_SUITE_P(OfAConditionOfLengthsAndOfGroups, KilledListing,
                         testing::Values(Reads::kCondition, Reads::kLengths,
                                         Reads::kGroups));

}  // namespace
}  // namespace leat::worker
