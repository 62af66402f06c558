// SPDX-License-Identifier: Apache-2.0
#include "worker/source/arranged/listing_trail.h"

#include <string>
#include <vector>

#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/source/arranged/kept_parts.h"

namespace leat::worker {
namespace {

using testing::AllOf;
using testing::Gt;
using testing::Lt;
using testing::SizeIs;

const Digest kBase = HashOf("base");

std::vector<uint64_t> SamplesOf(uint64_t first) {
  return {first, first + 1, first + 2};
}

class ListingTrailTest : public ::testing::Test {
 protected:
  ListingTrail Begun(const Digest& base = kBase) {
    return {base, 150, &kept_, {.part_bytes = 1000, .clock = &clock_}};
  }
  // Walks samples 0, 3, 6 and so on, three at a time and a second each, and
  // returns which of them had to be read. Ends after `most` of these.
  std::vector<uint64_t> Walk(ListingTrail trail, uint64_t most = 150) {
    std::vector<uint64_t> read;
    for (uint64_t first = 0; first < 150 && read.size() < most; first += 3) {
      const auto taken = trail.Take(SamplesOf(first));
      EXPECT_TRUE(taken.ok()) << taken.status();
      if (*taken) {
        EXPECT_EQ(**taken, fmt::format("result {}", first));
      } else {
        read.push_back(first);
        trail.Add(SamplesOf(first), fmt::format("result {}", first));
      }
      clock_.Advance(std::chrono::seconds(1));
      EXPECT_TRUE(trail.Walked(3).ok());
    }
    return read;
  }

  FakeClock clock_;
  KeptParts kept_;
};

TEST_F(ListingTrailTest, ASecondListingGoesOnWhereTheFirstEnded) {
  EXPECT_THAT(Walk(Begun(), 40), SizeIs(40));
  EXPECT_EQ(kept_.progress.walked, 120u);
  EXPECT_EQ(kept_.progress.of, 150u);
  const std::vector<uint64_t> read = Walk(Begun());
  EXPECT_THAT(read, SizeIs(10));
  EXPECT_EQ(read[0], 120u);
  EXPECT_EQ(kept_.progress.walked, 150u);
  EXPECT_THAT(Walk(Begun()), SizeIs(0));
}

// A listing takes 24 hours, and has 40 bytes each second.
TEST_F(ListingTrailTest, ALongListingHasSomeHundredParts) {
  for (const size_t part_bytes : {size_t{1} << 20, size_t{1000}}) {
    kept_.parts.clear();
    ListingTrail trail(kBase, 0, &kept_,
                       {.part_bytes = part_bytes, .clock = &clock_});
    EXPECT_EQ(*trail.Take(SamplesOf(0)), std::nullopt);
    for (uint64_t i = 0; i < 24 * 3600; ++i) {
      trail.Add(SamplesOf(0), "");
      clock_.Advance(std::chrono::seconds(1));
      ASSERT_TRUE(trail.Walked(1).ok());
    }
    if (part_bytes > 1000)
      EXPECT_THAT(kept_.parts.size(), AllOf(Gt(200u), Lt(500u)));
    else  // a part has 25 results at most
      EXPECT_THAT(kept_.parts.size(), Gt(24 * 3600 / 30));
  }
}

TEST_F(ListingTrailTest, ResultsOfAnotherBaseOrOtherSamplesAreNotTaken) {
  Walk(Begun(), 40);
  EXPECT_EQ(*Begun(HashOf("other")).Take(SamplesOf(0)), std::nullopt);
  EXPECT_EQ(*Begun().Take(SamplesOf(1)), std::nullopt);
  EXPECT_NE(*Begun().Take(SamplesOf(0)), std::nullopt);
}

// The part that replaces the damaged one keeps what was taken of it.
TEST_F(ListingTrailTest, ADamagedPartIsReplaced) {
  Walk(Begun(), 40);
  kept_.parts[5] = "damaged";
  EXPECT_THAT(Walk(Begun()), SizeIs(50 - 5));
  EXPECT_THAT(Walk(Begun()), SizeIs(0));
}

TEST_F(ListingTrailTest, ARefusedResultIsReplacedWithAllBehindIt) {
  Walk(Begun(), 40);
  ListingTrail trail = Begun();
  EXPECT_NE(*trail.Take(SamplesOf(0)), std::nullopt);
  EXPECT_NE(*trail.Take(SamplesOf(3)), std::nullopt);
  EXPECT_EQ(trail.taken(), 6u);
  trail.Refuse();
  EXPECT_EQ(trail.taken(), 3u);
  trail.Add(SamplesOf(3), "better");
  EXPECT_EQ(*trail.Take(SamplesOf(6)), std::nullopt);
  clock_.Advance(std::chrono::seconds(1));
  ASSERT_TRUE(trail.Walked(6).ok());
  ListingTrail next = Begun();
  EXPECT_EQ(*next.Take(SamplesOf(0)), "result 0");
  EXPECT_EQ(*next.Take(SamplesOf(3)), "better");
  EXPECT_EQ(*next.Take(SamplesOf(6)), std::nullopt);
}

TEST_F(ListingTrailTest, AnErrorOfTheKeeperEndsTheListing) {
  kept_.status = Unavailable("away");
  ListingTrail trail = Begun();
  EXPECT_TRUE(trail.Walked(1).ok());
  clock_.Advance(std::chrono::seconds(1));
  EXPECT_TRUE(absl::IsUnavailable(trail.Walked(1)));
}

TEST_F(ListingTrailTest, WithoutAKeeperNothingIsKept) {
  ListingTrail trail(kBase, 3, nullptr);
  EXPECT_EQ(*trail.Take(SamplesOf(0)), std::nullopt);
  trail.Add(SamplesOf(0), "x");
  EXPECT_TRUE(trail.Walked(3).ok());
}

}  // namespace
}  // namespace leat::worker
