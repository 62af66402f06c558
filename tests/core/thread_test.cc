// SPDX-License-Identifier: Apache-2.0
#include "core/thread.h"

#include <pthread.h>

#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat {
namespace {

using testing::HasSubstr;

TEST(Thread, RunsUnderItsName) {
  std::thread thread;
  char name[16] = {};
  const absl::Status status = StartThread(
      "read-and-more-than-fits",
      [&] { pthread_getname_np(pthread_self(), name, sizeof name); }, &thread);
  ASSERT_TRUE(status.ok()) << status;
  thread.join();
  EXPECT_STREQ(name, "read-and-more-t");
}

// A stack larger than any address space.
TEST(Thread, ItsLackIsAnError) {
  pthread_attr_t before, huge;
  ASSERT_EQ(pthread_getattr_default_np(&before), 0);
  ASSERT_EQ(pthread_attr_init(&huge), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&huge, size_t{1} << 62), 0);
  ASSERT_EQ(pthread_setattr_default_np(&huge), 0);
  std::thread thread;
  bool ran = false;
  const absl::Status status = StartThread(
      "read-7", [&] { ran = true; }, &thread);
  ASSERT_EQ(pthread_setattr_default_np(&before), 0);
  pthread_attr_destroy(&before);
  pthread_attr_destroy(&huge);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(Message(status)), HasSubstr("read-7"));
  EXPECT_FALSE(thread.joinable());
  EXPECT_FALSE(ran);
}

}  // namespace
}  // namespace leat
