// SPDX-License-Identifier: Apache-2.0
#include "core/plan/share_layout.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "core/plan/plan.h"
#include "core/plan/sample_order.h"
#include "core/status.h"
#include "gtest/gtest.h"
#include "tests/core/golden.h"

namespace leat {
namespace {

using Sizes = std::vector<uint64_t>;

struct Mix {
  uint64_t seed = 7;
  uint32_t batch = 10;
  std::vector<SharesFrom> shares = {};
  std::vector<Sizes> sources = {};  // of groups
  MixEnd ends = MixEnd::kStream;
  std::map<size_t, std::vector<double>> groups = {};  // with shares
};

absl::StatusOr<ShareLayout> Make(const Mix& mix) {
  std::vector<std::string> names;
  std::vector<ShareLayout::Source> sources;
  for (size_t i = 0; i < mix.sources.size(); ++i) {
    const Sizes& sizes = mix.sources[i];
    names.push_back("s" + std::to_string(i));
    sources.push_back({names.back(),
                       std::accumulate(sizes.begin(), sizes.end(), uint64_t{0}),
                       std::nullopt});
    if (!mix.groups.contains(i)) continue;
    std::vector<Group> groups;
    std::vector<GroupShare> shares;
    for (size_t group = 0; group < sizes.size(); ++group) {
      groups.push_back({"g" + std::to_string(group), sizes[group]});
      shares.push_back({groups.back().name, mix.groups.at(i)[group]});
    }
    sources.back().groups = GroupShares::Create(groups, shares).value();
  }
  auto schedule = ShareSchedule::Create(mix.shares, names, mix.batch);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  return ShareLayout::Create(*std::move(schedule), std::move(sources), mix.ends,
                             mix.seed);
}

std::string ErrorOfLayout(const Mix& mix) {
  const auto layout = Make(mix);
  EXPECT_EQ(layout.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(Message(layout.status()));
}

// The layouts of tests/golden/generate.py.
const std::map<std::string, Mix>& Layouts() {
  static const auto* layouts = new std::map<std::string, Mix>{
      {"plain", {7, 10, {{0, {7, 2, 1}}}, {{60}, {40}, {5}}}},
      {"scheduled",
       {~uint64_t{0},
        200,
        {{0, {0.7, 0.2, 0.1, 0}}, {3, {0.5, 0.5, 0, 0}}, {4, {0, 1, 1, 2}}},
        {{1000}, {77}, {12}, {5}}}},
      {"grouped",
       {.seed = 42,
        .batch = 130,
        .shares = {{0, {0.25, 0.75}}},
        .sources = {{500, 40, 7, 1300, 1}, {900}},
        .groups = {{0, {1, 1, 1, 1, 1}}}}},
      {"alone",
       {.seed = 42,
        .batch = 64,
        .shares = {{0, {1}}},
        .sources = {{30, 0, 70}},
        .groups = {{0, {0.9, 0, 0.1}}}}}};
  return *layouts;
}

std::vector<uint32_t> AllRows(uint32_t batch) {
  std::vector<uint32_t> rows(batch);
  std::iota(rows.begin(), rows.end(), 0u);
  return rows;
}

using Where = std::tuple<uint32_t, uint32_t, uint64_t, uint64_t>;
Where WhereOf(const Spot& spot) {
  return {spot.source, spot.run.number, spot.pass, spot.position};
}

// Returns the spots that Cut finds, in the order of `rows`.
std::vector<Where> Cut(const Layout& layout, uint64_t epoch, uint64_t step,
                       const std::vector<uint32_t>& rows) {
  Stretches found;
  layout.Cut(epoch, step, rows, &found);
  EXPECT_EQ(found.positions.size(), rows.size());
  std::vector<Where> spots(rows.size());
  size_t at = 0;
  for (const Stretch& stretch : found.list)
    for (size_t i = 0; i < stretch.rows; ++i, ++at)
      spots[found.slots.empty() ? at : found.slots[at]] = {
          stretch.source, stretch.run.number, stretch.pass,
          found.positions[at]};
  EXPECT_EQ(at, rows.size());
  return spots;
}

// Rows of the streams of sources without groups.
std::vector<std::vector<uint64_t>> StreamRows(
    const ShareLayout& layout, uint64_t step,
    const std::vector<uint32_t>& rows) {
  std::vector<std::vector<uint64_t>> found(layout.sources().size());
  for (const auto& [source, group, pass, position] : Cut(layout, 0, step, rows))
    found[source].push_back(pass * layout.sources()[source].num_samples +
                            position);
  return found;
}

TEST(ShareLayout, CutAgreesWithSpotOfForAnyRowsInAnyOrder) {
  std::mt19937_64 random(1);
  std::map<std::string, Mix> mixes = Layouts();
  mixes["many"] = {.batch = 900,
                   .shares = {{0, std::vector<double>(700, 1)}},
                   .sources = std::vector<Sizes>(700, {3})};
  for (const auto& [name, mix] : mixes) {
    const ShareLayout layout = Make(mix).value();
    for (int i = 0; i < 40; ++i) {
      std::vector<uint32_t> rows = AllRows(mix.batch);
      if (i > 0) std::ranges::shuffle(rows, random);
      rows.resize(i == 0 ? rows.size() : 1 + random() % rows.size());
      if (i % 2 == 0) std::ranges::sort(rows);
      const uint64_t step = i < 10 ? static_cast<uint64_t>(i) : random() >> 24;
      const std::vector<Where> spots = Cut(layout, 0, step, rows);
      for (size_t row = 0; row < rows.size(); ++row)
        ASSERT_EQ(spots[row], WhereOf(layout.SpotOf(0, step, rows[row])))
            << name << " " << step;
    }
  }
}

TEST(ShareLayout, CutTakesARowTwiceAndNoRows) {
  const ShareLayout layout = Make(Layouts().at("scheduled")).value();
  const std::vector<Where> spots = Cut(layout, 0, 3, {5, 5, 70, 5});
  EXPECT_EQ(spots[0], spots[1]);
  EXPECT_EQ(spots[0], spots[3]);
  EXPECT_TRUE(Cut(layout, 0, 3, {}).empty());
}

// Batches of every step hold the streams' rows, each once and none left out,
// before, at and after each boundary of the schedule.
TEST(ShareLayout, EverySourceWalksItsOwnStream) {
  for (const char* name : {"plain", "scheduled"}) {
    const Mix& mix = Layouts().at(name);
    const ShareLayout layout = Make(mix).value();
    Sizes seen(mix.sources.size());
    for (uint64_t step = 0; step < 12; ++step) {
      auto rows = StreamRows(layout, step, AllRows(mix.batch));
      for (size_t source = 0; source < rows.size(); ++source) {
        std::ranges::sort(rows[source]);
        for (const uint64_t row : rows[source])
          ASSERT_EQ(row, seen[source]++) << name << " " << step;
      }
    }
  }
}

// The main property: a source of a mixture has the rows of a job of its own.
TEST(ShareLayout, ASourceHasTheRowsOfAStreamJobOfItsSeed) {
  const Mix& mix = Layouts().at("scheduled");
  const ShareLayout layout = Make(mix).value();
  for (const Order order :
       {Order::kSequential, Order::kGlobalShuffle, Order::kShardShuffle})
    for (uint32_t source = 0; source < mix.sources.size(); ++source) {
      JobSpec spec;
      spec.seed = SourceSeed(mix.seed, source);
      spec.batch = 6;
      spec.order = order;
      spec.last_batch = LastBatch::kStream;
      spec.shuffle_window = 2;
      const auto shards =
          ShardTable::Uniform(mix.sources[source][0], 3).value();
      const Plan alone(spec, shards);
      const SampleOrder in_mixture(
          {.seed = spec.seed, .order = order, .window = spec.shuffle_window},
          shards, 1);
      for (uint64_t step = 0; step < 8; ++step)
        for (const uint32_t row : AllRows(mix.batch)) {
          const Spot spot = layout.SpotOf(0, step, row);
          if (spot.source != source) continue;
          const uint64_t stream_row = layout.RowOf(0, step, row).index;
          uint64_t sample = spot.position, wanted = 0;
          in_mixture.Map(spot.pass, spot.run, std::span(&sample, 1));
          const auto row_alone = static_cast<uint32_t>(stream_row % 6);
          alone.Samples(0, stream_row / 6, std::span(&row_alone, 1),
                        std::span(&wanted, 1));
          ASSERT_EQ(sample, wanted) << step << " " << row;
          ASSERT_EQ(spot.pass, alone.PassOf(0, stream_row / 6, row_alone));
        }
    }
}

TEST(ShareLayout, BatchesAndHostsOfWholeRunsAreWithin4RowsOfTheirShares) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 20; ++i) {
    Mix mix{.seed = random(), .batch = 512};
    mix.shares = {{0, {}}, {2, {}}};
    mix.sources.resize(2 + random() % 30, {1000});
    for (SharesFrom& segment : mix.shares)
      for (size_t source = 0; source < mix.sources.size(); ++source)
        segment.weights.push_back(static_cast<double>(1 + random() % 1000));
    const ShareLayout layout = Make(mix).value();
    for (uint64_t step = 0; step < 5; ++step)
      for (const uint32_t host_rows : {64u, 128u, 192u, 512u}) {
        const auto first =
            static_cast<uint32_t>(64 * (random() % (9 - host_rows / 64)));
        std::vector<uint32_t> rows(host_rows);
        std::iota(rows.begin(), rows.end(), first);
        const auto found = StreamRows(layout, step, rows);
        const ShareTree& tree = layout.schedule().At(step).tree();
        for (size_t source = 0; source < found.size(); ++source) {
          const double share = static_cast<double>(tree.weights()[source]) /
                               static_cast<double>(tree.sum());
          ASSERT_NEAR(static_cast<double>(found[source].size()),
                      share * host_rows, 2 * 1.68);
        }
      }
  }
}

TEST(ShareLayout, AnAppendedSegmentAndSourceLeaveRowsAsTheyWere) {
  Mix mix = Layouts().at("scheduled");
  const ShareLayout before = Make(mix).value();
  for (SharesFrom& segment : mix.shares) segment.weights.push_back(0);
  mix.shares.push_back({9, {1, 1, 1, 1, 3}});
  mix.sources.push_back({20});
  const ShareLayout after = Make(mix).value();
  const std::vector<uint32_t> rows = AllRows(mix.batch);
  for (uint64_t step = 0; step < 9; ++step)
    EXPECT_EQ(Cut(before, 0, step, rows), Cut(after, 0, step, rows)) << step;
  EXPECT_NE(Cut(before, 0, 9, rows), Cut(after, 0, 9, rows));
}

TEST(ShareLayout, GroupsHangBelowTheirSource) {
  const Mix& mix = Layouts().at("grouped");
  const ShareLayout layout = Make(mix).value();
  Sizes rows(5);
  for (uint64_t step = 0; step < 30; ++step) {
    const double source_rows = 130 * 0.25 * static_cast<double>(step + 1);
    for (const auto& [source, group, pass, position] :
         Cut(layout, 0, step, AllRows(mix.batch)))
      if (source == 0) ++rows[group];
    for (const uint64_t count : rows)
      EXPECT_NEAR(static_cast<double>(count), source_rows / 5, 1.68 + 1.68 / 5);
  }
}

// The example in share_layout.h.
TEST(ShareLayout, EpochsEndWithTheFirstSourceOrTheLast) {
  Mix mix = Layouts().at("plain");
  EXPECT_EQ(Make(mix)->steps_per_epoch(), kStreamSteps);
  mix.ends = MixEnd::kFirst;
  EXPECT_EQ(Make(mix)->steps_per_epoch(), 5u);
  mix.ends = MixEnd::kAll;
  EXPECT_EQ(Make(mix)->steps_per_epoch(), 20u);
}

TEST(ShareLayout, EndsAreTheMostAndTheFewestStepsOfTheirRules) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 100; ++i) {
    Mix mix{.batch = static_cast<uint32_t>(1 + random() % 20)};
    mix.shares = {{0, {}}};
    const size_t sources = 1 + random() % 6;
    while (mix.sources.size() < sources) {
      mix.shares[0].weights.push_back(static_cast<double>(1 + random() % 9));
      mix.sources.push_back({20 + random() % 1000});
    }
    const auto rows_at = [&](const ShareLayout& layout, uint64_t steps) {
      Sizes rows(mix.sources.size());
      layout.schedule().RowsBefore(steps, rows);
      return rows;
    };
    const auto all = [&](const Sizes& rows, auto compare) {
      for (size_t source = 0; source < rows.size(); ++source)
        if (!compare(rows[source], mix.sources[source][0])) return false;
      return true;
    };
    mix.ends = MixEnd::kFirst;
    const ShareLayout first = Make(mix).value();
    const uint64_t most = first.steps_per_epoch();
    EXPECT_TRUE(all(rows_at(first, most), std::less_equal()));
    EXPECT_FALSE(all(rows_at(first, most + 1), std::less_equal()));
    mix.ends = MixEnd::kAll;
    const ShareLayout last = Make(mix).value();
    const uint64_t fewest = last.steps_per_epoch();
    EXPECT_TRUE(all(rows_at(last, fewest), std::greater_equal()));
    EXPECT_FALSE(all(rows_at(last, fewest - 1), std::greater_equal()));
  }
}

