// SPDX-License-Identifier: Apache-2.0
//
// Jobs in stream mode, which have one epoch.
#include <string>

#include "client/batch/position.h"
#include "tests/client/engine/cluster_fixture.h"

namespace leat::client {
namespace {

using ::testing::HasSubstr;

TEST_F(ClusterTest, WorkersAreToldWhereAnIteratorEnds) {
  Start(1);
  Open({.epoch = 3, .step = 61, .epochs = 2, .rows = {0, 5}});
  ExpectNext(3, 61);
  EXPECT_EQ(workers_[0]->opened().end_epoch(), 5u);
  EXPECT_EQ(workers_[0]->opened().rows(), 2u);
  Open({.epochs = 0});
  ExpectNext(0, 0);
  EXPECT_EQ(workers_[0]->opened().end_epoch(), 0u) << "without end";
}

TEST_F(ClusterTest, AStreamIsOpenedInItsOneEpoch) {
  Start(1, {.last_batch = LastBatch::kStream});
  const std::string position =
      EncodePosition("train", PositionHash(info_, 0), {3, 5});
  for (const absl::Status& status :
       {job_->Open({.epoch = 3, .step = 5}).status(),
        job_->Open({.position = position}).status(),
        job_->StepOf(position).status(), job_->Samples(3, 5).status(),
        job_->Explain(3, 5, {}, false, kLong).status()}) {
    EXPECT_TRUE(absl::IsInvalidArgument(status));
    EXPECT_THAT(Message(status),
                HasSubstr("job \"train\": epoch 3: a stream (last_batch"
                          " \"stream\") has one epoch"));
  }
  Open({.step = 5});
  ExpectNext(0, 5);
}

}  // namespace
}  // namespace leat::client
