// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "tests/client/engine/cluster_fixture.h"

namespace leat::client {
namespace {

using ::testing::HasSubstr;

TEST_F(ClusterTest, WrongOptionsAreRefused) {
  Start(1);
  EXPECT_TRUE(absl::IsInvalidArgument(job_->Open({.window = 0}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(job_->Open({.window = 65}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      job_->Open({.row_timeout = absl::ZeroDuration()}).status()));
}

TEST_F(ClusterTest, EpochsBeyondTheLastNumberAreRefused) {
  Start(1);
  const absl::Status status =
      job_->Open({.epoch = 2, .epochs = ~uint64_t{0} - 1}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("from epoch 2 on"));
  EXPECT_TRUE(absl::IsInvalidArgument(job_->StepOf("x").status()));
}

TEST_F(ClusterTest, SampleIsABatchOfOneRow) {
  Start(2);
  for (const uint64_t index : {0ull, 17ull, 999ull}) {
    const auto batch = job_->Sample(index, kLong);
    ASSERT_TRUE(batch.ok()) << batch.status();
    ExpectHolds(*batch, {index});
  }
  EXPECT_TRUE(absl::IsOutOfRange(job_->Sample(1000, kLong).status()));
  workers_[0]->Kill();
  workers_[1]->Kill();
  EXPECT_FALSE(job_->Sample(1, absl::Milliseconds(50)).ok());
}

TEST_F(ClusterTest, SchemaAndJsonDescribeTheJob) {
  Start(1);
  const auto schema = job_->row_schema();
  ASSERT_EQ(schema.size(), 2u);
  EXPECT_EQ(schema[0].name, "image");
  EXPECT_EQ(schema[0].shape.size(), 3u);
  EXPECT_EQ(schema[0].bytes, 90u);
  EXPECT_THAT(job_->ToJson(), HasSubstr("\"num_samples\":1000"));
  EXPECT_THAT(job_->ToJson(), HasSubstr("\"name\":\"train\""));
}

}  // namespace
}  // namespace leat::client
