// SPDX-License-Identifier: Apache-2.0
#include "tests/client/engine/cluster_fixture.h"

namespace leat::client {
namespace {

using ::testing::HasSubstr;

TEST_F(ClusterTest, AdminSpeaksJsonAndErrors) {
  Start(1);
  const auto status = service_->admin().Get("status");
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_THAT(*status, HasSubstr("\"sequence\":12345678901234"));
  EXPECT_THAT(*status, HasSubstr("\"log_level\":\"\""));
  EXPECT_TRUE(absl::IsNotFound(service_->admin().Do("delete-job", "x")));
}

TEST_F(ClusterTest, AListOfManyPagesIsOneAnswer) {
  Start(1);
  const auto workers = service_->admin().Get("workers");
  ASSERT_TRUE(workers.ok()) << workers.status();
  for (const char* name : {"w0", "w1", "w2", "w3", "w4"})
    EXPECT_THAT(*workers, HasSubstr(name));
  EXPECT_THAT(*workers, testing::Not(HasSubstr("page")));
  EXPECT_TRUE(absl::IsInternal(service_->admin().Get("jobs").status()))
      << "a page that repeats ends the list";
}

TEST_F(ClusterTest, WordsThatAdminDoesNotKnowAreNamed) {
  Start(1);
  absl::Status status = service_->admin().Get("tapes").status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("\"tapes\": want status, workers"));
  status = service_->admin().Get("shards").status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("the name of a dataset"));
  status = service_->admin().Do("stop", "w0");
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("\"stop\": want delete-job"));
}

}  // namespace
}  // namespace leat::client
