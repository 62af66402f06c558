// SPDX-License-Identifier: Apache-2.0
//
// The Fetcher: rows that are written into the consumer's memory. Workers here
// write when the test says so, also long after they should have.
#include <cstring>
#include <map>

#include "tests/client/fetcher_fixture.h"

namespace leat::client {
namespace {

using ::testing::HasSubstr;

// What a worker has mapped, and keeps as long as it likes.
struct Mapping {
  std::shared_ptr<BatchMemory> memory;
  void Write(uint32_t place, uint64_t value) const {
    std::memcpy(memory->data() + place * kRowBytes, &value, kRowBytes);
  }
};

class FetcherLendTest : public FetcherTest {
 protected:
  // Rows of one size from one pool, as in an iterator.
  void AddStep(std::vector<uint64_t> samples) {
    const auto rows = static_cast<uint32_t>(samples.size());
    if (!layout_) {
      layout_ = std::make_shared<BatchLayout>(schema_, rows);
      pool_ = BatchPool::Create(layout_->bytes, 8);
    }
    fetcher_->AddStep(
        std::make_shared<Step>(0, next_step_++, *RowMap::Create({}, rows),
                               samples, layout_, *pool_->Take()),
        clock_.Now());
    LendAll();
  }
  void LendAll() {
    for (const Loan& loan : fetcher_->TakeLoans()) {
      mappings_[loan.memory->id()] = {loan.memory};
      fetcher_->Lent(*loan.lane, loan.memory->id(), absl::OkStatus());
    }
  }
  // Decides, and does what an engine would: lends, and moves steps.
  std::vector<Action> Decide() {
    std::vector<Action> actions;
    for (bool more = true; more;) {
      std::vector<Action> decided = fetcher_->Decide(clock_.Now());
      LendAll();
      for (const auto& step : fetcher_->TakeHomeless()) {
        BatchPool::Buffer buffer = *pool_->Take();
        auto piece = fetcher_->Evacuate(step, &buffer);
        while (piece) {
          Copy(*piece);
          piece = fetcher_->FinishMove(*piece);
        }
      }
      for (Action& action : decided) actions.push_back(std::move(action));
      more = fetcher_->TakeDirty();
    }
    return actions;
  }
  static void Copy(const client::Piece& piece) {
    const Group& group = *piece.group;
    group.step->CopyRows(*group.source, *group.memory, group.indices,
                         group.mine);
  }
  v1::Opened Says() {
    v1::Opened opened;
    opened.set_lending_address("leat-test");
    opened.set_lending_secret("0123456789abcdef");
    return opened;
  }
  void Local(const Action& action) {
    ASSERT_TRUE(*fetcher_->Opened(*action.lane, Says()));
    fetcher_->LendingReady(*action.lane);
  }
  // A step by bytes makes the lanes known; then they lend.
  void BeginLocal(int workers, size_t rows = 4) {
    Begin(workers);
    std::vector<uint64_t> samples;
    for (size_t i = 0; i < rows; ++i)
      samples.push_back(i % static_cast<size_t>(workers) * kShardSize);
    AddStep(samples);
    for (const Action& action : Decide()) {
      EXPECT_EQ(action.memory_id, 0u);
      Local(action);
      EXPECT_TRUE(Answer(action).ok());
    }
    ExpectHeadIsRight();
    copies_ = fetcher_->counters().payload_copies;
    Decide();
  }
  uint64_t copies() const {
    return fetcher_->counters().payload_copies - copies_;
  }
  void WriteRows(const Action& action, uint64_t mask = 0) {
    for (size_t i = 0; i < action.places.size(); ++i)
      mappings_.at(action.memory_id)
          .Write(action.places[i], action.samples[i] ^ mask);
  }
  absl::Status SayPlaced(const Action& action, std::vector<uint32_t> rows) {
    v1::RowsResponse header = Header(action, rows);
    header.set_payload_bytes(0);
    header.set_placed(true);
    return Piece(*action.lane, header, {});
  }
  absl::Status Place(const Action& action) {
    WriteRows(action);
    return SayPlaced(action, action.rows);
  }
  absl::Status SayEnded(const Action& action) {
    v1::RowsResponse header;
    header.set_ask_id(action.ask_id);
    header.set_ask_ended(true);
    return Piece(*action.lane, header, {});
  }

