// SPDX-License-Identifier: Apache-2.0
#include "client/coordinator/process_name.h"

#include <unistd.h>

#include "fmt/format.h"
#include "gtest/gtest.h"
#include "rpc/process/machine.h"

namespace leat::client {
namespace {

TEST(ProcessName, ContainersWithTheNameOfOneHostDiffer) {
  const std::string first = ProcessName("h", 1, "pid:[4026532201]", 0x5f);
  EXPECT_EQ(first, "h/1-0000005f");
  EXPECT_NE(first, ProcessName("h", 1, "pid:[4026532305]", 0x60));
}

TEST(ProcessName, OnTheHostItselfThePidIsEnough) {
  EXPECT_EQ(ProcessName("h", 12, "pid:[4026531836]", 0x5f), "h/12");
}

TEST(ProcessName, AnUnknownNamespaceIsTakenForAContainers) {
  EXPECT_EQ(ProcessName("h", 12, "", 0x5f), "h/12-0000005f");
}

TEST(ProcessName, OfThisProcessIsTheSameEachTime) {
  EXPECT_EQ(OwnProcessName(), OwnProcessName());
  EXPECT_TRUE(OwnProcessName().starts_with(
      fmt::format("{}/{}", rpc::HostName(), getpid())));
}

}  // namespace
}  // namespace leat::client
