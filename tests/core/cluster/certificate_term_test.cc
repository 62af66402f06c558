// SPDX-License-Identifier: Apache-2.0
#include "core/cluster/certificate_term.h"

#include <utility>

#include "gtest/gtest.h"

namespace leat {
namespace {

using std::chrono::hours;
using std::chrono::minutes;

constexpr WallTime kBegin{hours(24 * 20'000)};

// The rest of a certificate of that term when its end is a warning, and an
// error.
std::pair<Duration, Duration> LeftOf(Duration term) {
  const CertificateTerm of = {.end = kBegin + term, .begin = kBegin};
  return {of.end - of.warn_at(), of.end - of.error_at()};
}

using Left = std::pair<Duration, Duration>;

TEST(CertificateTerm, IsSpokenOfByTheShareOfItThatIsLeft) {
  EXPECT_EQ(LeftOf(hours(1)), Left(minutes(15), minutes(5)));
  EXPECT_EQ(LeftOf(hours(24)), Left(hours(6), hours(2)));
  EXPECT_EQ(LeftOf(hours(24 * 80)), Left(hours(24 * 20), hours(160)));
}

TEST(CertificateTerm, IsNotSpokenOfForMonths) {
  EXPECT_EQ(LeftOf(hours(24 * 120)), Left(hours(24 * 30), hours(24 * 7)));
  EXPECT_EQ(LeftOf(hours(24 * 3650)), Left(hours(24 * 30), hours(24 * 7)));
}

TEST(CertificateTerm, ThatIsNotKnownIsALongOne) {
  const Left days = {kMostWarning, kMostError};
  const CertificateTerm unknown = {.end = kBegin};
  EXPECT_EQ(
      Left(unknown.end - unknown.warn_at(), unknown.end - unknown.error_at()),
      days);
  EXPECT_EQ(LeftOf(hours(0)), days);
  EXPECT_EQ(LeftOf(hours(-1)), days);
  // The ends of what a message can say.
  const CertificateTerm widest = {
      .end = WallTime(std::chrono::seconds(7'258'118'400)),
      .begin = WallTime()};
  EXPECT_EQ(widest.end - widest.warn_at(), kMostWarning);
  EXPECT_LT(CertificateTerm{.end = WallTime()}.warn_at(), WallTime());
}

}  // namespace
}  // namespace leat
