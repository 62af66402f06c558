// SPDX-License-Identifier: Apache-2.0
#include "client/cli/previews/origins.h"

#include "gtest/gtest.h"

namespace leat::cli {
namespace {

TEST(Origins, SamplesOfAMixtureAreNumberedOneDatasetAfterTheOther) {
  const Json job = Json::parse(R"({
    "spec": {"sources": [{"name": "web"}, {"name": "books"}]},
    "datasets": [
      {"shards": {"num_samples": "3"}, "classes": ["a"]},
      {"shards": {"num_samples": "2"}, "classes": ["b", "c"]}]})");
  const Origins origins(job);
  EXPECT_EQ(origins.Of(2).source, "web");
  EXPECT_EQ(origins.Of(3).source, "books");
  EXPECT_EQ(origins.Of(4).classes.size(), 2u);
  EXPECT_EQ(origins.Of(5).source, "") << "no such sample";
  EXPECT_EQ(DatasetsText(job), "2 datasets");
}

TEST(Origins, AnotherJobHasOneDataset) {
  const Json job =
      Json::parse(R"({"dataset": {"name": "photos", "classes": ["a"]}})");
  EXPECT_EQ(Origins(job).Of(9).source, "");
  EXPECT_EQ(DatasetsText(job), "dataset photos");
}

}  // namespace
}  // namespace leat::cli
