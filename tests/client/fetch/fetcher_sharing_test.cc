// SPDX-License-Identifier: Apache-2.0
//
// The Fetcher: rows that are written into the consumer's memory. Workers write
// when the test says so, also long after they should have.
#include <cstring>

#include "tests/client/fetch/fetcher_sharing_fixture.h"

namespace leat::client {
namespace {

using ::testing::HasSubstr;

TEST_F(FetcherSharingTest, RowsOfSeveralWorkersAreWrittenInPlaceWithoutACopy) {
  BeginLocal(2);
  for (int i = 0; i < 10; ++i) {
    AddStep({0, 10, 1, 11});
    const auto actions = Decide();
    ASSERT_EQ(actions.size(), 2u);
    for (const Action& action : actions) {
      EXPECT_NE(action.memory_id, 0u);
      EXPECT_TRUE(Place(action).ok());
    }
    ExpectHeadIsRight();
  }
  EXPECT_EQ(copies(), 0u);
  EXPECT_EQ(fetcher_->counters().placed_rows, 40u);
  EXPECT_EQ(fetcher_->transport(), "shm");
}

TEST_F(FetcherSharingTest, OneStepMayComeInPlaceAndByBytes) {
  BeginLocal(2);
  AddStep({0, 10, 1, 11});
  auto actions = Decide();
  ASSERT_EQ(actions.size(), 2u);
  fetcher_->leases().SharingClosed(
      *actions[1].stream);  // this worker shares no longer
  EXPECT_TRUE(Place(actions[0]).ok());
  EXPECT_TRUE(Place(actions[1]).ok());  // its earlier requests still count
  ExpectHeadIsRight();
  AddStep({0, 10, 1, 11});
  actions = Decide();
  ASSERT_EQ(actions.size(), 2u);
  EXPECT_NE(actions[0].memory_id, 0u);
  EXPECT_EQ(actions[1].memory_id, 0u);
  EXPECT_TRUE(Place(actions[0]).ok());
  EXPECT_TRUE(Answer(actions[1]).ok());
  ExpectHeadIsRight();
  EXPECT_EQ(copies(), 2u);
  EXPECT_EQ(fetcher_->counters().moved_steps, 0u);
  EXPECT_EQ(fetcher_->transport(), "shm+grpc");
}

TEST_F(FetcherSharingTest, HedgedStepMovesAndTheStoppedWorkerWritesElsewhere) {
  BeginLocal(2);
  AddStep({0, 10, 1, 11});
  const auto first = Decide();
  EXPECT_TRUE(Place(first[1]).ok());
  fetcher_->set_waiting(true);
  clock_.Advance(config_.hedge_cold * 2);
  const auto hedge = Decide();
  ASSERT_EQ(hedge.size(), 1u);
  EXPECT_EQ(hedge[0].memory_id, 0u);  // a second answer comes as bytes
  EXPECT_EQ(fetcher_->leases().quarantined(), 1u);
  EXPECT_FALSE(fetcher_->head().complete());
  EXPECT_TRUE(Answer(hedge[0]).ok());
  ASSERT_TRUE(fetcher_->head().complete());
  const auto step = fetcher_->PopHead(clock_.Now());
  WriteRows(first[0], ~0ull);  // garbage, late
  for (size_t i = 0; i < 4; ++i) {
    uint64_t sample = 0;
    std::memcpy(&sample, step->memory->buffer.data() + i * kRowBytes, 8);
    EXPECT_EQ(sample, step->samples[i]);
  }
  EXPECT_EQ(copies(), 4u);  // two moved, two as bytes
  // Its buffer is kept until the lease has ended.
  const size_t in_use = pool_->in_use();
  Decide();
  EXPECT_TRUE(SayEnded(first[0]).ok());
  EXPECT_EQ(fetcher_->leases().quarantined(), 0u);
  // The Fetcher does not free memory itself, because it is called with a lock.
  EXPECT_EQ(pool_->in_use(), in_use);
  fetcher_->Decide(clock_.Now());
  EXPECT_EQ(pool_->in_use(), in_use - 1);
}

TEST_F(FetcherSharingTest, SecondRequestIsByBytesAlsoWhereMemoryIsShared) {
  BeginLocal(2);
  for (int i = 0; i < 4; ++i) AddStep({0, 10, 1, 11});
  for (const Action& action : Decide())
    EXPECT_TRUE((action.memory_id ? Place(action) : Answer(action)).ok());
  for (int i = 0; i < 4; ++i) ExpectHeadIsRight();
  AddStep({0, 10, 1, 11});  // both workers have now seen the pool's four
  const auto first = Decide();
  EXPECT_TRUE(Place(first[1]).ok());
  fetcher_->set_waiting(true);
  clock_.Advance(config_.hedge_cold * 2);
  const auto hedge = Decide();
  ASSERT_EQ(hedge.size(), 1u);
  EXPECT_EQ(hedge[0].memory_id, 0u);
  EXPECT_TRUE(Place(first[0]).ok());
  ExpectHeadIsRight();
}

TEST_F(FetcherSharingTest, LateAnswerIsCopiedFromTheOldMemory) {
  BeginLocal(2);
  AddStep({0, 10, 1, 11});
  const auto first = Decide();
  EXPECT_TRUE(Place(first[1]).ok());
  fetcher_->set_waiting(true);
  clock_.Advance(config_.hedge_cold * 2);
  ASSERT_EQ(Decide().size(), 1u);
  EXPECT_TRUE(Place(first[0]).ok());  // it wins nevertheless
  ExpectHeadIsRight();
  EXPECT_EQ(fetcher_->leases().quarantined(), 0u);
  EXPECT_EQ(copies(), 4u);
}

TEST_F(FetcherSharingTest, LeasesOutliveTheStreamUntilTheSocketsEnd) {
  BeginLocal(2);
  AddStep({0, 10, 1, 11});
  const auto first = Decide();
  EXPECT_TRUE(Place(first[1]).ok());
  const std::shared_ptr<WorkerStream> stream = first[0].stream;
  Close(first[0], Unavailable("connection reset"));
  EXPECT_TRUE(Leases::HasLeases(*stream));
  const auto again = Decide();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(fetcher_->leases().quarantined(), 1u);
  WriteRows(first[0], ~0ull);
  EXPECT_NE(again[0].memory_id, first[0].memory_id);
  EXPECT_TRUE((again[0].memory_id ? Place(again[0]) : Answer(again[0])).ok());
  ExpectHeadIsRight();
  WriteRows(first[0], ~0ull);
  fetcher_->leases().SharingClosed(*stream);
  EXPECT_EQ(fetcher_->leases().quarantined(), 0u);
  EXPECT_FALSE(Leases::HasLeases(*stream));
}

TEST_F(FetcherSharingTest, SocketsEndBeforeTheStreamsNeedsNoMove) {
  BeginLocal(2);
  AddStep({0, 10, 1, 11});
  const auto first = Decide();
  EXPECT_TRUE(Place(first[1]).ok());
  fetcher_->leases().SharingClosed(*first[0].stream);
  Close(first[0], Unavailable("killed"));
  const auto again = Decide();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].memory_id, first[0].memory_id);  // w1, in the same place
  EXPECT_TRUE(Place(again[0]).ok());
  ExpectHeadIsRight();
  EXPECT_EQ(copies(), 0u);
}

