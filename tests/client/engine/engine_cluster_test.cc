// SPDX-License-Identifier: Apache-2.0
//
// The client against a fake coordinator and fake workers over real gRPC.
#include <string>

#include "tests/client/engine/cluster_fixture.h"

namespace leat::client {
namespace {

using ::testing::HasSubstr;

TEST_F(ClusterTest, TwoEpochsComeInOrderAndRight) {
  Start(2);
  EXPECT_EQ(job_->steps_per_epoch(), 62u);
  EXPECT_EQ(job_->plan_hash(), ToHex(info_.plan_hash));
  Open({.epochs = 2});
  for (uint64_t epoch = 0; epoch < 2; ++epoch)
    for (uint64_t step = 0; step < 62; ++step) ExpectNext(epoch, step);
  ExpectEnd();
  ExpectEnd();
  const BatchesStats stats = batches_->stats();
  EXPECT_EQ(stats.steps, 124u);
  EXPECT_EQ(stats.rows, 124u * 16);
  EXPECT_EQ(stats.payload_copies, stats.rows + stats.duplicate_rows);
  EXPECT_EQ(stats.wait.count, 124u);
  ASSERT_EQ(stats.workers.size(), 2u);
  EXPECT_EQ(stats.workers[0].rows + stats.workers[1].rows, stats.rows);
}

TEST_F(ClusterTest, PiecesOfAnySizeArePutTogether) {
  Start(2);
  workers_[0]->set_chunk_bytes(7);
  workers_[1]->set_chunk_bytes(100);
  Open({});
  for (uint64_t step = 0; step < 62; ++step) ExpectNext(0, step);
  ExpectEnd();
}

TEST_F(ClusterTest, BytesThatChangeOnTheirWayAreNeverHandedOut) {
  Start(2, {}, "127.0.0.1:0");
  workers_[0]->Behave(Behaviour::kFlipped);
  Open({.epochs = 1});
  for (uint64_t step = 0; step < 62; ++step) ExpectNext(0, step);
  ExpectEnd();
  EXPECT_GT(batches_->stats().damaged_streams, 0u);
  EXPECT_EQ(batches_->stats().workers[0].rows, 0u);
}

TEST_F(ClusterTest, BytesThatChangeOnTheirWayAreNobodysRefusal) {
  Start(1, {}, "127.0.0.1:0");
  workers_[0]->Behave(Behaviour::kFlipped);
  Open({.epochs = 1});
  // More often than a worker may refuse.
  while (batches_->stats().damaged_streams < 5) {
    const auto batch = batches_->Next(absl::Now() + absl::Milliseconds(50));
    ASSERT_TRUE(absl::IsDeadlineExceeded(batch.status())) << batch.status();
  }
  workers_[0]->Behave(Behaviour::kServe);
  for (uint64_t step = 0; step < 62; ++step) ExpectNext(0, step);
  ExpectEnd();
}

TEST_F(ClusterTest, WorkersThatKnowNoChecksumsAreTaken) {
  Start(2, {}, "127.0.0.1:0", /*checksums=*/false);
  Open({.epochs = 1});
  for (uint64_t step = 0; step < 62; ++step) ExpectNext(0, step);
  ExpectEnd();
  EXPECT_EQ(batches_->stats().damaged_streams, 0u);
  EXPECT_EQ(batches_->stats().failed_over_rows, 0u);
}

TEST_F(ClusterTest, KilledWorkerIsReplacedWithinASecond) {
  Start(2);
  Open({.epochs = 3});
  for (uint64_t step = 0; step < 20; ++step) ExpectNext(0, step);
  workers_[0]->Kill();
  for (uint64_t step = 20; step < 62; ++step) ExpectNext(0, step);
  workers_[0]->Start();
  for (uint64_t step = 0; step < 62; ++step) ExpectNext(1, step);
  EXPECT_LT(batches_->stats().wait.max_ms, 1000);
}

TEST_F(ClusterTest, SilentWorkerIsHedged) {
  Start(2);
  Open({.epochs = 3});
  for (uint64_t step = 0; step < 62; ++step) ExpectNext(0, step);
  workers_[0]->Behave(Behaviour::kSilent);
  for (uint64_t step = 0; step < 62; ++step) ExpectNext(1, step);
  const BatchesStats stats = batches_->stats();
  EXPECT_GT(stats.hedged_rows, 0u);
  EXPECT_LT(stats.wait.max_ms, 1000);
  // Late answers write nothing.
  workers_[0]->Release();
  for (uint64_t step = 0; step < 62; ++step) ExpectNext(2, step);
}

TEST_F(ClusterTest, ATrainerThatAsksAgainAndAgainWithoutWaitingIsHedgedFor) {
  Start(2);
  Open({.epochs = 2});
  for (uint64_t step = 0; step < 62; ++step) ExpectNext(0, step);
  workers_[0]->Behave(Behaviour::kSilent);
  const absl::Time most = absl::Now() + kLong;
  for (uint64_t step = 0; step < 62; ++step) {
    absl::StatusOr<std::optional<Batch>> batch;
    do {
      batch = batches_->Next(absl::InfinitePast());
    } while (absl::IsDeadlineExceeded(batch.status()) && absl::Now() < most);
    ASSERT_TRUE(batch.ok() && batch->has_value()) << batch.status();
    EXPECT_EQ((*batch)->step(), step);
    ExpectRight(**batch);
  }
  workers_[0]->Release();
}

TEST_F(ClusterTest, HalfAnAnswerThenSilenceIsTakenOver) {
  Start(2);
  Open({.epochs = 2});
  for (uint64_t step = 0; step < 62; ++step) ExpectNext(0, step);
  workers_[1]->set_chunk_bytes(50);
  workers_[1]->Behave(Behaviour::kHalf);
  for (uint64_t step = 0; step < 62; ++step) ExpectNext(1, step);
}

TEST_F(ClusterTest, MisbehavingWorkerIsLeftAlone) {
  for (const Behaviour behaviour :
       {Behaviour::kGarbage, Behaviour::kMisfit, Behaviour::kDraining,
        Behaviour::kUnknown, Behaviour::kTwice}) {
    workers_.clear();
    Start(2);
    workers_[0]->Behave(behaviour);
    Open({});
    for (uint64_t step = 0; step < 62; ++step) ExpectNext(0, step);
    ExpectEnd();
    batches_.reset();
  }
}

TEST_F(ClusterTest, BadSampleFailsItsStepAndNoneBefore) {
  Start(2, {.samples = 160});
  Open({});
  const uint64_t bad = (*batches_->Samples(0, 5))[3];
  batches_.reset();
  for (const auto& worker : workers_)
    worker->SpoilSample(bad, "c/photo.jpg: truncated after 17 bytes");
  Open({});
  for (uint64_t step = 0; step < 5; ++step) ExpectNext(0, step);
  const auto failed = Next();
  EXPECT_TRUE(absl::IsDataLoss(failed.status())) << failed.status();
  EXPECT_THAT(std::string(Message(failed.status())),
              HasSubstr("c/photo.jpg: truncated after 17 bytes"));
  EXPECT_EQ(Next().status(), failed.status());  // final
}

TEST_F(ClusterTest, NobodyToServeFailsAfterRowTimeoutByName) {
  Start(1);
  workers_[0]->Kill();
  Open({.row_timeout = absl::Milliseconds(300)});
  const auto failed = Next();
  EXPECT_TRUE(absl::IsUnavailable(failed.status())) << failed.status();
  EXPECT_THAT(std::string(Message(failed.status())),
              HasSubstr("not delivered within 0.3 s"));
  EXPECT_THAT(std::string(Message(failed.status())), HasSubstr("w0 at unix"));
}

TEST_F(ClusterTest, SlowTrainerStopsTheWorkers) {
  Start(1);
  Open({.epochs = 0, .window = 2});
  ExpectNext(0, 0);
  workers_[0]->AwaitAsked(3 * 16);
  ExpectNext(0, 1);
  workers_[0]->AwaitAsked(4 * 16);
  EXPECT_EQ(workers_[0]->asked(), 4u * 16);
}

TEST_F(ClusterTest, TrainingGoesOnWithoutTheCoordinator) {
  Start(2);
  Open({.epochs = 3});
  ExpectNext(0, 0);
  coordinator_->Kill();
  for (uint64_t step = 1; step < 62; ++step) ExpectNext(0, step);
  // Another iterator of the job fails, too.
  auto other = job_->Open({});
  ASSERT_TRUE(other.ok());
  EXPECT_TRUE((*other)->Next(absl::Now() + kLong).ok());
  coordinator_->Start();
  FakeWorker joined("w9");
  coordinator_->SetWorkers({&joined});
  uint64_t step = 0;
  while (joined.asked() == 0) {
    ASSERT_LT(step, 62u * 2);
    if (step == 30) coordinator_->AwaitReports(1);
    ExpectNext(1 + step / 62, step % 62);
    ++step;
  }
}

// The consumer comes back before the workers: the new coordinator knows no
// worker, then one that has gone meanwhile, and at last all.
TEST_F(ClusterTest, ACoordinatorThatHasJustStartedDoesNotStopTraining) {
  Start(2);
  Open({.epochs = 4, .row_timeout = absl::Seconds(5)});
  uint64_t step = 0;
  const auto train = [&](uint64_t steps) {
    for (uint64_t end = step + steps; step < end; ++step)
      ExpectNext(step / 62, step % 62);
  };
  train(30);
  FakeWorker gone("gone");
  gone.Kill();
  coordinator_->Kill();
  train(5);
  coordinator_->SetWorkers({}, 2);
  coordinator_->Start();
  coordinator_->AwaitReports(1);
  train(62);
  // Another iterator that opens now uses the job's known table.
  auto other = job_->Open({.row_timeout = absl::Seconds(5)});
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_TRUE((*other)->Next(absl::Now() + kLong).ok());
  coordinator_->SetWorkers({&gone}, 2);
  train(62);
  EXPECT_LT(batches_->stats().wait.max_ms, 2000);
  FakeWorker joined("joined");
  coordinator_->SetWorkers({workers_[0].get(), &joined}, 2);
  while (joined.asked() == 0) {
    ASSERT_LT(step, 62u * 4);
    train(1);
  }
}

TEST_F(ClusterTest, OpensBeforeAnyWorkerIsThere) {
  Start(0);
  Open({});
  FakeWorker late("late");
  coordinator_->SetWorkers({&late});
  ExpectNext(0, 0);
  batches_.reset();
}

TEST_F(ClusterTest, ReportsWhatItDoes) {
  Start(1);
  Open({});
  ExpectNext(0, 0);
  coordinator_->AwaitReports(1);
  const v1::ConsumerStats report = coordinator_->last_report();
  EXPECT_EQ(report.job(), "train");
  EXPECT_EQ(report.step(), 1u);
  EXPECT_EQ(report.steps_per_epoch(), 62u);
  EXPECT_GE(report.rows_total(), 16u);
  EXPECT_EQ(report.wait().count(), 1u);
}

}  // namespace
}  // namespace leat::client
