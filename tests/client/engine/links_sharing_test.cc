// SPDX-License-Identifier: Apache-2.0
//
// The client's memory, written by fake workers that have really mapped it.
#include <cstdlib>
#include <vector>

#include "tests/client/engine/cluster_fixture.h"

namespace leat::client {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

class ClusterSharingTest : public ClusterTest {
 protected:
  ~ClusterSharingTest() override { unsetenv("LEAT_TRANSPORT"); }
  static void Force(const char* transport) {
    setenv("LEAT_TRANSPORT", transport, 1);
  }
  void StartLocal(int workers) {
    Start(workers);
    for (const auto& worker : workers_) worker->TakeMemory(Taking::kTaken);
  }
  void ExpectSteps(uint64_t epoch, uint64_t begin, uint64_t end) {
    for (uint64_t step = begin; step < end; ++step) ExpectNext(epoch, step);
  }
  void ExpectEpoch(uint64_t epoch, uint64_t steps = 62) {
    ExpectSteps(epoch, 0, steps);
  }
  // The worker falls silent, and keeps requests while these steps are taken:
  // more steps than the client requests ahead.
  void ExpectSilence(FakeWorker& worker, uint64_t epoch, uint64_t begin,
                     uint64_t end) {
    worker.Behave(Behaviour::kSilent);
    ExpectSteps(epoch, begin, end);
    worker.AwaitKept();
  }
};

TEST_F(ClusterSharingTest, RowsAreWrittenInPlaceByAllWorkersWithoutACopy) {
  Force("shm");
  StartLocal(3);
  Open({.epochs = 2});
  ExpectEpoch(0);
  ExpectEpoch(1);
  ExpectEnd();
  const BatchesStats stats = batches_->stats();
  EXPECT_EQ(stats.transport, "shm");
  EXPECT_EQ(stats.rows, 2u * 62 * 16);
  if (stats.hedged_rows == 0) {  // a second answer comes as bytes
    EXPECT_EQ(stats.payload_copies, 0u);
  }
}

TEST_F(ClusterSharingTest, TransportIsChosenByItselfAndMayDifferByWorker) {
  Start(2);
  workers_[0]->TakeMemory(Taking::kTaken);
  constexpr uint64_t kMost = 300;
  Open({.epochs = kMost});
  // Memory is shared beside the stream: on a busy machine all of the first rows
  // may arrive before that.
  BatchesStats stats;
  for (uint64_t epoch = 0;
       epoch < 3 || (stats.transport != "shm+grpc" && epoch < kMost); ++epoch) {
    ExpectEpoch(epoch);
    stats = batches_->stats();
  }
  EXPECT_EQ(stats.transport, "shm+grpc");
  EXPECT_LT(stats.payload_copies, stats.rows);
  EXPECT_GT(stats.payload_copies, stats.rows / 4);
}

TEST_F(ClusterSharingTest, ForcedGrpcSharesNothing) {
  Force("grpc");
  StartLocal(2);
  Open({});
  ExpectEpoch(0);
  EXPECT_EQ(batches_->stats().transport, "grpc");
  EXPECT_EQ(workers_[0]->shared() + workers_[1]->shared(), 0u);
}

TEST_F(ClusterSharingTest, WorkerOfAnotherHostIsServedByBytesOrNamed) {
  Start(1);
  workers_[0]->TakeMemory(Taking::kNobody);
  Open({});
  ExpectEpoch(0);
  EXPECT_EQ(batches_->stats().transport, "grpc");
  Force("shm");
  Open({});
  const auto refused = Next();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused.status())) << refused.status();
  EXPECT_THAT(std::string(Message(refused.status())),
              HasSubstr("LEAT_TRANSPORT=shm: worker w0 at "));
  EXPECT_THAT(std::string(Message(refused.status())),
              HasSubstr("memory socket"));
}

TEST_F(ClusterSharingTest, WorkerThatTakesNoMemoryIsNamed) {
  Force("shm");
  Start(1);
  Open({});
  EXPECT_THAT(std::string(Message(Next().status())),
              HasSubstr("it takes no memory of consumers"));
}

TEST_F(ClusterSharingTest, UnknownTransportIsRefusedByName) {
  Start(1);
  Force("tcp");
  const auto batches = job_->Open({});
  EXPECT_TRUE(absl::IsInvalidArgument(batches.status()));
  EXPECT_THAT(
      std::string(Message(batches.status())),
      HasSubstr("LEAT_TRANSPORT: transport \"tcp\": want auto, grpc, shm"));
}