TEST_F(FetcherSharingTest, WorkerThatHoldsMemoryGetsNoMoreOfIt) {
  BeginLocal(1);
  AddStep({0, 1, 2, 3});
  const auto first = Decide();
  const std::shared_ptr<WorkerStream> stream = first[0].stream;
  Close(first[0], Unavailable("reset"));
  clock_.Advance(config_.backoff_max);
  const auto again = Decide();
  ASSERT_EQ(again.size(), 1u);
  Local(again[0]);
  EXPECT_EQ(again[0].memory_id, 0u);
  EXPECT_TRUE(Answer(again[0]).ok());
  ExpectHeadIsRight();
  AddStep({0, 1, 2, 3});
  const auto bytes = Decide();
  ASSERT_EQ(bytes.size(), 1u);
  EXPECT_EQ(bytes[0].memory_id, 0u);
  EXPECT_TRUE(Answer(bytes[0]).ok());
  ExpectHeadIsRight();
  fetcher_->leases().SharingClosed(*stream);
  AddStep({0, 1, 2, 3});
  EXPECT_NE(Decide()[0].memory_id, 0u);
}

TEST_F(FetcherSharingTest, QuarantineIsBounded) {
  config_.max_quarantined = 2;
  BeginLocal(3);
  for (int i = 0; i < 4; ++i) AddStep({0, 10, 20, 1});
  const auto first = Decide();
  fetcher_->set_waiting(true);
  clock_.Advance(config_.hedge_cold * 2);
  for (const Action& action : first)
    if (WorkerOf(action) != "w0") {
      EXPECT_TRUE(Place(action).ok());
    }
  size_t in_place = 0;
  for (const Action& action : Decide()) {
    if (action.rows.empty()) continue;  // withdraws
    in_place += action.memory_id != 0;
    EXPECT_TRUE((action.memory_id != 0 ? Place(action) : Answer(action)).ok());
  }
  EXPECT_EQ(in_place, 0u);
  EXPECT_LE(fetcher_->leases().quarantined(), 2u + 4u);
  for (int i = 0; i < 4; ++i) ExpectHeadIsRight();
  if (fetcher_->leases().quarantined() >= 2) {
    AddStep({10, 20, 11, 21});
    for (const Action& action : Decide())
      if (!action.rows.empty()) {
        EXPECT_EQ(action.memory_id, 0u);
      }
  }
}

