// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tests/client/engine/cluster_fixture.h"

namespace leat::client {
namespace {

TEST_F(ClusterTest, HostsTakeTheirRowsInTheirOrder) {
  Start(2);
  Open({.rows = {15, 0, 7, 8}});
  for (uint64_t step = 0; step < 62; ++step) ExpectNext(0, step);
  ExpectEnd();
  EXPECT_TRUE(absl::IsNotFound(job_->Open({.rows = {16}}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(job_->Open({.rows = {1, 1}}).status()));
}

TEST_F(ClusterTest, LastPartialBatchHasFewerRowsAlsoNone) {
  Start(1, {.samples = 37, .last_batch = LastBatch::kPartial});
  Open({});
  ExpectNext(0, 0);
  ExpectNext(0, 1);
  auto last = Next();
  ASSERT_TRUE(last.ok() && last->has_value());
  EXPECT_EQ((*last)->rows(), 5u);
  EXPECT_EQ((*last)->tensors()[0].shape[0], 5);
  ExpectRight(**last);
  ExpectEnd();
  Open({.rows = {14, 15}});
  ExpectNext(0, 0);
  ExpectNext(0, 1);
  last = Next();
  ASSERT_TRUE(last.ok() && last->has_value());
  EXPECT_EQ((*last)->rows(), 0u);
  ExpectEnd();
}

TEST_F(ClusterTest, PositionGoesOnAtTheVeryNextBatch) {
  Start(2);
  Open({.epochs = 2});
  std::string position = batches_->position();
  for (uint64_t step = 0; step < 61; ++step) ExpectNext(0, step);
  position = batches_->position();
  Open({.position = position, .epochs = 2});
  ExpectNext(0, 61);
  position = batches_->position();
  Open({.position = position, .epochs = 2, .rows = {3, 4}});
  ExpectNext(1, 0);
  EXPECT_TRUE(absl::IsInvalidArgument(job_->Open({.position = "x"}).status()));
}

TEST_F(ClusterTest, EpochsAreCountedFromTheFirstStep) {
  Start(1);
  Open({.epoch = 3, .step = 60, .epochs = 1});
  ExpectNext(3, 60);
  const std::string in_epoch_3 = batches_->position();
  EXPECT_EQ(*job_->StepOf(in_epoch_3), (EpochStep{3, 61}));
  ExpectNext(3, 61);
  ExpectEnd();
  EXPECT_EQ(*job_->StepOf(batches_->position()), (EpochStep{4, 0}));
  Open({.position = in_epoch_3, .epochs = 2});
  ExpectNext(3, 61);
  for (uint64_t step = 0; step < 62; ++step) ExpectNext(4, step);
  ExpectEnd();
}

TEST_F(ClusterTest, DeadlineOfNextLosesNothing) {
  Start(1);
  workers_[0]->Behave(Behaviour::kSilent);
  Open({});
  EXPECT_TRUE(absl::IsDeadlineExceeded(
      batches_->Next(absl::Now() + absl::Milliseconds(20)).status()));
  EXPECT_TRUE(
      absl::IsDeadlineExceeded(batches_->Next(absl::InfinitePast()).status()));
  workers_[0]->Release();
  ExpectNext(0, 0);
}

TEST_F(ClusterTest, CancelWakesNext) {
  Start(1);
  workers_[0]->Behave(Behaviour::kSilent);
  Open({});
  std::thread canceller([this] {
    workers_[0]->AwaitAsked(1);
    batches_->Cancel();
  });
  EXPECT_TRUE(
      absl::IsCancelled(batches_->Next(absl::InfiniteFuture()).status()));
  canceller.join();
  batches_->Cancel();
  EXPECT_TRUE(absl::IsCancelled(Next().status()));
}

TEST_F(ClusterTest, BatchOutlivesIteratorJobAndService) {
  Start(1);
  Open({});
  auto batch = Next();
  ASSERT_TRUE(batch.ok() && batch->has_value());
  const auto samples = *batches_->Samples(0, 0);
  service_.reset();
  job_.reset();
  batches_.reset();
  workers_.clear();
  ExpectHolds(**batch, samples);
  std::memset((*batch)->tensors()[0].data, 1, (*batch)->tensors()[0].bytes);
}

TEST_F(ClusterTest, DeliveredBatchIsNeverWrittenAgain) {
  Start(2);
  for (const auto& worker : workers_) worker->Behave(Behaviour::kTwice);
  Open({});
  std::vector<Batch> batches;
  for (uint64_t step = 0; step < 62; ++step) {
    auto batch = Next();
    ASSERT_TRUE(batch.ok() && batch->has_value());
    batches.push_back(**std::move(batch));
  }
  for (const Batch& batch : batches) ExpectRight(batch);
  EXPECT_GT(batches_->stats().duplicate_rows, 0u);
}

}  // namespace
}  // namespace leat::client
