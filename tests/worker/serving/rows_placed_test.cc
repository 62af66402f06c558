// SPDX-License-Identifier: Apache-2.0
//
// Rows into memory that a consumer lends, through the real service and sockets.
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/open_files.h"
#include "tests/worker/serving/rows_service_fixture.h"
#include "tests/worker/shared_memory/lending_client.h"

namespace leat::worker {
namespace {

using ::testing::HasSubstr;

class RowsPlacedTest : public RowsServiceTest {
 protected:
  ~RowsPlacedTest() override {
    gate_.Open();
    server_.reset();
    if (scheduler_ != nullptr) {
      EXPECT_TRUE(scheduler_->WaitIdle(MonotonicTime::max()));
    }
    EXPECT_EQ(CountMappings(kMemoryName), 0u);
  }
  void StartLending() {
    auto lending = LendingServer::Start({}, nullptr);
    ASSERT_TRUE(lending.ok()) << lending.status();
    lending_ = *std::move(lending);
    Start();
  }
  // A consumer that has lent one memory of kBatch places, number 1.
  struct Lender {
    std::unique_ptr<Client> rows;
    std::unique_ptr<LendingClient> lending;
    std::unique_ptr<ClientMemory> memory;

    char ImageByte(uint32_t place) const {
      return memory->base()[place * kFakeImageBytes];
    }
    Call& call() { return *rows->call; }
  };
  Lender Lend() {
    Lender lender{Open(), nullptr,
                  std::make_unique<ClientMemory>(kBatch * kRowBytes)};
    lender.lending =
        std::make_unique<LendingClient>(lender.rows->opened.lending_address());
    EXPECT_TRUE(
        lender.lending->Hello(lender.rows->opened.lending_secret()).ok());
    EXPECT_TRUE(lender.lending
                    ->Lend(lender.memory->Describe(
                               1, kBatch, {0, kBatch * kFakeImageBytes}),
                           lender.memory->fd())
                    .ok());
    return lender;
  }
  // Rows 0, 1, … go to the places kBatch - 1, kBatch - 2, …
  static v1::RowsRequest PlacedRequest(uint64_t id, uint64_t step,
                                       uint32_t rows = kBatch) {
    v1::RowsRequest request = MakeRequest(id, step, rows);
    request.mutable_request()->set_memory_id(1);
    for (uint32_t row = 0; row < rows; ++row)
      request.mutable_request()->add_places(kBatch - 1 - row);
    return request;
  }
  static v1::RowsRequest CancelOf(uint64_t id) {
    v1::RowsRequest request;
    request.mutable_cancel()->set_request_id(id);
    return request;
  }
  // Reads until `rows` rows have been answered by `placed`.
  static void ReadPlaced(Call& call, size_t rows) {
    v1::RowsResponse response;
    for (size_t got = 0; got < rows;) {
      ASSERT_TRUE(call.Read(&response));
      ASSERT_TRUE(response.placed()) << response.ShortDebugString();
      EXPECT_EQ(response.payload_bytes(), 0u);
      EXPECT_TRUE(response.data().empty());
      got += static_cast<size_t>(response.rows_size());
    }
  }
};

TEST_F(RowsPlacedTest, RowsAreInTheirPlacesWhenTheyAreAnswered) {
  StartLending();
  Lender lender = Lend();
  // The same places again and again, each at once after its answer.
  for (uint64_t i = 0; i < 50; ++i) {
    const uint64_t step = i % (kFiles / kBatch);
    ASSERT_TRUE(lender.call().Write(PlacedRequest(i, step)));
    ReadPlaced(lender.call(), kBatch);
    for (uint32_t row = 0; row < kBatch; ++row)
      ASSERT_EQ(lender.ImageByte(kBatch - 1 - row),
                "0123456789"[(step * kBatch + row) % 10]);
  }
  EXPECT_EQ(rows_->counters().bytes_sent, 0u);
  EXPECT_EQ(pool_->allocations_total(), 0u);
  EXPECT_EQ(scheduler_->stats().rows_placed_total, 50u * kBatch);
  lender.call().WritesDone();
  EXPECT_TRUE(Finish(*lender.rows).ok());
  EXPECT_TRUE(lender.lending->WaitClosed());
}

TEST_F(RowsPlacedTest, APlaceMayBeAskedForAgainAsSoonAsItsRowIsAnswered) {
  StartLending();
  Lender lender = Lend();
  uint64_t request = 0;
  ASSERT_TRUE(lender.call().Write(PlacedRequest(++request, 0)));
  v1::RowsResponse response;
  // Each answer's places go into a request of their own while the first is
  // open.
  for (size_t got = 0; got < 20 * kBatch;) {
    ASSERT_TRUE(lender.call().Read(&response));
    ASSERT_TRUE(response.placed()) << response.ShortDebugString();
    v1::RowsRequest next;
    v1::RequestRows& again = *next.mutable_request();
    again.set_request_id(++request);
    again.set_memory_id(1);
    for (const uint32_t row : response.rows()) {
      again.add_rows(row);
      again.add_samples(row);
      again.add_places(kBatch - 1 - row);
    }
    got += static_cast<size_t>(response.rows_size());
    ASSERT_TRUE(lender.call().Write(next));
  }
  lender.rows->context.TryCancel();
  Finish(*lender.rows);
}

TEST_F(RowsPlacedTest, AWithdrawnAskEndsWithItsRowsInWork) {
  gate_.Close();
  StartLending();
  Lender lender = Lend();
  lender.call().Write(PlacedRequest(1, 0));
  gate_.WaitArrived(2);  // both threads
  lender.call().Write(CancelOf(1));
  // Its places are not free yet: a request that names them would end the
  // stream.
  lender.call().Write(MakeRequest(2, 1, 1));
  while (scheduler_->stats().rows_queued != 1) std::this_thread::yield();
  gate_.Open();
  bool ended = false, bytes = false;
  v1::RowsResponse response;
  while ((!ended || !bytes) && lender.call().Read(&response)) {
    ASSERT_FALSE(response.has_error());
    ended = ended || (response.request_ended() && response.request_id() == 1);
    bytes = bytes || response.request_id() == 2;
  }
  EXPECT_TRUE(ended && bytes);
  lender.call().Write(PlacedRequest(3, 0));
  ReadPlaced(lender.call(), kBatch);
  lender.call().WritesDone();
  EXPECT_TRUE(Finish(*lender.rows).ok());
}

TEST_F(RowsPlacedTest, AnAskWithdrawnBeforeItsJobIsThereEnds) {
  StartLending();
  fetcher_.Fail(1'000'000, Unavailable("no coordinator"));
  Lender lender = Lend();
  lender.call().Write(PlacedRequest(5, 0));
  lender.call().Write(CancelOf(5));
  v1::RowsResponse response;
  ASSERT_TRUE(lender.call().Read(&response));
  EXPECT_TRUE(response.request_ended());
  EXPECT_EQ(response.request_id(), 5u);
  Finish(*lender.rows);
}

TEST_F(RowsPlacedTest, WrongPlacesEndOnlyTheirStream) {
  gate_.Close();
  StartLending();
  Lender good = Lend();
  std::vector<v1::RowsRequest> bad(6, PlacedRequest(2, 1));
  bad[0].mutable_request()->set_memory_id(2);
  bad[1].mutable_request()->mutable_places()->RemoveLast();
  bad[2].mutable_request()->set_places(3, 3);
  bad[2].mutable_request()->set_places(4, 3);
  bad[3].mutable_request()->set_places(0, kBatch);
  bad[4].mutable_request()->clear_memory_id();
  bad[5] = PlacedRequest(2, 0, 1);  // the place of an open request
  for (size_t i = 0; i < bad.size(); ++i) {
    Lender lender = Lend();
    if (i == 5) lender.call().Write(PlacedRequest(1, 0, 1));
    lender.call().Write(bad[i]);
    EXPECT_EQ(Finish(*lender.rows).error_code(),
              grpc::StatusCode::INVALID_ARGUMENT)
        << "case " << i;
    if (i == 5) gate_.Open();
    EXPECT_TRUE(lender.lending->WaitClosed());
  }
  good.call().Write(PlacedRequest(1, 0));
  ReadPlaced(good.call(), kBatch);
}

TEST_F(RowsPlacedTest, AWorkerThatTakesNoMemorySaysSo) {
  Start();
  auto client = Open();
  EXPECT_EQ(client->opened.lending_address(), "");
  client->call->Write(PlacedRequest(1, 0));
  EXPECT_EQ(Finish(*client).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(RowsPlacedTest, ABrokenStreamsSocketStaysOpenWhileRowsAreWritten) {
  gate_.Close();
  StartLending();
  Lender lender = Lend();
  lender.call().Write(PlacedRequest(1, 0));
  gate_.WaitArrived();
  lender.rows->context.TryCancel();
  Finish(*lender.rows);
  EXPECT_TRUE(rows_->WaitNoStreams(MonotonicTime::max()));
  EXPECT_FALSE(lender.lending->ClosedNow());
  gate_.Open();
  EXPECT_TRUE(lender.lending->WaitClosed());
  // From now on nobody writes: what it holds stays.
  const std::string before(lender.memory->base(), lender.memory->bytes());
  EXPECT_TRUE(scheduler_->WaitIdle(MonotonicTime::max()));
  EXPECT_EQ(before, std::string(lender.memory->base(), lender.memory->bytes()));
}

TEST_F(RowsPlacedTest, AConsumerMayTakeItsMemoryBackInTheMiddle) {
  gate_.Close();
  StartLending();
  Lender lender = Lend();
  lender.call().Write(PlacedRequest(1, 0));
  gate_.WaitArrived();
  lender.lending->Close();
  while (lending_->counters().connections > 0) std::this_thread::yield();
  // A request for memory that is gone is answered as this worker's failure.
  lender.call().Write(PlacedRequest(2, 1, 3));
  v1::RowsResponse response;
  ASSERT_TRUE(lender.call().Read(&response));
  EXPECT_EQ(response.request_id(), 2u);
  EXPECT_EQ(response.rows_size(), 3);
  EXPECT_EQ(response.error().code(),
            static_cast<int>(absl::StatusCode::kUnavailable));
  EXPECT_THAT(response.error().message(), HasSubstr("lending"));
  gate_.Open();
  ReadPlaced(lender.call(), kBatch);
  // The stream goes on, by bytes.
  lender.call().Write(MakeRequest(3, 1, 8));
  ASSERT_TRUE(lender.call().Read(&response));
  EXPECT_EQ(response.data().size(), 8 * kRowBytes);
  lender.call().WritesDone();
  EXPECT_TRUE(Finish(*lender.rows).ok());
}

TEST_F(RowsPlacedTest, AConsumerThatDiesInTheMiddleLeavesNothing) {
  StartLending();
  for (int round = 0; round < 10; ++round) {
    gate_.Close();
    Lender lender = Lend();
    lender.call().Write(PlacedRequest(1, 0));
    gate_.WaitArrived();
    // What the kernel does for a killed process: all at once, in no order.
    lender.memory.reset();
    lender.lending->Close();
    lender.rows->context.TryCancel();
    Finish(*lender.rows);
    gate_.Open();
  }
  EXPECT_TRUE(rows_->WaitNoStreams(MonotonicTime::max()));
  EXPECT_TRUE(scheduler_->WaitIdle(MonotonicTime::max()));
  EXPECT_EQ(lending_->counters().memories, 0u);
}

TEST_F(RowsPlacedTest, AFailedRowsPlacesAreFreeAgain) {
  dir_.Write("k/00003.jpg", "!");
  StartLending();
  Lender lender = Lend();
  for (uint64_t request = 1; request < 4; ++request) {
    lender.call().Write(PlacedRequest(request, 0, 8));
    v1::RowsResponse response;
    ASSERT_TRUE(lender.call().Read(&response));
    EXPECT_EQ(response.error().code(),
              static_cast<int>(absl::StatusCode::kDataLoss));
    EXPECT_EQ(response.rows_size(), 8);
  }
  lender.rows->context.TryCancel();
  Finish(*lender.rows);
}

}  // namespace
}  // namespace leat::worker
