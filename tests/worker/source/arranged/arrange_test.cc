// SPDX-License-Identifier: Apache-2.0
#include "worker/source/arranged/arrange.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <utility>

#include "gmock/gmock.h"
#include "tests/worker/source/arranged/arranged_fixture.h"

namespace leat::worker {
namespace {

using testing::ElementsAre;

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

}  // namespace
}  // namespace leat::worker
