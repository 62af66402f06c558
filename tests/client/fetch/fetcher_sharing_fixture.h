// SPDX-License-Identifier: Apache-2.0
//
// FetcherSharingTest: a FetcherTest whose workers write into the consumer's
// memory when the test says so, also long after they should have.
#pragma once

#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "tests/client/fetch/fetcher_fixture.h"

namespace leat::client {

// The memory that a worker has mapped, and keeps as long as it likes.
struct Mapping {
  std::shared_ptr<BatchMemory> memory;
  void Write(uint32_t slot, uint64_t value) const {
    std::memcpy(memory->data() + slot * kRowBytes, &value, kRowBytes);
  }
};

class FetcherSharingTest : public FetcherTest {
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
    ShareAll();
  }
  void ShareAll() { Share(fetcher_->decided().offers); }
  void Share(const std::vector<Offer>& offers) {
    for (const Offer& offer : offers) {
      mappings_[offer.memory->id()] = {offer.memory};
      fetcher_->leases().Shared(*offer.stream, offer.memory->id(),
                                absl::OkStatus());
    }
  }
  // Decides, and acts as an engine would: shares memory, and moves steps.
  std::vector<Action> Decide() {
    std::vector<Action> actions;
    for (bool more = true; more;) {
      const std::vector<Action> decided = FetcherTest::Decide();
      Share(decided_.offers);
      MoveSteps();
      actions.insert(actions.end(), decided.begin(), decided.end());
      more = fetcher_->TakeDirty();
    }
    return actions;
  }
  v1::Opened Says() {
    v1::Opened opened;
    opened.set_memory_address("leat-test");
    opened.set_memory_secret("0123456789abcdef");
    return opened;
  }
  void Local(const Action& action) {
    ASSERT_TRUE(
        *fetcher_->leases().Opened(*action.stream, Says(), clock_.Now()));
    fetcher_->leases().SharingReady(*action.stream);
  }
  // A step as bytes makes the streams known; then they share memory.
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
    for (size_t i = 0; i < action.slots.size(); ++i)
      mappings_.at(action.memory_id)
          .Write(action.slots[i], action.samples[i] ^ mask);
  }
  absl::Status SayPlaced(const Action& action, std::vector<uint32_t> rows) {
    v1::RowsResponse header = Header(action, rows);
    header.set_payload_bytes(0);
    header.set_placed(true);
    return Piece(*action.stream, header, {});
  }
  absl::Status Place(const Action& action) {
    WriteRows(action);
    return SayPlaced(action, action.rows);
  }
  absl::Status SayEnded(const Action& action) {
    v1::RowsResponse header;
    header.set_request_id(action.request_id);
    header.set_request_ended(true);
    return Piece(*action.stream, header, {});
  }

  std::shared_ptr<BatchLayout> layout_;
  std::map<uint64_t, Mapping> mappings_;
  uint64_t copies_ = 0;
};

}  // namespace leat::client
