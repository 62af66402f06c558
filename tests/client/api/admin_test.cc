// SPDX-License-Identifier: Apache-2.0
#include "tests/client/engine/cluster_fixture.h"

namespace leat::client {
namespace {

using ::testing::HasSubstr;

TEST_F(ClusterTest, AdminSpeaksJsonAndErrors) {
  Start(1);
  const auto status = service_->admin().GetStatus();
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_THAT(*status, HasSubstr("\"sequence\":12345678901234"));
  EXPECT_THAT(*status, HasSubstr("\"log_level\":\"\""));
  EXPECT_TRUE(absl::IsNotFound(service_->admin().DeleteJob("x")));
}

TEST_F(ClusterTest, AListOfManyPagesIsOneAnswer) {
  Start(1);
  const auto workers = service_->admin().ListWorkers();
  ASSERT_TRUE(workers.ok()) << workers.status();
  for (const char* name : {"w0", "w1", "w2", "w3", "w4"})
    EXPECT_THAT(*workers, HasSubstr(name));
  EXPECT_THAT(*workers, testing::Not(HasSubstr("page")));
  EXPECT_TRUE(absl::IsInternal(service_->admin().ListJobs().status()))
      << "a page that repeats ends the list";
}

}  // namespace
}  // namespace leat::client