TEST(ShareLayout, EpochsContinueTheStreams) {
  Mix mix = Layouts().at("plain");
  const ShareLayout stream = Make(mix).value();
  mix.ends = MixEnd::kFirst;
  const ShareLayout epochs = Make(mix).value();
  const std::vector<uint32_t> rows = AllRows(mix.batch);
  for (uint64_t step = 0; step < 20; ++step)
    EXPECT_EQ(Cut(epochs, step / 5, step % 5, rows),
              Cut(stream, 0, step, rows));
  EXPECT_TRUE(epochs.CheckEpoch(kStreamSteps / 5 - 1).ok());
  EXPECT_EQ(Message(epochs.CheckEpoch(kStreamSteps / 5)),
            "epoch 219902325555 of 5 steps: want at most 219902325554");
  EXPECT_TRUE(stream.CheckEpoch(0).ok());
  EXPECT_EQ(stream.CheckEpoch(1).code(), absl::StatusCode::kInvalidArgument);
}

TEST(ShareLayout, OneSourceEndsAsADatasetWhoseLastBatchIsDropped) {
  Mix mix = Layouts().at("alone");
  mix.ends = MixEnd::kFirst;
  EXPECT_EQ(Make(mix)->steps_per_epoch(), 100u / 64);
}

TEST(ShareLayout, RefusesEndsThatNeverComeOrCameBefore) {
  Mix mix = Layouts().at("plain");
  mix.ends = MixEnd::kFirst;
  mix.batch = 100;
  EXPECT_EQ(ErrorOfLayout(mix),
            "ends \"first\": source \"s0\" has 60 samples, and 70 rows in the "
            "first batch: want a smaller batch, or other ends");
  mix.ends = MixEnd::kAll;
  mix.shares[0].weights = {1, 0, 1};
  EXPECT_EQ(
      ErrorOfLayout(mix),
      "ends \"all\": source \"s1\" has the weight 0, and never ends: want "
      "a weight over 0, or other ends");
  mix.shares[0].weights = {1, 1e-9, 1};
  mix.sources[1] = {uint64_t{1} << 40};
  EXPECT_EQ(ErrorOfLayout(mix),
            "ends \"all\": source \"s1\" does not end within 1099511627776 "
            "steps: want a larger weight, or other ends");
  mix.shares.push_back({10, {1, 1, 1}});
  EXPECT_EQ(ErrorOfLayout(mix),
            "ends \"all\" with 2 segments of weights: want no ends, as the end "
            "would depend on the weights to come");
}

