// SPDX-License-Identifier: Apache-2.0
#include "client/fetch/job_tables.h"

#include <utility>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat::client {
namespace {

using ::testing::ElementsAre;

v1::Assignment Of(const std::string& dataset, uint64_t version,
                  std::vector<std::string> workers, const std::string& owners,
                  uint32_t per_shard) {
  v1::Assignment assignment;
  assignment.set_dataset_id(dataset);
  assignment.set_instance(1);
  assignment.set_version(version);
  for (const std::string& name : workers) {
    assignment.add_workers()->set_name(name);
    assignment.mutable_workers()->rbegin()->set_address(name + ":1");
  }
  for (const char owner : owners)
    assignment.mutable_owners()->append({static_cast<char>(owner - '0'), '\0'});
  assignment.set_owners_per_shard(per_shard);
  return assignment;
}

std::vector<std::string> OwnersOf(const AssignmentTable& table,
                                  uint32_t shard) {
  std::vector<std::string> names;
  for (const uint16_t owner : table.owners(shard))
    names.push_back(table.workers()[owner].name);
  return names;
}

// "web" has two shards, "books" three; both are served by other workers, and
// have other numbers of owners.
class JobTablesTest : public ::testing::Test {
 protected:
  const ShardTable web_ = *ShardTable::Uniform(20, 10);
  const ShardTable books_ = *ShardTable::Uniform(25, 10);
};

TEST_F(JobTablesTest, TheTablesOfAllDatasetsAreJoined) {
  JobTables tables({{"web", web_}, {"books", books_}});
  EXPECT_EQ(*tables.Offer(Of("books", 1, {"c", "a"}, "011001", 2)), nullptr)
      << "the other dataset has none yet";
  const auto joined = *tables.Offer(Of("web", 1, {"a", "b"}, "10", 1));
  ASSERT_NE(joined, nullptr);
  EXPECT_EQ(joined->workers().size(), 3u) << "each worker once";
  EXPECT_THAT(OwnersOf(*joined, 0), ElementsAre("b"));
  EXPECT_THAT(OwnersOf(*joined, 1), ElementsAre("a"));
  EXPECT_THAT(OwnersOf(*joined, 2), ElementsAre("c", "a"));
  EXPECT_THAT(OwnersOf(*joined, 3), ElementsAre("a", "c"));
  EXPECT_THAT(OwnersOf(*joined, 4), ElementsAre("c", "a"));
  const auto newer = *tables.Offer(Of("web", 2, {"c"}, "00", 1));
  ASSERT_NE(newer, nullptr);
  EXPECT_TRUE(newer->Replaces(joined.get()));
  EXPECT_FALSE(joined->Replaces(newer.get()));
  EXPECT_THAT(OwnersOf(*newer, 0), ElementsAre("c"));
  EXPECT_THAT(OwnersOf(*newer, 3), ElementsAre("a", "c"));
  EXPECT_EQ(*tables.Offer(Of("web", 1, {"a"}, "00", 1)), nullptr) << "older";
}

TEST_F(JobTablesTest, SourcesOfOneDatasetShareItsTable) {
  JobTables tables({{"web", web_}, {"books", books_}, {"web", web_}});
  ASSERT_EQ(*tables.Offer(Of("web", 1, {"a", "b"}, "01", 1)), nullptr);
  const auto joined = *tables.Offer(Of("books", 1, {"b"}, "000", 1));
  ASSERT_NE(joined, nullptr);
  EXPECT_THAT(OwnersOf(*joined, 1), ElementsAre("b"));
  EXPECT_THAT(OwnersOf(*joined, 5), ElementsAre("a"));
  EXPECT_THAT(OwnersOf(*joined, 6), ElementsAre("b"));
}

TEST_F(JobTablesTest, ATableOfAnotherDatasetOrSizeIsRefused) {
  JobTables tables({{"web", web_}});
  EXPECT_TRUE(absl::IsInvalidArgument(
      tables.Offer(Of("books", 1, {"a"}, "000", 1)).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      tables.Offer(Of("web", 1, {"a"}, "000", 1)).status()));
}

}  // namespace
}  // namespace leat::client
