// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "absl/time/time.h"
#include "client/cli/views/describe.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli/fake.h"

namespace leat::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Returns the text of a fact; empty: there is none.
std::string FactOf(const Json& worker, const std::string& title) {
  const View view = DescribeWorker(worker, absl::UnixEpoch());
  for (const auto& [name, cell] : view.sections[0].facts)
    if (name == title) return cell.text;
  return "";
}

TEST(DescribeWorker, ShowsItsAbilitiesAndWhyItLacksOne) {
  Json worker = Json::parse(R"({"name": "w", "abilities": ["a", "own:blur"],
    "lacked": [{"name": "parquet", "why": "there is no libarrow.so"}]})");
  EXPECT_EQ(FactOf(worker, "Abilities"), "a, own:blur");
  EXPECT_EQ(FactOf(worker, "Lacks"),
            "parquet: there is no libarrow.so; it owns no shards of jobs that "
            "need it");
  worker.erase("abilities");
  worker.erase("lacked");
  EXPECT_EQ(FactOf(worker, "Abilities"), "-");
  EXPECT_EQ(FactOf(worker, "Lacks"), "");
}

TEST(DescribeWorker, NamesTheCallsToStorageThatItRepeats) {
  Shell shell;
  ASSERT_EQ(shell.Run({"describe", "worker", "node1"}), 0);
  EXPECT_THAT(shell.out, Not(HasSubstr("Waits for")));
  std::string& workers = shell.service.answers["workers"];
  workers.insert(workers.find(R"("storage_hedges_total": "3")"),
                 R"("storage_waits": ["s3://b: no answer"], )");
  ASSERT_EQ(shell.Run({"describe", "worker", "node1"}), 0);
  EXPECT_THAT(shell.out, HasSubstr("Waits for   s3://b: no answer\n"));
}

}  // namespace
}  // namespace leat::cli
