// SPDX-License-Identifier: Apache-2.0
//
// Rows into memory that a consumer shares, through the real service and
// sockets.
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/open_files.h"
#include "tests/worker/serving/rows_service_fixture.h"
#include "tests/worker/shared_memory/client.h"

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
  void StartSharing() {
    auto sharing = SharedMemoryServer::Start({}, nullptr);
    ASSERT_TRUE(sharing.ok()) << sharing.status();
    sharing_ = *std::move(sharing);
    Start();
  }
  // A consumer that has shared one memory of kBatch slots, number 1.
  struct MemorySharer {
    std::unique_ptr<Client> rows;
    std::unique_ptr<SharedMemoryClient> sharing;
    std::unique_ptr<ClientMemory> memory;

    char ImageByte(uint32_t place) const {
      return memory->base()[place * kFakeImageBytes];
    }
    Call& call() { return *rows->call; }
  };
  MemorySharer Share() {
    MemorySharer sharer{Open(), nullptr,
                        std::make_unique<ClientMemory>(kBatch * kRowBytes)};
    sharer.sharing = std::make_unique<SharedMemoryClient>(
        sharer.rows->opened.memory_address());
    EXPECT_TRUE(
        sharer.sharing->Hello(sharer.rows->opened.memory_secret()).ok());
    EXPECT_TRUE(sharer.sharing
                    ->Share(sharer.memory->Describe(
                                1, kBatch, {0, kBatch * kFakeImageBytes}),
                            sharer.memory->fd())
                    .ok());
    return sharer;
  }
  // Rows 0, 1, … go to the slots kBatch - 1, kBatch - 2, …
  static v1::RowsRequest PlacedRequest(uint64_t id, uint64_t step,
                                       uint32_t rows = kBatch) {
    v1::RowsRequest request = MakeRequest(id, step, rows);
    request.mutable_request()->set_memory_id(1);
    for (uint32_t row = 0; row < rows; ++row)
      request.mutable_request()->add_slots(kBatch - 1 - row);
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

TEST_F(RowsPlacedTest, RowsThatAreSentSayHowLongTheWorkerHadTheirRequest) {
  Start();
  auto client = Open();
  gate_.Close();
  ASSERT_TRUE(client->call->Write(MakeRequest(1, 0)));
  gate_.WaitArrived();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  gate_.Open();
  v1::RowsResponse response;
  ASSERT_TRUE(client->call->Read(&response));
  EXPECT_GE(response.worker_us(), 50'000u);
}

TEST_F(RowsPlacedTest, RowsAreInTheirPlacesWhenTheyAreAnswered) {
  StartSharing();
  MemorySharer sharer = Share();
  // The same slots repeatedly, each at once after its answer.
  for (uint64_t i = 0; i < 50; ++i) {
    const uint64_t step = i % (kFiles / kBatch);
    ASSERT_TRUE(sharer.call().Write(PlacedRequest(i, step)));
    ReadPlaced(sharer.call(), kBatch);
    for (uint32_t row = 0; row < kBatch; ++row)
      ASSERT_EQ(sharer.ImageByte(kBatch - 1 - row),
                "0123456789"[(step * kBatch + row) % 10]);
  }
  EXPECT_EQ(rows_->counters().bytes_sent, 0u);
  EXPECT_EQ(pool_->allocations_total(), 0u);
  EXPECT_EQ(scheduler_->stats().rows_placed_total, 50u * kBatch);
  sharer.call().WritesDone();
  EXPECT_TRUE(Finish(*sharer.rows).ok());
  EXPECT_TRUE(sharer.sharing->WaitClosed());
}

TEST_F(RowsPlacedTest, APlaceMayBeAskedForAgainAsSoonAsItsRowIsAnswered) {
  StartSharing();
  MemorySharer sharer = Share();
  uint64_t request = 0;
  ASSERT_TRUE(sharer.call().Write(PlacedRequest(++request, 0)));
  v1::RowsResponse response;
  // Each answer's slots go into a separate request while the first is open.
  for (size_t got = 0; got < 20 * kBatch;) {
    ASSERT_TRUE(sharer.call().Read(&response));
    ASSERT_TRUE(response.placed()) << response.ShortDebugString();
    v1::RowsRequest next;
    v1::RequestRows& again = *next.mutable_request();
    again.set_request_id(++request);
    again.set_memory_id(1);
    for (const uint32_t row : response.rows()) {
      again.add_rows(row);
      again.add_samples(row);
      again.add_slots(kBatch - 1 - row);
    }
    got += static_cast<size_t>(response.rows_size());
    ASSERT_TRUE(sharer.call().Write(next));
  }
  sharer.rows->context.TryCancel();
  Finish(*sharer.rows);
}

TEST_F(RowsPlacedTest, AWithdrawnAskEndsWithItsRowsInWork) {
  gate_.Close();
  StartSharing();
  MemorySharer sharer = Share();
  sharer.call().Write(PlacedRequest(1, 0));
  gate_.WaitArrived(2);  // both threads
  sharer.call().Write(CancelOf(1));
  // Its slots are not free yet: a request that names them would end the stream.
  sharer.call().Write(MakeRequest(2, 1, 1));
  while (scheduler_->stats().rows_queued != 1) std::this_thread::yield();
  gate_.Open();
  bool ended = false, bytes = false;
  v1::RowsResponse response;
  while ((!ended || !bytes) && sharer.call().Read(&response)) {
    ASSERT_FALSE(response.has_error());
    ended = ended || (response.request_ended() && response.request_id() == 1);
    bytes = bytes || response.request_id() == 2;
  }
  EXPECT_TRUE(ended && bytes);
  sharer.call().Write(PlacedRequest(3, 0));
  ReadPlaced(sharer.call(), kBatch);
  sharer.call().WritesDone();
  EXPECT_TRUE(Finish(*sharer.rows).ok());
}

TEST_F(RowsPlacedTest, AnAskWithdrawnBeforeItsJobIsThereEnds) {
  StartSharing();
  fetcher_.Fail(1'000'000, Unavailable("no coordinator"));
  MemorySharer sharer = Share();
  sharer.call().Write(PlacedRequest(5, 0));
  sharer.call().Write(CancelOf(5));
  v1::RowsResponse response;
  ASSERT_TRUE(sharer.call().Read(&response));
  EXPECT_TRUE(response.request_ended());
  EXPECT_EQ(response.request_id(), 5u);
  sharer.rows->context.TryCancel();
  Finish(*sharer.rows);
}

// While it waits, a request counts as its rows.
TEST_F(RowsPlacedTest, AnAskOfMoreSamplesOrPlacesThanRowsDoesNotWaitForItsJob) {
  Start();
  fetcher_.Fail(1'000'000, Unavailable("no coordinator"));
  std::vector<v1::RowsRequest> bad(2, MakeRequest(1, 0));
  bad[0].mutable_request()->add_samples(1);
  bad[1].mutable_request()->add_slots(1);
  for (const v1::RowsRequest& each : bad) {
    auto client = Open();
    client->call->Write(each);
    EXPECT_EQ(Finish(*client).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  }
}

TEST_F(RowsPlacedTest, WrongPlacesEndOnlyTheirStream) {
  gate_.Close();
  StartSharing();
  MemorySharer good = Share();
  std::vector<v1::RowsRequest> bad(6, PlacedRequest(2, 1));
  bad[0].mutable_request()->set_memory_id(2);
  bad[1].mutable_request()->mutable_slots()->RemoveLast();
  bad[2].mutable_request()->set_slots(3, 3);
  bad[2].mutable_request()->set_slots(4, 3);
  bad[3].mutable_request()->set_slots(0, kBatch);
  bad[4].mutable_request()->clear_memory_id();
  bad[5] = PlacedRequest(2, 0, 1);  // the slot of an open request
  for (size_t i = 0; i < bad.size(); ++i) {
    MemorySharer sharer = Share();
    if (i == 5) sharer.call().Write(PlacedRequest(1, 0, 1));
    sharer.call().Write(bad[i]);
    EXPECT_EQ(Finish(*sharer.rows).error_code(),
              grpc::StatusCode::INVALID_ARGUMENT)
        << "case " << i;
    if (i == 5) gate_.Open();
    EXPECT_TRUE(sharer.sharing->WaitClosed());
  }
  good.call().Write(PlacedRequest(1, 0));
  ReadPlaced(good.call(), kBatch);
}

TEST_F(RowsPlacedTest, AWorkerThatTakesNoMemorySaysSo) {
  Start();
  auto client = Open();
  EXPECT_EQ(client->opened.memory_address(), "");
  client->call->Write(PlacedRequest(1, 0));
  EXPECT_EQ(Finish(*client).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(RowsPlacedTest, ABrokenStreamsSocketStaysOpenWhileRowsAreWritten) {
  gate_.Close();
  StartSharing();
  MemorySharer sharer = Share();
  sharer.call().Write(PlacedRequest(1, 0));
  gate_.WaitArrived();
  sharer.rows->context.TryCancel();
  Finish(*sharer.rows);
  EXPECT_TRUE(rows_->WaitNoStreams(MonotonicTime::max()));
  EXPECT_FALSE(sharer.sharing->ClosedNow());
  gate_.Open();
  EXPECT_TRUE(sharer.sharing->WaitClosed());
  // From now on nothing is written: the memory is unchanged.
  const std::string before(sharer.memory->base(), sharer.memory->bytes());
  EXPECT_TRUE(scheduler_->WaitIdle(MonotonicTime::max()));
  EXPECT_EQ(before, std::string(sharer.memory->base(), sharer.memory->bytes()));
}

TEST_F(RowsPlacedTest, AConsumerMayTakeItsMemoryBackInTheMiddle) {
  gate_.Close();
  StartSharing();
  MemorySharer sharer = Share();
  sharer.call().Write(PlacedRequest(1, 0));
  gate_.WaitArrived();
  sharer.sharing->Close();
  while (sharing_->counters().connections > 0) std::this_thread::yield();
  // A request for memory that is gone is answered as this worker's failure.
  sharer.call().Write(PlacedRequest(2, 1, 3));
  v1::RowsResponse response;
  ASSERT_TRUE(sharer.call().Read(&response));
  EXPECT_EQ(response.request_id(), 2u);
  EXPECT_EQ(response.rows_size(), 3);
  EXPECT_EQ(response.error().code(),
            static_cast<int>(absl::StatusCode::kUnavailable));
  EXPECT_THAT(response.error().message(), HasSubstr("memory connection"));
  gate_.Open();
  ReadPlaced(sharer.call(), kBatch);
  // The stream continues, by bytes.
  sharer.call().Write(MakeRequest(3, 1, 8));
  ASSERT_TRUE(sharer.call().Read(&response));
  EXPECT_EQ(response.data().size(), 8 * kRowBytes);
  sharer.call().WritesDone();
  EXPECT_TRUE(Finish(*sharer.rows).ok());
}

TEST_F(RowsPlacedTest, AConsumerThatDiesInTheMiddleLeavesNothing) {
  StartSharing();
  for (int round = 0; round < 10; ++round) {
    gate_.Close();
    MemorySharer sharer = Share();
    sharer.call().Write(PlacedRequest(1, 0));
    gate_.WaitArrived();
    // Does what the kernel does for a killed process: all at once, in no order.
    sharer.memory.reset();
    sharer.sharing->Close();
    sharer.rows->context.TryCancel();
    Finish(*sharer.rows);
    gate_.Open();
  }
  EXPECT_TRUE(rows_->WaitNoStreams(MonotonicTime::max()));
  EXPECT_TRUE(scheduler_->WaitIdle(MonotonicTime::max()));
  EXPECT_EQ(sharing_->counters().memories, 0u);
}

TEST_F(RowsPlacedTest, AFailedRowsPlacesAreFreeAgain) {
  dir_.Write("k/00003.jpg", "!");
  StartSharing();
  MemorySharer sharer = Share();
  for (uint64_t request = 1; request < 4; ++request) {
    sharer.call().Write(PlacedRequest(request, 0, 8));
    v1::RowsResponse response;
    ASSERT_TRUE(sharer.call().Read(&response));
    EXPECT_EQ(response.error().code(),
              static_cast<int>(absl::StatusCode::kDataLoss));
    EXPECT_EQ(response.rows_size(), 8);
  }
  sharer.rows->context.TryCancel();
  Finish(*sharer.rows);
}

}  // namespace
}  // namespace leat::worker
