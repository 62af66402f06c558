// SPDX-License-Identifier: Apache-2.0
#include "worker/job/bad_samples.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat::worker {
namespace {

using ::testing::SizeIs;

TEST(BadSamples, AreBoundedAndNotLost) {
  BadSamples bad(2, 1);
  for (uint64_t i = 0; i < 10; ++i) bad.Add("a", i % 5, "file", "why");
  bad.Add("b", 1, "file", "why");
  EXPECT_EQ(bad.total(), 11u);
  BadSamples::Report report = bad.Take();
  ASSERT_THAT(report, SizeIs(1));
  EXPECT_THAT(report.at("a"), SizeIs(2));
  EXPECT_EQ(report.at("a").at(0).count, 2u);
  bad.Add("a", 0, "file", "why");
  bad.Return(report);
  EXPECT_EQ(bad.Take().at("a").at(0).count, 3u);
  EXPECT_TRUE(bad.Take().empty());
}

TEST(BadSamples, TextsAreUtf8AndShort) {
  BadSamples bad;
  const std::string cut = std::string(511, 'x') + "é is cut";
  bad.Add("a", 1, "caf\xe9.jpg", cut);
  const BadSamples::Entry entry = bad.Take().at("a").at(1);
  EXPECT_EQ(entry.record, "caf\\xe9.jpg");
  EXPECT_EQ(entry.reason, std::string(511, 'x') + "é");
  bad.Add("a", 1, std::string(1 << 20, 'x'), "why");
  EXPECT_EQ(bad.Take().at("a").at(1).record.size(), 1024u);
}

TEST(BadSamples, AreAllCountedOnceAndNoneIsLost) {
  BadSamples bad(2, 1, 5);
  const Digest plan = HashOf("plan"), other = HashOf("other");
  for (uint64_t i = 0; i < 9; ++i) bad.Count(plan, i % 3);
  bad.Count(other, 7);
  BadSamples::Counted first = bad.TakeCounted(2);
  const BadSamples::Counted rest = bad.TakeCounted(10);
  EXPECT_TRUE(bad.TakeCounted(10).empty());
  bad.ReturnCounted(first);
  bad.ReturnCounted(rest);
  const BadSamples::Counted all = bad.TakeCounted(10);
  EXPECT_THAT(all.at(plan), SizeIs(3));
  EXPECT_THAT(all.at(other), SizeIs(1));
  // Samples that are not taken are kept up to a bound.
  for (uint64_t i = 0; i < 100; ++i) bad.Count(plan, i);
  EXPECT_THAT(bad.TakeCounted(1000).at(plan), SizeIs(5));
}

}  // namespace
}  // namespace leat::worker
