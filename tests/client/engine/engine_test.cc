// SPDX-License-Identifier: Apache-2.0
#include "client/engine/engine.h"

#include <poll.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <latch>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "client/engine/memory_sharer.h"
#include "core/clock.h"
#include "core/mutex.h"
#include "core/status.h"
#include "leat/v1/shared_memory.pb.h"
#include "rpc/wire/memory_socket.h"
#include "tests/client/fetch/fetcher_fixture.h"

namespace leat::client {
namespace {

// A worker that takes requests and never answers. Its stream ends on its own
// thread, which keeps the handler until `release`.
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
    if (request.has_request() && !told_.exchange(true))
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
  options.datasets = {{"d", *ShardTable::Uniform(kSamples, kShardSize)}};
  options.steps_per_epoch = 10;
  options.plan = [](uint64_t, uint64_t, std::span<uint64_t> samples) {
    std::fill(samples.begin(), samples.end(), 3);
  };
  options.map = *RowMap::Create({}, kRows);
  options.layout = std::make_shared<BatchLayout>(schema, kRows);
  options.pool = BatchPool::Create(options.layout->bytes, 4);
  options.table = *AssignmentTable::FromProto(
      MakeAssignment(2), "d", options.datasets[0].shards.num_shards());
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
    std::shared_ptr<Engine> engine = *Engine::Start(std::move(options));
    latches->asked.wait();
    engine->Stop();
    engine.reset();
    EXPECT_TRUE(pool.expired()) << i;
    latches->release.count_down();
  }
}

// While it lives no thread can start: none gets a stack that large.
class NoThreads {
 public:
  NoThreads() {
    pthread_attr_t huge;
    EXPECT_EQ(pthread_getattr_default_np(&before_), 0);
    EXPECT_EQ(pthread_attr_init(&huge), 0);
    EXPECT_EQ(pthread_attr_setstacksize(&huge, size_t{1} << 62), 0);
    EXPECT_EQ(pthread_setattr_default_np(&huge), 0);
    pthread_attr_destroy(&huge);
  }
  ~NoThreads() {
    EXPECT_EQ(pthread_setattr_default_np(&before_), 0);
    pthread_attr_destroy(&before_);
  }

 private:
  pthread_attr_t before_;
};

TEST(Engine, WithoutAThreadIsAnErrorAndHoldsNothing) {
  EngineOptions options = OptionsFor(std::make_shared<SilentLink::Latches>());
  const std::weak_ptr<BatchPool> pool = options.pool;
  {
    const NoThreads none;
    const auto engine = Engine::Start(std::move(options));
    EXPECT_TRUE(absl::IsResourceExhausted(engine.status())) << engine.status();
    EXPECT_NE(std::string(Message(engine.status())).find("engine"),
              std::string::npos);
  }
  EXPECT_TRUE(pool.expired());
}

TEST(Engine, WithoutAThreadForItsSourceIsAnErrorToo) {
  EngineOptions options = OptionsFor(std::make_shared<SilentLink::Latches>());
  struct Nothing : SampleSource {
    absl::StatusOr<std::vector<SampleField>> Read(uint64_t, uint64_t) override {
      return NotFound("nothing");
    }
  };
  options.feed = std::make_shared<Feed>(std::vector<ValueType>(), "s");
  options.source = std::make_shared<Nothing>();
  const NoThreads none;
  const auto engine = Engine::Start(std::move(options));
  EXPECT_TRUE(absl::IsResourceExhausted(engine.status())) << engine.status();
}

// Collects a MemorySharer's events, by name.
class Told {
 public:
  void Add(const std::string& what) {
    MutexLock lock(&mu_);
    told_.push_back(what);
    changed_.NotifyAll();
  }
  // Waits until there are this many, or for half a minute.
  std::vector<std::string> Await(size_t count) {
    const MonotonicTime deadline =
        Clock::Real().Now() + std::chrono::seconds(30);
    MutexLock lock(&mu_);
    while (told_.size() < count && changed_.WaitUntil(&mu_, deadline)) {
    }
    return told_;
  }