TEST_F(FetcherSharingTest, ErrorOfAPlacedRowIsAskedElsewhere) {
  BeginLocal(2);
  AddStep({0, 1, 10, 11});
  const auto first = Decide();
  Fail(first[0], absl::StatusCode::kUnavailable, "draining");
  EXPECT_TRUE(Place(first[1]).ok());
  const auto again = Decide();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_TRUE((again[0].memory_id ? Place(again[0]) : Answer(again[0])).ok());
  ExpectHeadIsRight();
  EXPECT_EQ(fetcher_->counters().moved_steps, 0u);  // all answered
}

TEST_F(FetcherSharingTest, WhatBreaksTheProtocolOfPlacesIsRefused) {
  BeginLocal(2);
  AddStep({0, 10, 1, 11});
  const auto actions = Decide();
  const Action& action = actions[0];
  const uint64_t data = 0;
  EXPECT_TRUE(absl::IsInvalidArgument(  // data for rows with places
      Piece(*action.stream, Header(action, {action.rows[0]}), {&data, 1})));
  v1::RowsResponse header = Header(action, {action.rows[0]});
  header.set_placed(true);
  EXPECT_TRUE(
      absl::IsInvalidArgument(Piece(*action.stream, header, {&data, 1})));
  EXPECT_TRUE(absl::IsInvalidArgument(SayPlaced(action, {})));
  EXPECT_TRUE(absl::IsInvalidArgument(SayPlaced(action, {99})));
  EXPECT_TRUE(absl::IsInvalidArgument(SayEnded(action)));  // not withdrawn
  EXPECT_TRUE(
      absl::IsInvalidArgument(fetcher_->leases()
                                  .Opened(*action.stream, Says(), clock_.Now())
                                  .status()));
  fetcher_->leases().SharingClosed(*actions[1].stream);
  EXPECT_TRUE(Place(actions[0]).ok());
  EXPECT_TRUE(Place(actions[1]).ok());
  ExpectHeadIsRight();
  AddStep({10, 11, 12, 13});
  const auto bytes = Decide();
  ASSERT_EQ(bytes.size(), 1u);
  EXPECT_TRUE(absl::IsInvalidArgument(SayPlaced(bytes[0], {0})));
  EXPECT_TRUE(Answer(bytes[0]).ok());
  EXPECT_TRUE(Answer(bytes[0]).ok());  // twice: dropped
  ExpectHeadIsRight();
}

TEST_F(FetcherSharingTest, ForcedTransportWaitsForItAndFailsByName) {
  config_.transport = Transport::kShared;
  Begin(2);
  AddStep({0, 1, 2, 3});
  const auto open = Decide();
  ASSERT_EQ(open.size(), 1u);
  EXPECT_EQ(open[0].request_id, 0u);  // only opened
  Local(open[0]);
  const auto requests = Decide();
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_NE(requests[0].memory_id, 0u);
  EXPECT_TRUE(Place(requests[0]).ok());
  ExpectHeadIsRight();
  AddStep({10, 11, 12, 13});
  const auto other = Decide();
  ASSERT_EQ(other.size(), 1u);
  EXPECT_FALSE(
      *fetcher_->leases().Opened(*other[0].stream, v1::Opened(), clock_.Now()));
  EXPECT_TRUE(absl::IsFailedPrecondition(fetcher_->leases().transport_error()));
  EXPECT_THAT(
      std::string(Message(fetcher_->leases().transport_error())),
      HasSubstr("LEAT_TRANSPORT=shm: worker w1 at address1: it takes no"));
}

TEST_F(FetcherSharingTest, RefusedMemoryComesByBytes) {
  BeginLocal(1);
  AddStep({0, 1, 2, 3});
  Fetcher& fetcher = *fetcher_;
  const auto action = Decide()[0];
  EXPECT_TRUE(Place(action).ok());
  ExpectHeadIsRight();
  fetcher.leases().Returned(*action.stream, action.memory_id);
  fetcher.leases().Shared(*action.stream, action.memory_id,
                          ResourceExhausted("64"));
  AddStep({0, 1, 2, 3});
  const auto bytes = Decide();
  EXPECT_EQ(bytes[0].memory_id, 0u);
  EXPECT_TRUE(fetcher.leases().transport_error().ok());
}

}  // namespace
}  // namespace leat::client