TEST_F(ClusterSharingTest, SilentWorkerWritesLateAndIntoNoDeliveredBatch) {
  Force("shm");
  StartLocal(2);
  Open({.epochs = 3});
  ExpectEpoch(0);
  workers_[0]->Behave(Behaviour::kSilent);
  std::vector<Batch> held;
  for (uint64_t step = 0; step < 62; ++step) {
    auto batch = Next();
    ASSERT_TRUE(batch.ok() && batch->has_value()) << batch.status();
    ExpectRight(**batch);
    // No worker may write it now: a late write would show.
    std::memset((*batch)->tensors()[0].data, 0xee,
                (*batch)->tensors()[0].bytes);
    held.push_back(**std::move(batch));
  }
  EXPECT_GT(batches_->stats().hedged_rows, 0u);
  workers_[0]->Release();
  ExpectEpoch(2);
  for (const Batch& batch : held)
    for (size_t i = 0; i < batch.tensors()[0].bytes; ++i)
      ASSERT_EQ(batch.tensors()[0].data[i], std::byte{0xee})
          << "step " << batch.step() << " byte " << i;
}

TEST_F(ClusterSharingTest, KilledWorkerIsReplaced) {
  Force("shm");
  StartLocal(2);
  Open({.epochs = 2});
  ExpectEpoch(0);
  ExpectSilence(*workers_[1], 1, 0, 20);
  workers_[1]->Kill();
  ExpectSteps(1, 20, 62);
  ExpectEnd();
}

TEST_F(ClusterSharingTest, SharingSocketsEndIsNotTheStreams) {
  for (const char* transport : {"auto", "shm"}) {
    SCOPED_TRACE(transport);
    Force(transport);
    workers_.clear();
    StartLocal(2);
    Open({.epochs = 3});
    ExpectEpoch(0);
    workers_[0]->CloseSharing();
    ExpectEpoch(1, 20);
    workers_[0]->TakeMemory(Taking::kTaken);  // of new streams
    ExpectSteps(1, 20, 62);
    ExpectEpoch(2);
    batches_.reset();
  }
}

TEST_F(ClusterSharingTest, DataForRowsWithPlacesBreaksTheProtocol) {
  StartLocal(2);
  Open({.epochs = 3});
  ExpectEpoch(0);
  workers_[0]->Behave(Behaviour::kBytes);
  ExpectEpoch(1);
  bool failed = false;
  for (const auto& worker : batches_->stats().workers)
    failed |= worker.worker == "w0" && worker.failures > 0;
  EXPECT_TRUE(failed);
  workers_[0]->Behave(Behaviour::kServe);
  ExpectEpoch(2);
}

TEST_F(ClusterSharingTest, MemoryBeyondTheWorkersLimitComesByBytes) {
  Start(1);
  workers_[0]->TakeMemory(Taking::kTaken, 2);
  Open({.epochs = 2});
  ExpectEpoch(0);
  ExpectEpoch(1);
  EXPECT_LE(workers_[0]->shared(), 2u);
  EXPECT_GT(batches_->stats().payload_copies, 0u);
}

TEST_F(ClusterSharingTest, WhatTheTrainerGivesUpIsTakenBack) {
  Force("shm");
  StartLocal(1);
  Open({.epochs = 3, .window = 2});
  std::vector<Batch> held;
  for (uint64_t step = 0; step < 40; ++step) held.push_back(**Next());
  EXPECT_GE(workers_[0]->shared(), 40u);
  held.clear();
  // Four free ones are kept. The next steps wait for the sharer's thread.
  for (uint64_t step = 40; step < 62 || workers_[0]->shared() > 8; ++step)
    ASSERT_TRUE((*Next()).has_value()) << workers_[0]->shared();
  batches_.reset();
}

TEST_F(ClusterSharingTest, IteratorMayEndWhileAWorkerHoldsItsMemory) {
  Force("shm");
  StartLocal(2);
  Open({.epochs = 2});
  ExpectEpoch(0, 10);
  ExpectSilence(*workers_[0], 0, 10, 30);
  batches_.reset();
  workers_[0]->Release();  // writes to memory that only it still has mapped
  Open({});
  ExpectEpoch(0);
}

}  // namespace
}  // namespace leat::client
