// SPDX-License-Identifier: Apache-2.0
#include "client/cli/views/describe_groups.h"

#include "client/cli/base/fields.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Json Pets() {
  return Json::parse(R"({
    "epoch": "1", "step": "2", "steps_per_epoch": "3",
    "job": {
      "spec": {"batch": 10, "selection": {"balanced": true}},
      "dataset": {"name": "pets", "shards": {"num_samples": "36"},
                  "groups": [{"name": "cat", "samples": "30"},
                             {"name": "none"},
                             {"name": "dog", "samples": "6"}]}}
  })");
}

std::vector<std::string> RowOf(const Section& section, size_t row) {
  std::vector<std::string> texts;
  for (const Cell& cell : section.table.rows[row]) texts.push_back(cell.text);
  return texts;
}

TEST(GroupsOf, ShowsSharesAndPassesOfClasses) {
  const std::vector<Section> sections = GroupsOf(Pets());
  ASSERT_THAT(sections, SizeIs(1));
  EXPECT_EQ(sections[0].title, "Classes (3), after 50 rows");
  ASSERT_THAT(sections[0].table.rows, SizeIs(3));
  EXPECT_THAT(RowOf(sections[0], 0),
              ElementsAre("cat", "30", "50.0", "25", "0 (83.3 %)"));
  EXPECT_THAT(RowOf(sections[0], 1), ElementsAre("none", "0", "0.0", "0", "-"));
  EXPECT_THAT(RowOf(sections[0], 2),
              ElementsAre("dog", "6", "50.0", "25", "4 (16.7 %)"));
}

TEST(GroupsOf, ShowsAMembersClasses) {
  Json job = Pets();
  Json& spec = job["job"]["spec"];
  spec["sources"] = {
      {{"name", "a"}},
      {{"name", "b"},
       {"selection",
        {{"shares",
          {{{"name", "dog"}, {"share", 3}}, {{"name", "*"}, {"share", 1}}}}}}}};
  spec["shares"] = {{{"weights", {4, 1}}}};
  job["job"]["datasets"] = {job["job"]["dataset"], job["job"]["dataset"]};
  const std::vector<Section> sections = GroupsOf(job);
  ASSERT_THAT(sections, SizeIs(1));
  EXPECT_EQ(sections[0].title, "Classes of b (3), after 10 rows");
  EXPECT_EQ(RowOf(sections[0], 2)[2], "75.0");
}

TEST(GroupsOf, ShowsWeightsOfSamples) {
  Json job = Pets();
  job["job"]["spec"]["selection"] = {{"weights", {{"uri", "/w.npy"}}}};
  job["job"]["dataset"]["groups"] = {
      {{"name", "0.5"}, {"samples", "30"}, {"weight", "512"}},
      {{"name", "2.5"}, {"samples", "6"}, {"weight", "2560"}}};
  const std::vector<Section> sections = GroupsOf(job);
  ASSERT_THAT(sections, SizeIs(1));
  EXPECT_EQ(sections[0].title, "Weights of samples (2), after 50 rows");
  EXPECT_EQ(sections[0].table.columns[0].title, "WEIGHT");
  EXPECT_THAT(RowOf(sections[0], 1),
              ElementsAre("2.5", "6", "50.0", "25", "4 (16.7 %)"));
}

TEST(GroupsOf, AJobWithoutSharesOfClassesHasNone) {
  Json job = Pets();
  job["job"]["spec"].erase("selection");
  EXPECT_THAT(GroupsOf(job), IsEmpty());
}

TEST(GroupsOf, WhatItCannotReadIsLeftOut) {
  Json job = Pets();
  job["job"]["dataset"].erase("groups");
  EXPECT_THAT(GroupsOf(job), IsEmpty());
  job = Pets();
  job["job"]["spec"]["selection"] = {{"shares", {{{"name", "cow"}}}}};
  EXPECT_THAT(GroupsOf(job), IsEmpty());
}

}  // namespace
}  // namespace leat::cli
