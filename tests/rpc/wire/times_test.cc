// SPDX-License-Identifier: Apache-2.0
#include "rpc/wire/times.h"

#include <limits>

#include "gtest/gtest.h"

namespace leat::rpc {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;

TEST(Durations, ComeBackAsTheyWere) {
  for (const Duration each : {Duration(0), Duration(1), Duration(-1),
                              Duration(seconds(3)) + nanoseconds(5),
                              Duration(seconds(-3)) - nanoseconds(5)})
    EXPECT_EQ(FromProto(ToProto(each)), each);
  EXPECT_EQ(ToProto(seconds(-3) - nanoseconds(5)).nanos(), -5);
}

TEST(Durations, OfTheWireAreClamped) {
  google::protobuf::Duration proto;
  proto.set_seconds(std::numeric_limits<int64_t>::max());
  proto.set_nanos(std::numeric_limits<int32_t>::max());
  EXPECT_GT(FromProto(proto), std::chrono::hours(24 * 365 * 260));
  proto.set_seconds(std::numeric_limits<int64_t>::min());
  proto.set_nanos(std::numeric_limits<int32_t>::min());
  EXPECT_LT(FromProto(proto), -std::chrono::hours(24 * 365 * 260));
}

TEST(Times, ComeBackAsTheyWere) {
  for (const WallTime each :
       {WallTime(), WallTime(seconds(1'700'000'000) + nanoseconds(7))})
    EXPECT_EQ(FromProto(ToProto(each)), each);
  // Nanoseconds count forward, also before 1970.
  const auto before = ToProto(WallTime(nanoseconds(-1)));
  EXPECT_EQ(before.seconds(), -1);
  EXPECT_EQ(before.nanos(), 999'999'999);
}

TEST(Times, OfTheWireAreFrom1970To2200) {
  google::protobuf::Timestamp proto;
  proto.set_seconds(-5);
  EXPECT_EQ(FromProto(proto), WallTime());
  proto.set_seconds(std::numeric_limits<int64_t>::max());
  EXPECT_EQ(FromProto(proto), WallTime(seconds(7'258'118'400)));
}

}  // namespace
}  // namespace leat::rpc
