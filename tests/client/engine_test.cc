// SPDX-License-Identifier: Apache-2.0
#include "client/engine.h"

#include <algorithm>
#include <atomic>
#include <latch>
#include <memory>
#include <thread>

#include "core/status.h"
#include "tests/client/fetcher_fixture.h"

namespace leat::client {
namespace {

// A worker that takes asks and never answers. Its stream ends on a thread of
// its own, which has not let go of the handler before `release` says so.
class SilentLink final : public Link {
 public:
  struct Latches {
    std::latch asked{1}, release{1};
  };
  SilentLink(std::shared_ptr<LinkHandler> handler,
             std::shared_ptr<Latches> latches)
      : handler_(std::move(handler)), latches_(std::move(latches)) {}
  ~SilentLink() override { Cancel(); }

  absl::Status Send(const v1::RowsRequest& request) override {
    if (request.has_ask() && !told_.exchange(true))
      latches_->asked.count_down();
    return absl::OkStatus();
  }
  void Cancel() override {
    if (cancelled_.exchange(true)) return;
    std::thread([handler = std::move(handler_), latches = latches_] {
      handler->OnClosed(Cancelled("the stream was cancelled"));
      latches->release.wait();
    }).detach();
  }

 private:
  std::shared_ptr<LinkHandler> handler_;
  const std::shared_ptr<Latches> latches_;
  std::atomic<bool> told_ = false, cancelled_ = false;
};

EngineOptions OptionsFor(std::shared_ptr<SilentLink::Latches> latches) {
  constexpr uint32_t kRows = 8;
  const BatchSchema schema{{{"x", DType::kInt64, {}, kRowBytes}}};
  EngineOptions options;
  options.job = "train";
  options.dataset_id = "d";
  options.shards = *ShardTable::Uniform(kSamples, kShardSize);
  options.steps_per_epoch = 10;
  options.plan = [](uint64_t, uint64_t, std::span<uint64_t> samples) {
    std::fill(samples.begin(), samples.end(), 3);
  };
  options.map = *RowMap::Create({}, kRows);
  options.layout = std::make_shared<BatchLayout>(schema, kRows);
  options.pool = BatchPool::Create(options.layout->bytes, 4);
  options.table = *AssignmentTable::FromProto(MakeAssignment(2), "d",
                                              options.shards.num_shards());
  options.links = [latches](const std::string&,
                            std::shared_ptr<LinkHandler> handler) {
    return std::make_shared<SilentLink>(std::move(handler), latches);
  };
  return options;
}

TEST(Engine, ThatIsStoppedHoldsNoMemoryThroughALinkThatStillEnds) {
  for (int i = 0; i < 200; ++i) {
    const auto latches = std::make_shared<SilentLink::Latches>();
    EngineOptions options = OptionsFor(latches);
    const std::weak_ptr<BatchPool> pool = options.pool;
    std::shared_ptr<Engine> engine = Engine::Start(std::move(options));
    latches->asked.wait();
    engine->Stop();
    engine.reset();
    EXPECT_TRUE(pool.expired()) << i;
    latches->release.count_down();
  }
}

// Waits until the deadline for a step that never comes.
void WaitInNext(Engine& engine) {
  constexpr auto kWait = std::chrono::milliseconds(20);
  EXPECT_TRUE(absl::IsDeadlineExceeded(
      engine.Next(Clock::Real().Now() + kWait).status()));
}

TEST(Engine, CountsWhatNextWaits) {
  const auto latches = std::make_shared<SilentLink::Latches>();
  const std::shared_ptr<Engine> engine = Engine::Start(OptionsFor(latches));
  WaitInNext(*engine);
  EXPECT_GE(engine->stats().waited, std::chrono::milliseconds(20));
  engine->BeginWait();
  engine->EndWait(true);
  EXPECT_EQ(engine->stats().wait.count(), 0u) << "no step was handed out";
  engine->Stop();
  latches->release.count_down();
}

TEST(Engine, ThatWorksAheadCountsWhatTheTrainerWaits) {
  const auto latches = std::make_shared<SilentLink::Latches>();
  EngineOptions options = OptionsFor(latches);
  options.ahead = true;
  const std::shared_ptr<Engine> engine = Engine::Start(std::move(options));
  WaitInNext(*engine);
  EXPECT_EQ(engine->stats().waited, Duration(0));
  engine->EndWait(true);  // the trainer took a batch that was there
  EXPECT_EQ(engine->stats().waited, Duration(0));
  EXPECT_EQ(engine->stats().wait.count(), 1u);
  engine->BeginWait();
  WaitInNext(*engine);
  EXPECT_GE(engine->stats().waited, std::chrono::milliseconds(20));
  engine->EndWait(false);  // a signal
  EXPECT_EQ(engine->stats().wait.count(), 1u);
  engine->BeginWait();
  engine->EndWait(true);
  const EngineStats stats = engine->stats();
  EXPECT_GE(stats.waited, std::chrono::milliseconds(20));
  EXPECT_GE(stats.wait.max(), std::chrono::milliseconds(20));
  EXPECT_EQ(stats.wait.count(), 2u);
  WaitInNext(*engine);
  EXPECT_EQ(engine->stats().waited, stats.waited);
  engine->Stop();
  latches->release.count_down();
}

}  // namespace
}  // namespace leat::client
