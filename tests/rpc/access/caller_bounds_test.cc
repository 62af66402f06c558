// SPDX-License-Identifier: Apache-2.0
#include "rpc/access/caller_bounds.h"

#include <memory>
#include <vector>

#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat::rpc {
namespace {

using ::testing::HasSubstr;

constexpr std::array<RoleBounds, kRoles.size()> kSmall = {
    RoleBounds{2, 4, 3}, RoleBounds{10, 20, 100}, RoleBounds{1, 1, 1},
    RoleBounds{}};

// Returns how many calls are admitted before one is rejected.
int CallsOf(CallerBounds* bounds, Role role, const char* identity,
            const char* address) {
  for (int calls = 0; calls < 1000; ++calls)
    if (!bounds->Call(role, identity, address).ok()) return calls;
  return 1000;
}

TEST(CallerBounds, ACallerHasABurstAndThenARate) {
  FakeClock clock;
  CallerBounds bounds(&clock, kSmall);
  EXPECT_EQ(CallsOf(&bounds, Role::kViewer, "viewer/wall", "10.0.0.1"), 4);
  clock.Advance(std::chrono::milliseconds(1500));
  EXPECT_EQ(CallsOf(&bounds, Role::kViewer, "viewer/wall", "10.0.0.1"), 3);
  clock.Advance(std::chrono::hours(1));
  EXPECT_EQ(CallsOf(&bounds, Role::kViewer, "viewer/wall", "10.0.0.1"), 4);
  const absl::Status status =
      bounds.Call(Role::kViewer, "viewer/wall", "10.0.0.1");
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  for (const char* part : {"viewer/wall", "10.0.0.1", "2 times a second"})
    EXPECT_THAT(std::string(Message(status)), HasSubstr(part));
}

TEST(CallerBounds, OthersHaveTheirOwnAndAnOperatorHasNone) {
  FakeClock clock;
  CallerBounds bounds(&clock, kSmall);
  EXPECT_EQ(CallsOf(&bounds, Role::kViewer, "viewer/wall", "10.0.0.1"), 4);
  EXPECT_EQ(CallsOf(&bounds, Role::kViewer, "viewer/wall", "10.0.0.2"), 4);
  EXPECT_EQ(CallsOf(&bounds, Role::kViewer, "viewer/desk", "10.0.0.1"), 4);
  EXPECT_EQ(CallsOf(&bounds, Role::kTrainer, "trainer/t", "10.0.0.1"), 20);
  EXPECT_EQ(CallsOf(&bounds, Role::kOperator, "own", "10.0.0.1"), 1000);
  for (int i = 0; i < 1000; ++i)
    ASSERT_TRUE(
        bounds.Open(Role::kOperator, "own", "", [] { return false; }).ok());
}

TEST(CallerBounds, StreamsThatHaveEndedMakeRoom) {
  FakeClock clock;
  CallerBounds bounds(&clock, kSmall);
  std::vector<std::shared_ptr<int>> streams;
  const auto open = [&] {
    streams.push_back(std::make_shared<int>());
    return bounds.Open(
        Role::kViewer, "viewer/wall", "10.0.0.1",
        [weak = std::weak_ptr<int>(streams.back())] { return weak.expired(); });
  };
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(open().ok());
  const absl::Status status = open();
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_THAT(std::string(Message(status)), HasSubstr("3 streams open"));
  streams.erase(streams.begin());
  EXPECT_TRUE(open().ok());
  EXPECT_FALSE(open().ok());
}

TEST(CallerBounds, WhatIsRememberedOfCallersIsBounded) {
  FakeClock clock;
  CallerBounds bounds(&clock, kSmall);
  const auto host = [](size_t i) { return fmt::format("10.0.{}.{}", i, i); };
  for (size_t i = 0; i < 2 * CallerBounds::kMaxCallers; ++i)
    (void)bounds.Call(Role::kViewer, "viewer/wall", host(i));
  EXPECT_EQ(bounds.callers(), CallerBounds::kMaxCallers + 1);
  // Callers that are tracked separately are unaffected by those that are not.
  EXPECT_TRUE(bounds.Call(Role::kViewer, "viewer/wall", host(0)).ok());
  EXPECT_FALSE(bounds.Call(Role::kViewer, "viewer/new", "x").ok());
  clock.Advance(std::chrono::minutes(2));
  EXPECT_TRUE(bounds.Call(Role::kViewer, "viewer/new", "x").ok());
  EXPECT_EQ(bounds.callers(), 1u);
}

TEST(CallerBounds, AHostIsAnAddressWithoutItsPort) {
  EXPECT_EQ(HostOf("ipv4:10.0.0.7:1234"), "10.0.0.7");
  EXPECT_EQ(HostOf("ipv6:[::1]:1234"), "[::1]");
  EXPECT_EQ(HostOf("ipv6:%5B::1%5D:1234"), "%5B::1%5D");
  EXPECT_EQ(HostOf("unix:/run/leat.sock"), "unix:/run/leat.sock");
  EXPECT_EQ(HostOf(""), "");
}

}  // namespace
}  // namespace leat::rpc
