// SPDX-License-Identifier: Apache-2.0
#include "client/cli/views/describe.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/cli/views/listing.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat::cli {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;
using ::testing::StartsWith;

std::vector<std::string> TitlesOf(const Table& table) {
  std::vector<std::string> titles;
  for (const Column& column : table.columns) titles.push_back(column.title);
  return titles;
}

Json Job(const char* sources) {
  Json job = Json::parse(R"({"job": {"spec": {"name": "j", "batch": 64}},
    "bad_samples_total": "2", "bad_samples": [{"sample": "7", "count": "2",
      "record": "/books/7.jpg", "reason": "no JPEG", "source": "books"}]})");
  job["job"]["spec"]["sources"] = Json::parse(sources);
  return job;
}

Table BadSamplesOf(const Json& job) {
  const View view =
      DescribeJob(job, Json::array(), Json::array(), absl::UnixEpoch());
  return view.sections.back().table;
}

TEST(DescribeJob, BadSamplesOfAMixtureHaveTheirSource) {
  const Table table =
      BadSamplesOf(Job(R"([{"name": "web"}, {"name": "books"}])"));
  EXPECT_THAT(TitlesOf(table),
              ElementsAre("SOURCE", "SAMPLE", "TIMES", "RECORD", "REASON"));
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_EQ(table.rows[0][0].text, "books");
  EXPECT_EQ(table.rows[0][1].text, "7");
  EXPECT_THAT(TitlesOf(BadSamplesOf(Job("[]"))), Not(Contains("SOURCE")));
}

TEST(DescribeDataset, ItsReadersListsAreCutAndItsListingsProgressIsShown) {
  Json dataset;
  dataset["dataset"]["reader"] =
      fmt::format("readers.files labels=ints[{}]",
                  fmt::join(std::vector<int>(5000, 7), ","));
  dataset["walked"] = "7";
  dataset["files"] = "120000";
  std::map<std::string, std::string> found;
  const View view = DescribeDataset(dataset, absl::UnixEpoch());
  for (const auto& [title, cell] : view.sections[0].facts)
    found[title] = cell.text;
  EXPECT_THAT(found["Reader"],
              StartsWith("readers.files labels=ints[7,7,7, and 4997 more"));
  EXPECT_EQ(view.data, dataset) << "-o json shows it whole";
  EXPECT_EQ(found["Progress"], "120000 files and 7 samples so far");
}

TEST(DescribeJob, ALongListOfItsPipelineIsCut) {
  Json graph = Json::parse(R"({"nodes": [{"op": "readers.files", "args":
    {"labels": {"ints_value": {"values": []}}}}]})");
  for (int i = 0; i < 100; ++i)
    graph["nodes"][0]["args"]["labels"]["ints_value"]["values"].push_back(i);
  EXPECT_THAT(PipelineListing(graph),
              ElementsAre(StartsWith(
                  "%0 = readers.files(labels=[0, 1, 2, and 97 more (digest ")));
}

TEST(JobsTable, NamesTheSourcesOfAMixture) {
  Json jobs =
      Json::array({Job(R"([{"name": "web"}, {"name": "books"}])"), Job("[]")});
  const Table table = JobsTable(jobs, absl::UnixEpoch());
  const std::vector<std::string> titles = TitlesOf(table);
  const auto at = std::ranges::find(titles, "SOURCES") - titles.begin();
  ASSERT_LT(at, std::ssize(titles));
  EXPECT_TRUE(table.columns[static_cast<size_t>(at)].wide_only);
  EXPECT_EQ(table.rows[0].size(), titles.size());
  EXPECT_EQ(table.rows[0][static_cast<size_t>(at)].text, "web, books");
  EXPECT_EQ(table.rows[1][static_cast<size_t>(at)].text, "-");
}

}  // namespace
}  // namespace leat::cli