 private:
  Mutex mu_;
  CondVar changed_;
  std::vector<std::string> told_ ABSL_GUARDED_BY(mu_);
};

// The system has no memory to receive a message: the worker may still write.
TEST(MemorySharer, LeasesEndWithTheWorkerAndNotWithAnErrorOfThisSide) {
  for (const bool worker_ends : {true, false}) {
    const std::string address = fmt::format("leat-sharer-{}", getpid());
    auto listener = rpc::ListenMemorySocket(address, 1);
    ASSERT_TRUE(listener.ok()) << listener.status();
    Told told;
    MemorySharer::Config config;
    if (!worker_ends) config.end_timeout = std::chrono::milliseconds(1);
    std::atomic<int> received = 0;
    config.receive = [&](int socket, v1::ShareReply* reply, Fd* fd) {
      if (received++ > 0) return Internal("receive: no buffer space");
      return rpc::ReceivePacket(socket, reply, fd,
                                Clock::Real().Now() + std::chrono::hours(1));
    };
    MemorySharer sharer(
        config, nullptr,
        {.ready = [&](const MemorySharer::Key&) { told.Add("ready"); },
         .failed = [&](const MemorySharer::Key&,
                       const absl::Status&) { told.Add("failed"); },
         .shared = [](const MemorySharer::Key&, uint64_t,
                      const absl::Status&) {},
         .returned = [](const MemorySharer::Key&, uint64_t) {},
         .closed = [&](const MemorySharer::Key&) { told.Add("closed"); }});
    ASSERT_TRUE(sharer.Open(std::make_shared<int>(), address, "secret").ok());
    pollfd waits = {.fd = listener->get(), .events = POLLIN, .revents = 0};
    ASSERT_EQ(poll(&waits, 1, 30'000), 1);
    auto worker = rpc::AcceptMemorySocket(listener->get());
    ASSERT_TRUE(worker.ok()) << worker.status();
    const MonotonicTime later = Clock::Real().Now() + std::chrono::seconds(30);
    v1::ShareRequest hello;
    Fd none;
    ASSERT_TRUE(rpc::ReceivePacket(worker->get(), &hello, &none, later).ok());
    ASSERT_TRUE(
        rpc::SendPacket(worker->get(), v1::ShareReply(), -1, later).ok());
    // The worker receives the end of this side, and closes in its time.
    EXPECT_TRUE(absl::IsUnavailable(
        rpc::ReceivePacket(worker->get(), &hello, &none, later)));
    if (worker_ends) {
      EXPECT_EQ(told.Await(2), (std::vector<std::string>{"ready", "failed"}));
      worker->Close();
    }
    EXPECT_EQ(told.Await(3),
              (std::vector<std::string>{"ready", "failed", "closed"}));
  }
}

TEST(MemorySharer, WithoutAThreadIsAnErrorAndTellsNothing) {
  int told = 0;
  const auto tell = [&](const MemorySharer::Key&) { ++told; };
  MemorySharer sharer({}, nullptr,
                      {.ready = tell,
                       .failed = [&](const auto&, const auto&) { ++told; },
                       .closed = tell});
  const auto key = std::make_shared<int>(1);
  {
    const NoThreads none;
    EXPECT_TRUE(
        absl::IsResourceExhausted(sharer.Open(key, "leat-test", "secret")));
    sharer.Close(key);
    sharer.Sweep();
  }
  sharer.Stop();
  EXPECT_EQ(told, 0);
}

// While it lives this process gets no further descriptor.
class NoDescriptors {
 public:
  NoDescriptors() {
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    const rlimit none{.rlim_cur = 0, .rlim_max = before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  }
  ~NoDescriptors() { EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before_), 0); }

 private:
  rlimit before_{};
};

// Its thread would sleep for an hour, and Stop would wait for it.
TEST(MemorySharer, WithoutADescriptorToWakeItsThreadItHasNone) {
  std::optional<MemorySharer> sharer;
  {
    const NoDescriptors none;
    sharer.emplace(MemorySharer::Config(), nullptr, MemorySharer::Events());
  }
  const absl::Status opened =
      sharer->Open(std::make_shared<int>(1), "leat-test", "secret");
  EXPECT_TRUE(absl::IsResourceExhausted(opened)) << opened;
  sharer->Stop();
}

// A worker that answers every row at once; `ended` counts streams that the
// consumer ended.
class PromptLink final : public Link {
 public:
  PromptLink(std::shared_ptr<LinkHandler> handler,
             std::shared_ptr<std::latch> ended)
      : handler_(std::move(handler)), ended_(std::move(ended)) {}
  ~PromptLink() override { Cancel(); }

  absl::Status Send(const v1::RowsRequest& request) override {
    if (!request.has_request()) return absl::OkStatus();
    v1::RowsResponse header;
    header.set_request_id(request.request().request_id());
    header.set_group_id(request.request().request_id());
    *header.mutable_rows() = request.request().rows();
    header.set_payload_bytes(
        static_cast<uint64_t>(request.request().rows_size()) * kRowBytes);
    auto data = std::make_shared<std::vector<std::byte>>(
        static_cast<size_t>(request.request().rows_size()) * kRowBytes);
    const auto frame = rpc::EncodeRows(header, *data, data);
    const auto decoded = rpc::DecodeRows(frame);
    return decoded.ok() ? handler_->OnRows(*decoded) : decoded.status();
  }
  void Cancel() override {
    if (cancelled_.exchange(true)) return;
    std::thread([handler = std::move(handler_), ended = ended_] {
      handler->OnClosed(Cancelled("the stream was cancelled"));
      if (!ended->try_wait()) ended->count_down();
    }).detach();
  }

 private:
  std::shared_ptr<LinkHandler> handler_;
  const std::shared_ptr<std::latch> ended_;
  std::atomic<bool> cancelled_ = false;
};

TEST(Engine, EndsStreamsThatAreIdleAndOpensThemAgain) {
  EngineOptions options = OptionsFor(nullptr);
  const auto first = std::make_shared<std::latch>(1);
  const auto second = std::make_shared<std::latch>(1);
  int opened = 0;
  options.links = [&](const std::string&,
                      std::shared_ptr<LinkHandler> handler) {
    return std::make_shared<PromptLink>(std::move(handler),
                                        ++opened == 1 ? first : second);
  };
  options.window = 1;
  options.fetch.stream_idle = std::chrono::milliseconds(30);
  const auto engine = *Engine::Start(std::move(options));
  const MonotonicTime deadline = Clock::Real().Now() + std::chrono::seconds(30);
  EXPECT_TRUE(engine->Next(deadline).ok());
  first->wait();  // the second step is not taken for a while
  EXPECT_TRUE(engine->Next(deadline).ok());
  EXPECT_TRUE(engine->Next(deadline).ok());
  EXPECT_EQ(engine->stats().workers[0].failures, 0u);
  engine->Stop();
  EXPECT_GE(opened, 2);
}

// Waits until the deadline for a step that never comes.
void WaitInNext(Engine& engine) {
  constexpr auto kWait = std::chrono::milliseconds(20);
  EXPECT_TRUE(absl::IsDeadlineExceeded(
      engine.Next(Clock::Real().Now() + kWait).status()));
}

TEST(Engine, CountsWhatNextWaits) {
  const auto latches = std::make_shared<SilentLink::Latches>();
  const std::shared_ptr<Engine> engine = *Engine::Start(OptionsFor(latches));
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
  const std::shared_ptr<Engine> engine = *Engine::Start(std::move(options));
  WaitInNext(*engine);
  EXPECT_EQ(engine->stats().waited, Duration(0));
  engine->EndWait(true);  // the trainer took a batch that was ready
  EXPECT_EQ(engine->stats().waited, Duration(0));
  EXPECT_EQ(engine->stats().wait.count(), 1u);
  engine->BeginWait();
  WaitInNext(*engine);
  EXPECT_GE(engine->stats().waited, std::chrono::milliseconds(20));
  engine->EndWait(false);  // interrupted by a signal
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
