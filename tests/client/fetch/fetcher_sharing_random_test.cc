// SPDX-License-Identifier: Apache-2.0
//
// The Fetcher: workers that write in place, and fail in every way at random.
#include <deque>

#include "tests/client/fetch/fetcher_sharing_fixture.h"

namespace leat::client {
namespace {

// A worker of the simulation, and the memory that it may still write to.
struct Writer {
  Action action;
  bool withdrawn = false, closed = false, answered = false;
};

TEST_F(FetcherSharingTest,
       RandomFaultsNeverLetAWorkerWriteIntoADeliveredBatch) {
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
          if (writer.action.stream == action.stream &&
              writer.action.request_id == action.request_id)
            writer.withdrawn = true;
      } else if (!action.stream->closed) {
        // Workers 0 to 2 are on this host.
        if (action.stream->worker < 3 &&
            action.stream->sharing.state == StreamSharing::State::kUnknown)
          Local(action);
        writers.push_back({std::move(action)});
      }
    }
    most_quarantined =
        std::max(most_quarantined, fetcher_->leases().quarantined());
    // Also tables without any worker.
    if (draw(100) == 0) SetWorkers(static_cast<int>(draw(5)), ++version);
    clock_.Advance(milliseconds(draw(40)));
    // A worker that may still write writes garbage, at any time.
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
    if (writer.closed) {  // the memory socket's end, for all its requests
      fetcher_->leases().SharingClosed(*action.stream);
      std::erase_if(writers, [&](const Writer& other) {
        return other.action.stream == action.stream;
      });
    } else if (writer.withdrawn && in_place && draw(2) == 0) {
      EXPECT_TRUE(SayEnded(action).ok());
      forget();
    } else if (draw(10) == 0) {
      Close(action, Unavailable("killed"));
      const bool ended = draw(2) == 0;
      if (ended) fetcher_->leases().SharingClosed(*action.stream);
      std::erase_if(writers, [&](Writer& other) {
        if (other.action.stream != action.stream) return false;
        other.closed = true;
        return ended || other.action.memory_id == 0;
      });
    } else if (draw(10) == 0) {
      Fail(action, absl::StatusCode::kUnavailable, "draining");
      forget();
    } else if (draw(20) == 0) {
      EXPECT_TRUE(FailAs(action, v1::FAULT_OBJECT, absl::StatusCode::kNotFound,
                         "not there", action.samples[0])
                      .ok());
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
  EXPECT_GT(fetcher_->counters().moved_steps, 10u);
}

}  // namespace
}  // namespace leat::client
