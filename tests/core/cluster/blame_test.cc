// SPDX-License-Identifier: Apache-2.0
#include "core/cluster/blame.h"

#include "core/status.h"
#include "gtest/gtest.h"

namespace leat {
namespace {

TEST(Blame, TravelsWithTheStatus) {
  const absl::Status plain = NotFound("a.jpg");
  EXPECT_EQ(BlameOf(plain), std::nullopt);
  for (const Blame blame :
       {Blame::kSample, Blame::kObject, Blame::kWorker, Blame::kPassing}) {
    const absl::Status status =
        Annotate(WithSample(WithBlame(plain, blame), UINT64_MAX), "row 3");
    EXPECT_EQ(BlameOf(status), blame) << Name(blame);
    EXPECT_EQ(SampleOf(status), UINT64_MAX);
    EXPECT_EQ(Message(status), "row 3: a.jpg");
    EXPECT_TRUE(absl::IsNotFound(status));
  }
}

TEST(Blame, TheLastOneCountsAndADefaultChangesNothing) {
  const absl::Status worker =
      WithBlame(WithBlame(NotFound("a"), Blame::kObject), Blame::kWorker);
  EXPECT_EQ(BlameOf(worker), Blame::kWorker);
  EXPECT_EQ(BlameOf(WithDefaultBlame(worker, Blame::kSample)), Blame::kWorker);
  EXPECT_EQ(BlameOf(WithDefaultBlame(NotFound("a"), Blame::kSample)),
            Blame::kSample);
}

TEST(Blame, NobodyIsToBlameForWhatWorks) {
  EXPECT_TRUE(WithBlame(absl::OkStatus(), Blame::kWorker).ok());
  EXPECT_EQ(BlameOf(WithSample(absl::OkStatus(), 1)), std::nullopt);
}

}  // namespace
}  // namespace leat
