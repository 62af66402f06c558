// SPDX-License-Identifier: Apache-2.0
#include "client/cli/views/describe_sources.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat::cli {
namespace {

using ::testing::ElementsAre;

Json Mixture() {
  return Json::parse(R"({
    "epoch": "0", "step": "20", "steps_per_epoch": "1099511627776",
    "job": {
      "spec": {"batch": 16, "sources": [{"name": "a"}, {"name": "b"}],
               "shares": [{"weights": [7, 3]},
                          {"from_step": "20", "weights": [1, 1]}]},
      "datasets": [{"name": "photos", "shards": {"num_samples": "100"}},
                   {"name": "drawings", "shards": {"num_samples": "40"}}]}
  })");
}

std::vector<std::string> TextsOf(const std::vector<Cell>& row) {
  std::vector<std::string> texts;
  for (const Cell& cell : row) texts.push_back(cell.text);
  return texts;
}

TEST(SourcesOf, ShowsSharesAndPassesAtTheJobsStep) {
  const Section section = SourcesOf(Mixture());
  EXPECT_EQ(section.title, "Sources (2), at step 20 of 16 rows");
  ASSERT_EQ(section.table.rows.size(), 2u);
  EXPECT_THAT(TextsOf(section.table.rows[0]),
              ElementsAre("a", "photos", "100", "50.0", "224", "2 (24.0 %)"));
  EXPECT_THAT(TextsOf(section.table.rows[1]),
              ElementsAre("b", "drawings", "40", "50.0", "96", "2 (40.0 %)"));
}

TEST(SourcesOf, AJobOfOnePipelineHasNone) {
  EXPECT_TRUE(SourcesOf(Json::parse(R"({"job": {"spec": {}}})")).title.empty());
}

TEST(SourcesOf, WhatItCannotReadIsLeftOut) {
  Json job = Mixture();
  job["job"]["spec"]["shares"][0]["weights"] = {-1, 2};
  EXPECT_TRUE(SourcesOf(job).title.empty());
  job = Mixture();
  job["job"].erase("datasets");
  EXPECT_EQ(SourcesOf(job).table.rows.size(), 2u);
}

}  // namespace
}  // namespace leat::cli