  std::shared_ptr<BatchLayout> layout_;
  std::map<uint64_t, Mapping> mappings_;
  uint64_t copies_ = 0;
};

TEST_F(FetcherLendTest, RowsOfSeveralWorkersAreWrittenInPlaceWithoutACopy) {
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
  EXPECT_EQ(fetcher_->plane(), "shm");
}

TEST_F(FetcherLendTest, OneStepMayComeInPlaceAndByBytes) {
  BeginLocal(2);
  AddStep({0, 10, 1, 11});
  auto actions = Decide();
  ASSERT_EQ(actions.size(), 2u);
  fetcher_->LendingClosed(*actions[1].lane);  // this worker lends no longer
  EXPECT_TRUE(Place(actions[0]).ok());
  EXPECT_TRUE(Place(actions[1]).ok());  // what it had asked still counts
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
  EXPECT_EQ(fetcher_->counters().evacuated_steps, 0u);
  EXPECT_EQ(fetcher_->plane(), "shm+grpc");
}

TEST_F(FetcherLendTest, HedgedStepMovesAndTheStoppedWorkerWritesElsewhere) {
  BeginLocal(2);
  AddStep({0, 10, 1, 11});
  const auto first = Decide();
  EXPECT_TRUE(Place(first[1]).ok());
  fetcher_->set_waiting(true);
  clock_.Advance(config_.hedge_cold * 2);
  const auto hedge = Decide();
  ASSERT_EQ(hedge.size(), 1u);
  EXPECT_EQ(hedge[0].memory_id, 0u);  // a second answer comes by bytes
  EXPECT_EQ(fetcher_->quarantined(), 1u);
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
  EXPECT_EQ(copies(), 4u);  // two moved, two by bytes
  // Its buffer is kept until the lease has ended.
  const size_t in_use = pool_->in_use();
  Decide();
  EXPECT_TRUE(SayEnded(first[0]).ok());
  EXPECT_EQ(fetcher_->quarantined(), 0u);
  EXPECT_EQ(pool_->in_use(), in_use - 1);
}

TEST_F(FetcherLendTest, SecondAskIsByBytesAlsoWhereMemoryIsLent) {
  BeginLocal(2);
  for (int i = 0; i < 4; ++i) AddStep({0, 10, 1, 11});
  for (const Action& action : Decide())
    EXPECT_TRUE((action.memory_id ? Place(action) : Answer(action)).ok());
  for (int i = 0; i < 4; ++i) ExpectHeadIsRight();
  AddStep({0, 10, 1, 11});  // of the pool's four, which both have now
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

TEST_F(FetcherLendTest, LateAnswerIsCopiedFromTheOldMemory) {
  BeginLocal(2);
  AddStep({0, 10, 1, 11});
  const auto first = Decide();
  EXPECT_TRUE(Place(first[1]).ok());
  fetcher_->set_waiting(true);
  clock_.Advance(config_.hedge_cold * 2);
  ASSERT_EQ(Decide().size(), 1u);
  EXPECT_TRUE(Place(first[0]).ok());  // it wins after all
  ExpectHeadIsRight();
  EXPECT_EQ(fetcher_->quarantined(), 0u);
  EXPECT_EQ(copies(), 4u);
}

TEST_F(FetcherLendTest, LeasesOutliveTheStreamUntilTheSocketsEnd) {
  BeginLocal(2);
  AddStep({0, 10, 1, 11});
  const auto first = Decide();
  EXPECT_TRUE(Place(first[1]).ok());
  const std::shared_ptr<Lane> lane = first[0].lane;
  Close(first[0], Unavailable("connection reset"));
  EXPECT_TRUE(Fetcher::HasLeases(*lane));
  const auto again = Decide();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(fetcher_->quarantined(), 1u);
  WriteRows(first[0], ~0ull);
  EXPECT_NE(again[0].memory_id, first[0].memory_id);
  EXPECT_TRUE((again[0].memory_id ? Place(again[0]) : Answer(again[0])).ok());
  ExpectHeadIsRight();
  WriteRows(first[0], ~0ull);
  fetcher_->LendingClosed(*lane);
  EXPECT_EQ(fetcher_->quarantined(), 0u);
  EXPECT_FALSE(Fetcher::HasLeases(*lane));
}

TEST_F(FetcherLendTest, SocketsEndBeforeTheStreamsNeedsNoMove) {
  BeginLocal(2);
  AddStep({0, 10, 1, 11});
  const auto first = Decide();
  EXPECT_TRUE(Place(first[1]).ok());
  fetcher_->LendingClosed(*first[0].lane);
  Close(first[0], Unavailable("killed"));
  const auto again = Decide();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].memory_id, first[0].memory_id);  // w1, in the same place
  EXPECT_TRUE(Place(again[0]).ok());
  ExpectHeadIsRight();
  EXPECT_EQ(copies(), 0u);
}

TEST_F(FetcherLendTest, WorkerThatHoldsMemoryGetsNoMoreOfIt) {
  BeginLocal(1);
  AddStep({0, 1, 2, 3});
  const auto first = Decide();
  const std::shared_ptr<Lane> lane = first[0].lane;
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
  fetcher_->LendingClosed(*lane);
  AddStep({0, 1, 2, 3});
  EXPECT_NE(Decide()[0].memory_id, 0u);
}

TEST_F(FetcherLendTest, QuarantineIsBounded) {
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
  EXPECT_LE(fetcher_->quarantined(), 2u + 4u);
  for (int i = 0; i < 4; ++i) ExpectHeadIsRight();
  if (fetcher_->quarantined() >= 2) {
    AddStep({10, 20, 11, 21});
    for (const Action& action : Decide())
      if (!action.rows.empty()) {
        EXPECT_EQ(action.memory_id, 0u);
      }
  }
}

TEST_F(FetcherLendTest, ErrorOfAPlacedRowIsAskedElsewhere) {
  BeginLocal(2);
  AddStep({0, 1, 10, 11});
  const auto first = Decide();
  Fail(first[0], absl::StatusCode::kUnavailable, "draining");
  EXPECT_TRUE(Place(first[1]).ok());
  const auto again = Decide();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_TRUE((again[0].memory_id ? Place(again[0]) : Answer(again[0])).ok());
  ExpectHeadIsRight();
  EXPECT_EQ(fetcher_->counters().evacuated_steps, 0u);  // all answered
}

TEST_F(FetcherLendTest, WhatBreaksTheProtocolOfPlacesIsRefused) {
  BeginLocal(2);
  AddStep({0, 10, 1, 11});
  const auto actions = Decide();
  const Action& action = actions[0];
  const uint64_t data = 0;
  EXPECT_TRUE(absl::IsInvalidArgument(  // data for rows with places
      Piece(*action.lane, Header(action, {action.rows[0]}), {&data, 1})));
  v1::RowsResponse header = Header(action, {action.rows[0]});
  header.set_placed(true);
  EXPECT_TRUE(absl::IsInvalidArgument(Piece(*action.lane, header, {&data, 1})));
  EXPECT_TRUE(absl::IsInvalidArgument(SayPlaced(action, {})));
  EXPECT_TRUE(absl::IsInvalidArgument(SayPlaced(action, {99})));
  EXPECT_TRUE(absl::IsInvalidArgument(SayEnded(action)));  // not withdrawn
  EXPECT_TRUE(
      absl::IsInvalidArgument(fetcher_->Opened(*action.lane, Says()).status()));
  fetcher_->LendingClosed(*actions[1].lane);
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

TEST_F(FetcherLendTest, ForcedPlaneWaitsForItAndFailsByName) {
  config_.plane = Plane::kShared;
  Begin(2);
  AddStep({0, 1, 2, 3});
  const auto open = Decide();
  ASSERT_EQ(open.size(), 1u);
  EXPECT_EQ(open[0].ask_id, 0u);  // only opened
  Local(open[0]);
  const auto asks = Decide();
  ASSERT_EQ(asks.size(), 1u);
  EXPECT_NE(asks[0].memory_id, 0u);
  EXPECT_TRUE(Place(asks[0]).ok());
  ExpectHeadIsRight();
  AddStep({10, 11, 12, 13});
  const auto other = Decide();
  ASSERT_EQ(other.size(), 1u);
  EXPECT_FALSE(*fetcher_->Opened(*other[0].lane, v1::Opened()));
  EXPECT_TRUE(absl::IsFailedPrecondition(fetcher_->plane_error()));
  EXPECT_THAT(std::string(Message(fetcher_->plane_error())),
              HasSubstr("LEAT_PLANE=shm: worker w1 at address1: it takes no"));
}

TEST_F(FetcherLendTest, RefusedMemoryComesByBytes) {
  BeginLocal(1);
  AddStep({0, 1, 2, 3});
  Fetcher& fetcher = *fetcher_;
  const auto action = Decide()[0];
  EXPECT_TRUE(Place(action).ok());
  ExpectHeadIsRight();
  fetcher.Returned(*action.lane, action.memory_id);
  fetcher.Lent(*action.lane, action.memory_id, ResourceExhausted("64"));
  AddStep({0, 1, 2, 3});
  const auto bytes = Decide();
  EXPECT_EQ(bytes[0].memory_id, 0u);
  EXPECT_TRUE(fetcher.plane_error().ok());
}

// A worker of the simulation: what it may still write to.
struct Writer {
  Action action;
  bool withdrawn = false, closed = false, answered = false;
};

TEST_F(FetcherLendTest, RandomFaultsNeverLetAWorkerWriteIntoADeliveredBatch) {
  config_.max_row_errors = 60000;
  config_.row_timeout = std::chrono::hours(1000);
  config_.max_quarantined = 3;
  Begin(4);
  uint64_t random = 5;
  const auto draw = [&random](uint64_t n) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    return (random >> 33) % n;
  };
  std::vector<Writer> writers;
  std::deque<std::shared_ptr<Step>> delivered;
  uint64_t version = 1;
  int steps = 0;
  size_t most_quarantined = 0;
  for (int round = 0; round < 200000 && steps < 600; ++round) {
    while (fetcher_->num_steps() < 4) {
      std::vector<uint64_t> samples(16);
      for (uint64_t& sample : samples) sample = draw(kSamples);
      AddStep(samples);
    }
    fetcher_->set_waiting(draw(2) == 0);
    for (Action& action : Decide()) {
      if (action.rows.empty()) {
        for (Writer& writer : writers)
          if (writer.action.lane == action.lane &&
              writer.action.ask_id == action.ask_id)
            writer.withdrawn = true;
      } else if (!action.lane->closed) {
        // Workers 0 to 2 are on this host.
        if (action.lane->worker < 3 &&
            action.lane->lending.state == Lending::State::kUnknown)
          Local(action);
        writers.push_back({std::move(action)});
      }
    }
    most_quarantined = std::max(most_quarantined, fetcher_->quarantined());
    if (draw(100) == 0) SetWorkers(1 + static_cast<int>(draw(4)), ++version);
    clock_.Advance(milliseconds(draw(40)));
    // Whoever still may writes garbage, at any time.
    for (const Writer& writer : writers)
      if (writer.action.memory_id != 0 && !writer.answered)
        WriteRows(writer.action, ~0ull);
    if (writers.empty()) continue;
    const size_t pick = draw(writers.size());
    Writer& writer = writers[pick];
    const Action action = writer.action;
    const bool in_place = action.memory_id != 0;
    const auto forget = [&] {
      writers.erase(writers.begin() + static_cast<ptrdiff_t>(pick));
    };
    if (writer.closed) {  // the lending socket's end: of all its asks
      fetcher_->LendingClosed(*action.lane);
      std::erase_if(writers, [&](const Writer& other) {
        return other.action.lane == action.lane;
      });
    } else if (writer.withdrawn && in_place && draw(2) == 0) {
      EXPECT_TRUE(SayEnded(action).ok());
      forget();
    } else if (draw(10) == 0) {
      Close(action, Unavailable("killed"));
      const bool ended = draw(2) == 0;
      if (ended) fetcher_->LendingClosed(*action.lane);
      std::erase_if(writers, [&](Writer& other) {
        if (other.action.lane != action.lane) return false;
        other.closed = true;
        return ended || other.action.memory_id == 0;
      });
    } else if (draw(10) == 0) {
      Fail(action, absl::StatusCode::kUnavailable, "draining");
      forget();
    } else if (in_place) {
      EXPECT_TRUE(Place(action).ok());
      forget();
    } else {
      EXPECT_TRUE(Answer(action).ok());
      forget();
    }
    while (fetcher_->num_steps() > 0 && fetcher_->head().complete()) {
      delivered.push_back(fetcher_->PopHead(clock_.Now()));
      ++steps;
    }
    const auto check = [&](const Step& step) {
      for (size_t i = 0; i < step.samples.size(); ++i) {
        uint64_t sample = 0;
        std::memcpy(&sample, step.memory->buffer.data() + i * kRowBytes, 8);
        ASSERT_EQ(sample, step.samples[i]) << "step " << step.step;
      }
    };
    while (delivered.size() > 3) {
      check(*delivered.front());
      delivered.pop_front();
    }
    if (HasFatalFailure()) return;
  }
  EXPECT_GE(steps, 600);
  EXPECT_LE(most_quarantined, 3u + 4u);
  EXPECT_GT(fetcher_->counters().placed_rows, 100u);
  EXPECT_GT(fetcher_->counters().evacuated_steps, 10u);
}
}  // namespace
}  // namespace leat::client
