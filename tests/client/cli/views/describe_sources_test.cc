// SPDX-License-Identifier: Apache-2.0
#include "client/cli/views/describe_sources.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

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
  const Section section = SourcesOf(Mixture(), Json::array());
  EXPECT_EQ(section.title, "Sources (2), at step 20 of 16 rows");
  ASSERT_EQ(section.table.rows.size(), 2u);
  EXPECT_THAT(TextsOf(section.table.rows[0]),
              ElementsAre("a", "photos", "100", "50.0", "224", "2 (24.0 %)"));
  EXPECT_THAT(TextsOf(section.table.rows[1]),
              ElementsAre("b", "drawings", "40", "50.0", "96", "2 (40.0 %)"));
}

// Returns the line about the bound, for a batch of 200 rows and consumers with
// these runs of rows: first and how many.
std::string Bound(const std::vector<std::pair<int, int>>& runs) {
  Json job = Mixture();
  job["job"]["spec"]["batch"] = 200;
  Json consumers = Json::array();
  for (const auto& [first, rows] : runs)
    consumers.push_back(
        {{"stats", {{"first_row", first}, {"rows_per_step", rows}}}});
  const Section section = SourcesOf(job, consumers);
  EXPECT_EQ(section.lines.size(), 1u);
  return section.lines[0].text;
}

TEST(SourcesOf, SaysTheBoundThatHoldsForTheJobsConsumers) {
  EXPECT_THAT(Bound({}), HasSubstr("whole runs of 64."));
  EXPECT_THAT(Bound({{0, 200}}),
              HasSubstr("in the rows of its 1 consumer, a source has its share "
                        "within 4 rows."));
  // The last run of the batch has 8 rows.
  EXPECT_THAT(Bound({{0, 64}, {64, 136}}), HasSubstr("of its 2 consumers, a"));
  EXPECT_THAT(Bound({{0, 64}, {64, 70}, {134, 66}}),
              HasSubstr("of 1 of its 3 consumers; the others have parts of "
                        "runs of 64 rows, and add these parts, at most 58 "
                        "rows."));
  // It lies within one run.
  EXPECT_THAT(Bound({{70, 20}}), HasSubstr("of 0 of its 1 consumer; the others "
                                           "have parts of runs of 64 rows, and "
                                           "add these parts, at most 20 rows"));
  // Rows that are no run, and those of an older library, are not known.
  EXPECT_EQ(Bound({{0, 0}}), Bound({}));
}

TEST(SourceNames, AreTheFirstFewAndHowManyMore) {
  Json spec = Json::parse(R"({"sources": [{"name": "a"}, {"name": "b"}]})");
  EXPECT_EQ(SourceNames(spec), "a, b");
  for (const char* name : {"c", "d", "e", "f"})
    spec["sources"].push_back({{"name", name}});
  EXPECT_EQ(SourceNames(spec), "a, b, c, d and 2 more");
  EXPECT_EQ(SourceNames(Json::object()), "-");
}

TEST(SourcesOf, AJobOfOnePipelineHasNone) {
  EXPECT_TRUE(SourcesOf(Json::parse(R"({"job": {"spec": {}}})"), Json::array())
                  .title.empty());
}

TEST(SourcesOf, WhatItCannotReadIsLeftOut) {
  Json job = Mixture();
  job["job"]["spec"]["shares"][0]["weights"] = {-1, 2};
  EXPECT_TRUE(SourcesOf(job, Json::array()).title.empty());
  job = Mixture();
  job["job"].erase("datasets");
  EXPECT_EQ(SourcesOf(job, Json::array()).table.rows.size(), 2u);
}

}  // namespace
}  // namespace leat::cli
