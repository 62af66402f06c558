// SPDX-License-Identifier: Apache-2.0
//
// Rows come only from workers that the coordinator names, and not from others
// that answer at their addresses.
#include <string>

#include "tests/client/engine/cluster_fixture.h"

namespace leat::client {
namespace {

using ::testing::HasSubstr;

class ProofTest : public ClusterTest {
 protected:
  ProofTest() {
    for (FakeWorker::Key& key : keys_) key = *rpc::WorkerKey::Make();
  }
  void Tell() {
    std::vector<const FakeWorker*> refs;
    for (const auto& worker : workers_) refs.push_back(worker.get());
    coordinator_->SetWorkers(refs);
  }
  // Waits until this many streams of unproven peers were dropped.
  void AwaitUnproven(uint64_t streams) {
    while (batches_->stats().unproven_streams < streams) {
      const auto batch = batches_->Next(absl::Now() + absl::Milliseconds(50));
      ASSERT_TRUE(absl::IsDeadlineExceeded(batch.status())) << batch.status();
    }
  }
  void ExpectEpoch() {
    for (uint64_t step = 0; step < 62; ++step) ExpectNext(0, step);
    ExpectEnd();
  }

  FakeWorker::Key keys_[3];
};

TEST_F(ProofTest, WorkersThatProveThemselvesAreTaken) {
  Start(2);
  for (size_t i = 0; i < 2; ++i) workers_[i]->SetKeys(keys_[i], keys_[i]);
  Tell();
  Open({.epochs = 1});
  ExpectEpoch();
  EXPECT_EQ(batches_->stats().unproven_streams, 0u);
  for (const auto& worker : batches_->stats().workers)
    EXPECT_GT(worker.rows, 0u);
}

TEST_F(ProofTest, WhoeverElseAnswersThereGivesNoRow) {
  Start(2);
  workers_[1]->SetKeys(keys_[1], keys_[1]);
  workers_[0]->SetKeys(keys_[0], nullptr);
  for (const bool greets : {true, false}) {
    for (const auto& own : {keys_[1], keys_[2], FakeWorker::Key()}) {
      workers_[0]->SetKeys(keys_[0], own);
      workers_[0]->set_greets(greets);
      Tell();
      Open({.epochs = 1});
      ExpectEpoch();
      const BatchesStats stats = batches_->stats();
      EXPECT_GT(stats.unproven_streams, 0u);
      EXPECT_EQ(stats.workers[0].rows, 0u);
      EXPECT_GT(stats.workers[1].rows, 0u);
    }
  }
}

TEST_F(ProofTest, NoMemoryIsSharedToIt) {
  Start(1);
  workers_[0]->TakeMemory(Taking::kTaken);
  workers_[0]->SetKeys(keys_[0], keys_[1]);
  Tell();
  Open({.epochs = 1});
  AwaitUnproven(2);
  EXPECT_EQ(workers_[0]->shared(), 0u);
  workers_[0]->SetKeys(keys_[1], keys_[1]);
  Tell();
  ExpectEpoch();
  EXPECT_EQ(batches_->stats().transport, "shm");
}

// More often than a worker may refuse; and failures of the previous process do
// not count for the one with the same name and address.
TEST_F(ProofTest, AWorkerThatWasStartedAgainIsTakenOnceItsKeyIsTold) {
  Start(1);
  workers_[0]->SetKeys(keys_[0], keys_[1]);
  Tell();
  Open({.epochs = 1});
  AwaitUnproven(5);
  EXPECT_EQ(batches_->stats().workers[0].rows, 0u);
  workers_[0]->SetKeys(keys_[1], keys_[1]);
  Tell();
  ExpectEpoch();
}

TEST_F(ProofTest, TheLastErrorSaysWhoAnsweredWhere) {
  Start(1);
  workers_[0]->SetKeys(keys_[0], nullptr);
  Tell();
  Open({.epochs = 1, .row_timeout = absl::Milliseconds(300)});
  const absl::Status status = Next().status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  for (const std::string& part : {workers_[0]->name(), workers_[0]->address(),
                                  std::string("it sends no proof")})
    EXPECT_THAT(std::string(Message(status)), HasSubstr(part));
}

// The coordinator is away, and its workers are as it said.
TEST_F(ProofTest, TheTableThatIsKnownIsEnough) {
  Start(2);
  for (size_t i = 0; i < 2; ++i) workers_[i]->SetKeys(keys_[i], keys_[i]);
  Tell();
  Open({.epochs = 1, .window = 1});
  ExpectNext(0, 0);
  coordinator_->Kill();
  workers_[0]->Kill();
  workers_[0]->Start();
  for (uint64_t step = 1; step < 62; ++step) ExpectNext(0, step);
  ExpectEnd();
  EXPECT_EQ(batches_->stats().unproven_streams, 0u);
}

}  // namespace
}  // namespace leat::client
