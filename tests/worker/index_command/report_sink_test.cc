// SPDX-License-Identifier: Apache-2.0
#include "worker/index_command/report_sink.h"

#include <string>
#include <vector>

#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat::worker {
namespace {

using ::testing::ElementsAre;

TEST(ReportSink, KeepsBlocksThatAreSpreadEvenly) {
  ReportProgress progress;
  std::vector<std::string> used;
  ReportSink sink(100, &progress,
                  [&](std::string_view head, std::string_view block) {
                    EXPECT_EQ(head, "head");
                    used.emplace_back(block);
                    return absl::OkStatus();
                  });
  ASSERT_TRUE(sink.Add("head", 0).ok());
  for (int i = 0; i < 20; ++i)
    ASSERT_TRUE(sink.Add(std::to_string(i), 10).ok());
  EXPECT_EQ(used.size(), 20u);
  std::vector<uint64_t> numbers, firsts;
  for (const ReportSink::Block& block : sink.kept()) {
    numbers.push_back(block.number);
    firsts.push_back(block.first);
  }
  EXPECT_THAT(numbers, ElementsAre(0, 4, 8, 12, 16));
  EXPECT_THAT(firsts, ElementsAre(0, 40, 80, 120, 160));
  EXPECT_EQ(sink.blocks(), 21u);
  EXPECT_EQ(progress.index_records, 200u);
}

TEST(ReportSink, AnErrorEndsTheListing) {
  ReportProgress progress;
  ReportSink sink(4, &progress, [](std::string_view, std::string_view) {
    return DataLoss("torn");
  });
  EXPECT_EQ(sink.Add("a", 1).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(sink.Add("abcd", 0).code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace leat::worker
