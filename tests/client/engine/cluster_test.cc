// SPDX-License-Identifier: Apache-2.0
//
// The client against a fake coordinator and fake workers over real gRPC.
#include <cstring>
#include <thread>

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

TEST_F(ClusterTest, EpochsBeyondTheLastNumberAreRefused) {
  Start(1);
  const absl::Status status =
      job_->Open({.epoch = 2, .epochs = ~uint64_t{0} - 1}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("from epoch 2 on"));
  EXPECT_TRUE(absl::IsInvalidArgument(job_->StepOf("x").status()));
}

TEST_F(ClusterTest, WrongOptionsAreRefused) {
  Start(1);
  EXPECT_TRUE(absl::IsInvalidArgument(job_->Open({.window = 0}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(job_->Open({.window = 65}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      job_->Open({.row_timeout = absl::ZeroDuration()}).status()));
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

TEST_F(ClusterTest, SampleIsABatchOfOneRow) {
  Start(2);
  for (const uint64_t index : {0ull, 17ull, 999ull}) {
    const auto batch = job_->Sample(index, kLong);
    ASSERT_TRUE(batch.ok()) << batch.status();
    ExpectHolds(*batch, {index});
  }
  EXPECT_TRUE(absl::IsOutOfRange(job_->Sample(1000, kLong).status()));
  workers_[0]->Kill();
  workers_[1]->Kill();
  EXPECT_FALSE(job_->Sample(1, absl::Milliseconds(50)).ok());
}

TEST_F(ClusterTest, SchemaAndJsonDescribeTheJob) {
  Start(1);
  const auto schema = job_->row_schema();
  ASSERT_EQ(schema.size(), 2u);
  EXPECT_EQ(schema[0].name, "image");
  EXPECT_EQ(schema[0].shape.size(), 3u);
  EXPECT_EQ(schema[0].bytes, 90u);
  EXPECT_THAT(job_->ToJson(), HasSubstr("\"num_samples\":1000"));
  EXPECT_THAT(job_->ToJson(), HasSubstr("\"name\":\"train\""));
}

TEST_F(ClusterTest, AdminSpeaksJsonAndErrors) {
  Start(1);
  const auto status = service_->admin().GetStatus();
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_THAT(*status, HasSubstr("\"sequence\":12345678901234"));
  EXPECT_THAT(*status, HasSubstr("\"log_level\":\"\""));
  EXPECT_TRUE(absl::IsNotFound(service_->admin().DeleteJob("x")));
}

TEST_F(ClusterTest, AListOfManyPagesIsOneAnswer) {
  Start(1);
  const auto workers = service_->admin().ListWorkers();
  ASSERT_TRUE(workers.ok()) << workers.status();
  for (const char* name : {"w0", "w1", "w2", "w3", "w4"})
    EXPECT_THAT(*workers, HasSubstr(name));
  EXPECT_THAT(*workers, testing::Not(HasSubstr("page")));
  EXPECT_TRUE(absl::IsInternal(service_->admin().ListJobs().status()))
      << "a page that repeats ends the list";
}

TEST_F(ClusterTest, ConnectingAsksForNoStatus) {
  Start(1);
  EXPECT_EQ(coordinator_->status_calls(), 0);
  EXPECT_TRUE(service_->admin().GetStatus().ok());
  EXPECT_EQ(coordinator_->status_calls(), 1);
}

TEST(Connect, WaitsForACoordinatorThatStartsLate) {
  FakeCoordinator coordinator(MakeFakeJob({}));
  coordinator.Kill();
  std::thread late([&] {
    absl::SleepFor(absl::Milliseconds(300));
    coordinator.Start();
  });
  const auto service = Service::Connect(
      {.address = coordinator.address(), .timeout = absl::Seconds(20)});
  late.join();
  EXPECT_TRUE(service.ok()) << service.status();
}

TEST_F(ClusterTest, JobsAreFoundCreatedAndRefused) {
  Start(1);
  EXPECT_TRUE(absl::IsNotFound(service_->GetJob("other").status()));
  std::string spec = rpc::ToJson(info_.spec);
  EXPECT_TRUE(service_->CreateJob(spec, kLong).ok());
  EXPECT_TRUE(
      absl::IsInvalidArgument(service_->CreateJob("{", kLong).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      service_->CreateJob("{\"name\": \"x\"}", kLong).status()));
}

TEST_F(ClusterTest, ACoordinatorThatIsStartedAgainMakesTheJob) {
  Start(1);
  coordinator_->Kill();
  std::thread engine([&] { coordinator_->Start(); });
  const auto job = service_->CreateJob(rpc::ToJson(info_.spec), kLong);
  engine.join();
  EXPECT_TRUE(job.ok()) << job.status();
}

TEST(Connect, NobodyThereSaysWhereAndWhatToDo) {
  const auto service = Service::Connect(
      {.address = "127.0.0.1:1", .timeout = absl::Milliseconds(200)});
  ASSERT_TRUE(absl::IsUnavailable(service.status())) << service.status();
  const std::string text(Message(service.status()));
  EXPECT_THAT(text, HasSubstr("no coordinator at 127.0.0.1:1: "));
  EXPECT_THAT(text, HasSubstr("Connection refused"));
  EXPECT_THAT(text, HasSubstr("leat-coordinator --listen 127.0.0.1:1"));
}

TEST(Connect, WrongAccessTokenIsRefusedAtOnce) {
  FakeCoordinator coordinator(MakeFakeJob({}), "secret");
  EXPECT_TRUE(Service::Connect(
                  {.address = coordinator.address(), .access_token = "secret"})
                  .ok());
  const auto service = Service::Connect(
      {.address = coordinator.address(), .access_token = "guess"});
  EXPECT_TRUE(absl::IsUnauthenticated(service.status())) << service.status();
  EXPECT_THAT(std::string(Message(service.status())),
              HasSubstr(coordinator.address()));
}

TEST(Connect, WorkersAddressIsNotACoordinators) {
  FakeWorker worker("w");
  const auto service = Service::Connect({.address = worker.address()});
  EXPECT_TRUE(absl::IsFailedPrecondition(service.status()));
  EXPECT_THAT(std::string(Message(service.status())),
              HasSubstr("not a Leat coordinator"));
}

TEST(Connect, WrongOptionsAreRefused) {
  EXPECT_TRUE(absl::IsInvalidArgument(
      Service::Connect({.address = "x:1", .timeout = absl::ZeroDuration()})
          .status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      Service::Connect({.address = "x:1", .cert_pem = "x"}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      Service::Connect({.embedded_workers = 0}).status()));
}

}  // namespace
}  // namespace leat::client
