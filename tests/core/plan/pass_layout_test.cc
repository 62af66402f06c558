// SPDX-License-Identifier: Apache-2.0
#include "core/plan/pass_layout.h"

#include <vector>

#include "gtest/gtest.h"

namespace leat {
namespace {

struct Found {
  Stretch stretch;
  std::vector<uint64_t> positions;
};

Found Locate(const PassLayout& layout, uint64_t epoch, uint64_t step,
             const std::vector<uint32_t>& rows) {
  Found found{.positions = std::vector<uint64_t>(rows.size(), 77)};
  found.stretch = layout.Locate(epoch, step, rows, found.positions);
  return found;
}

JobSpec Parts(uint32_t batch, uint32_t num_parts, LastBatch last_batch) {
  JobSpec spec;
  spec.batch = batch;
  spec.num_parts = num_parts;
  spec.last_batch = last_batch;
  return spec;
}

// The example in pass_layout.cc: block 1 of 3 over 7 samples.
TEST(PassLayout, ARotatingStreamWalksThePartsAsTheyLie) {
  JobSpec spec = Parts(3, 3, LastBatch::kStream);
  spec.rotate_parts = true;
  const PassLayout layout(spec, 7);
  const uint32_t parts[] = {1, 1, 2, 2, 2, 0, 0, 1, 1, 2};
  const uint64_t passes[] = {0, 0, 1, 1, 1, 2, 2, 3, 3, 4};
  const uint64_t positions[] = {0, 1, 0, 1, 2, 0, 1, 0, 1, 0};
  for (uint64_t step = 0; step < 10; ++step) {
    const Found found = Locate(layout, 0, step, {1});
    EXPECT_EQ(found.stretch.run.number, parts[step]) << step;
    EXPECT_EQ(found.stretch.pass, passes[step]) << step;
    EXPECT_EQ(layout.PassOf(0, step, 1), passes[step]) << step;
    EXPECT_EQ(found.positions[0], positions[step]) << step;
  }
}

TEST(PassLayout, AStretchEndsWithItsBlockOrItsPass) {
  // Blocks of 4 rows; part 0 has 5 samples, part 1 has 6.
  const PassLayout layout(Parts(8, 2, LastBatch::kStream), 11);
  const std::vector<uint32_t> rows = {0, 1, 2, 3, 4, 5, 6, 7};
  EXPECT_EQ(Locate(layout, 0, 0, rows).stretch.rows, 4u);
  const Found first = Locate(layout, 0, 1, rows);
  EXPECT_EQ(first.stretch.rows, 1u) << "the pass ends after sample 4";
  EXPECT_EQ(first.positions,
            (std::vector<uint64_t>{4, 77, 77, 77, 77, 77, 77, 77}))
      << "rows beyond the stretch are left alone";
  const Found next = Locate(layout, 0, 1, {1, 2, 3, 4});
  EXPECT_EQ(next.stretch.rows, 3u);
  EXPECT_EQ(next.stretch.pass, 1u);
}

// Rows of several blocks, passes and parts, in any order, some without a sample.
TEST(PassLayout, CutAndSpotOfAgreeWithLocate) {
  JobSpec stream = Parts(8, 2, LastBatch::kStream);
  stream.rotate_parts = true;
  const std::vector<uint32_t> rows = {7, 0, 1, 2, 3, 4, 5, 6, 0};
  for (const JobSpec& spec : {stream, Parts(8, 2, LastBatch::kPartial)})
    for (uint64_t step = 0; step < 2; ++step) {
      const PassLayout layout(spec, 11);
      Stretches found;
      layout.Cut(0, step, rows, &found);
      EXPECT_TRUE(found.slots.empty());
      size_t row = 0;
      for (const Stretch& stretch : found.list)
        for (size_t i = 0; i < stretch.rows; ++i, ++row) {
          const Spot spot = layout.SpotOf(0, step, rows[row]);
          const Found alone = Locate(layout, 0, step, {rows[row]});
          EXPECT_EQ(found.positions[row], alone.positions[0]);
          EXPECT_EQ(spot.position, alone.positions[0]);
          EXPECT_EQ(stretch.pass, alone.stretch.pass);
          EXPECT_EQ(spot.pass, alone.stretch.pass);
          EXPECT_EQ(stretch.run.number, alone.stretch.run.number);
          EXPECT_EQ(spot.run.range, alone.stretch.run.range);
          if (spot.position == kNoPosition) {
            EXPECT_FALSE(stretch.whole);
          }
        }
      EXPECT_EQ(row, rows.size());
    }
}

TEST(PassLayout, MixedPartsWalkOneRunOfAllSamples) {
  JobSpec spec = Parts(4, 2, LastBatch::kPad);
  spec.mix_parts = true;
  const PassLayout layout(spec, 9);
  EXPECT_EQ(layout.num_runs(), 1u);
  const Found second = Locate(layout, 3, 0, {2, 3});
  EXPECT_EQ(second.stretch.run.number, 0u);
  EXPECT_EQ(second.stretch.run.range, (ShardTable::Range{0, 9}));
  EXPECT_EQ(second.stretch.pass, 3u);
  EXPECT_EQ(second.positions, (std::vector<uint64_t>{4, 5}));
}

TEST(PassLayout, OnlyPartialStepsHaveRowsWithoutAPosition) {
  for (const LastBatch policy : {LastBatch::kFill, LastBatch::kPad,
                                 LastBatch::kPartial, LastBatch::kMask}) {
    const PassLayout layout(Parts(4, 1, policy), 6);
    ASSERT_EQ(layout.steps_per_epoch(), 2u);
    const Found found = Locate(layout, 0, 1, {0, 1, 2, 3});
    const bool partial = policy == LastBatch::kPartial;
    EXPECT_EQ(found.stretch.whole, !partial);
    const uint64_t after = partial                      ? kNoPosition
                           : policy == LastBatch::kFill ? 0
                                                        : 5;
    EXPECT_EQ(found.positions[1], 5u);
    EXPECT_EQ(found.positions[2], after);
    EXPECT_EQ(layout.IsPadding(0, 1, 2), policy == LastBatch::kMask);
    EXPECT_FALSE(layout.IsPadding(0, 1, 1));
  }
}

}  // namespace
}  // namespace leat
