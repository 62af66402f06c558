// SPDX-License-Identifier: Apache-2.0
#include "worker/source/arranged/grouped_writer.h"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/status.h"
#include "gmock/gmock.h"
#include "tests/worker/source/arranged/arranged_fixture.h"

namespace leat::worker {
namespace {

using testing::ElementsAre;

class GroupedWriterTest : public ArrangedTest {
 protected:
  GroupedWriterTest() { base_.groups = {{"a", 150}, {"b", 50}}; }
};

// Collects the samples of each block.
class BlockSizes final : public IndexSink {
 public:
  absl::Status Add(std::string, uint64_t samples) override {
    sizes.push_back(samples);
    return absl::OkStatus();
  }
  std::vector<uint64_t> sizes;
};

// Groups may begin and end within a block.
TEST_F(GroupedWriterTest, BlocksHaveNothingToDoWithGroups) {
  const Arrangement odd{.samples = {.begin = 1, .end = 200, .step = 2},
                        .by_class = true};
  const auto whole = Made(odd);
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_THAT(whole->groups, ElementsAre(Group{"a", 75}, Group{"b", 25}));
  BlockSizes sink;
  limits_.blocks = &sink;
  limits_.block_bytes = 64;
  const auto index = Made(odd);
  ASSERT_TRUE(index.ok()) << index.status();
  EXPECT_GT(sink.sizes.size(), 3u);
  EXPECT_EQ(index->fingerprint, whole->fingerprint);
  EXPECT_EQ(index->groups, whole->groups);
}

// All samples are of one group.
class OneGroup final : public SampleGroups {
 public:
  absl::StatusOr<std::vector<std::optional<GroupKey>>> KeysOf(
      std::span<const uint64_t> samples) override {
    return std::vector<std::optional<GroupKey>>(samples.size(), int64_t{0});
  }
  absl::StatusOr<std::vector<Group>> Named(
      const GroupSizes& sizes) const override {
    return std::vector<Group>{{.name = "all", .samples = sizes.at(0)}};
  }
  std::string What() const override { return "group"; }
};

TEST_F(GroupedWriterTest, ThereIsAMostOfSamples) {
  const auto written = [&](uint64_t samples) {
    GroupedWriter writer(std::make_unique<OneGroup>(), source_.get(), limits_,
                         100);
    EXPECT_TRUE(writer.Begin("by label", base_.fingerprint).ok());
    for (uint64_t i = 0; i < samples; ++i) EXPECT_TRUE(writer.Add(i).ok());
    return writer.Finish().status();
  };
  EXPECT_TRUE(written(100).ok());
  const absl::Status status = written(101);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_EQ(Message(status),
            "weights: over 100 samples in groups: want at most so many");
}

// Weights that change make another dataset, also where no item moves.
TEST_F(GroupedWriterTest, TheFingerprintIsOfTheGroups) {
  const auto fingerprint = [&](double last) {
    std::vector<double> list(kFiles, 1.0);
    list.back() = last;
    const auto index = Made({.weights = {.list = list}});
    EXPECT_TRUE(index.ok()) << index.status();
    return index->content;
  };
  EXPECT_NE(fingerprint(2), fingerprint(3));
  EXPECT_NE(Made({.by_class = true})->content, Made({.by = "label"})->content);
  const Digest before = Made({.by_class = true})->fingerprint;
  base_.groups = {{"a", 151}, {"b", 49}};
  EXPECT_NE(Made({.by_class = true})->fingerprint, before);
}

}  // namespace
}  // namespace leat::worker