TEST(ShareLayout, RefusesSourcesWithoutSamplesAndWithTooMany) {
  Mix mix = Layouts().at("plain");
  mix.sources[1] = {0};
  EXPECT_EQ(ErrorOfLayout(mix), "source \"s1\" has 0 samples: want at least 1");
  mix.sources[1] = {kMaxSamples - 60};
  EXPECT_EQ(ErrorOfLayout(mix),
            "sources have over 281474976710656 samples in all, source \"s1\" "
            "alone 281474976710596: want at most 281474976710656");
  mix.sources[2] = {~uint64_t{0}};
  EXPECT_NE(ErrorOfLayout(mix).find("source \"s2\" alone"), std::string::npos);
}

TEST(ShareLayout, IsGolden) {
  for (const auto& line : GoldenLines("shares.txt")) {
    const auto number = [&](size_t i) { return std::stoull(line.at(i)); };
    const auto small = [&](size_t i) {
      return static_cast<uint32_t>(number(i));
    };
    const auto known = Layouts().find(line.at(1));
    if (known == Layouts().end()) continue;  // of another test
    Mix mix = known->second;
    if (line[0] == "steps")
      mix.ends =
          line[2] == Name(MixEnd::kFirst) ? MixEnd::kFirst : MixEnd::kAll;
    const ShareLayout layout = Make(mix).value();
    if (line[0] == "steps") {
      EXPECT_EQ(layout.steps_per_epoch(), number(3)) << line[1] << line[2];
    } else if (line[0] == "before") {
      EXPECT_EQ(layout.schedule().RowsBefore(number(2), small(3)), number(4));
    } else {
      const Spot spot = layout.SpotOf(0, number(2), small(3));
      EXPECT_EQ(WhereOf(spot),
                (Where{small(4), small(5), number(6), number(7)}))
          << line[1] << " " << line[2] << " " << line[3];
      const uint64_t seed = mix.sources.size() == 1
                                ? mix.seed
                                : SourceSeed(mix.seed, spot.source);
      const uint64_t samples = layout.sources()[spot.source].num_samples;
      uint64_t sample = spot.position;
      SampleOrder({.seed = seed}, ShardTable::Uniform(samples, samples).value(),
                  1)
          .Map(spot.pass, spot.run, std::span(&sample, 1));
      EXPECT_EQ(sample, number(8));
    }
  }
}

}  // namespace
}  // namespace leat
