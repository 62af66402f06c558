// SPDX-License-Identifier: Apache-2.0
#include "core/cluster/fault.h"

#include "core/status.h"
#include "gtest/gtest.h"

namespace leat {
namespace {

TEST(Fault, TravelsWithTheStatus) {
  const absl::Status plain = NotFound("a.jpg");
  EXPECT_EQ(FaultOf(plain), std::nullopt);
  for (const Fault fault :
       {Fault::kSample, Fault::kObject, Fault::kWorker, Fault::kTransient}) {
    const absl::Status status =
        Annotate(WithSample(WithFault(plain, fault), UINT64_MAX), "row 3");
    EXPECT_EQ(FaultOf(status), fault) << Name(fault);
    EXPECT_EQ(SampleOf(status), UINT64_MAX);
    EXPECT_EQ(Message(status), "row 3: a.jpg");
    EXPECT_TRUE(absl::IsNotFound(status));
  }
}

TEST(Fault, TheLastOneCountsAndADefaultChangesNothing) {
  const absl::Status worker =
      WithFault(WithFault(NotFound("a"), Fault::kObject), Fault::kWorker);
  EXPECT_EQ(FaultOf(worker), Fault::kWorker);
  EXPECT_EQ(FaultOf(WithDefaultFault(worker, Fault::kSample)), Fault::kWorker);
  EXPECT_EQ(FaultOf(WithDefaultFault(NotFound("a"), Fault::kSample)),
            Fault::kSample);
}

TEST(Fault, WhatWorksHasNoFault) {
  EXPECT_TRUE(WithFault(absl::OkStatus(), Fault::kWorker).ok());
  EXPECT_EQ(FaultOf(WithSample(absl::OkStatus(), 1)), std::nullopt);
}

}  // namespace
}  // namespace leat
