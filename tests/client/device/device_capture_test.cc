// SPDX-License-Identifier: Apache-2.0
//
// Batches' memory on a device whose trainer captures CUDA graphs, with the fake
// driver: the capture succeeds, and memory that a replay reads is not shared
// again.
#include <chrono>
#include <cstring>
#include <future>
#include <thread>
#include <vector>

#include "client/batch/batch_pool.h"
#include "client/device/device_memory.h"
#include "client/device/uploader.h"
#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/device/fake_driver.h"

namespace leat::client {
namespace {

using cuda::Result;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr size_t kBatchBytes = 5000;

class DeviceCaptureTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fake_.Reset();
    gpu_ = *Gpu::Open(0);
    stream_ = NewStream(cuda::kStreamNonBlocking);
    cuda::Context context = nullptr;
    {
      const Gpu::Scope scope(*gpu_);
      ASSERT_EQ(d().MemAlloc(&static_input_, kBatchBytes), Result::kSuccess);
      ASSERT_EQ(d().CtxGetCurrent(&context), Result::kSuccess);
    }
    // The trainer's thread has the context current, and is not relaxed.
    ASSERT_EQ(d().CtxPushCurrent(context), Result::kSuccess);
  }
  void TearDown() override {
    fake_.release_stream(stream_);
    {
      const Gpu::Scope scope(*gpu_);
      for (const FakeDriver::Graph graph : graphs_) fake_.graph_destroy(graph);
      for (const cuda::Stream stream : streams_) d().StreamDestroy(stream);
      d().MemFree(static_input_);
    }
    cuda::Context context = nullptr;
    EXPECT_EQ(d().CtxPopCurrent(&context), Result::kSuccess);
    gpu_.reset();
    fake_.ExpectClean();
  }
  const cuda::Driver& d() const { return gpu_->driver(); }
  cuda::Stream NewStream(cuda::Flags flags) {
    const Gpu::Scope scope(*gpu_);
    cuda::Stream stream = nullptr;
    EXPECT_EQ(d().StreamCreate(&stream, flags), Result::kSuccess);
    streams_.push_back(stream);
    return stream;
  }
  std::shared_ptr<BatchPool> Pool(size_t max_free) {
    return BatchPool::Create(kBatchBytes, max_free, [this](size_t bytes) {
      return DeviceMemory::Make(gpu_, bytes);
    });
  }
  static DeviceMemory& DeviceOf(const BatchPool::Buffer& buffer) {
    return static_cast<DeviceMemory&>(*buffer.memory());
  }
  void Begin() {
    ASSERT_EQ(fake_.begin_capture(stream_, cuda::CaptureMode::kGlobal),
              Result::kSuccess);
  }
  // Returns the graph, ready to launch.
  FakeDriver::Graph End() {
    FakeDriver::Graph graph = nullptr, exec = nullptr;
    EXPECT_EQ(fake_.end_capture(stream_, &graph), Result::kSuccess);
    if (graph == nullptr) return nullptr;
    EXPECT_EQ(fake_.graph_instantiate(&exec, graph, 0), Result::kSuccess);
    graphs_.insert(graphs_.end(), {graph, exec});
    return exec;
  }
  // The trainer's forward pass: the captured work reads the batch.
  void Copy(const BatchPool::Buffer& batch) {
    const Gpu::Scope scope(*gpu_);
    EXPECT_EQ(
        d().MemcpyDtoDAsync(static_input_,
                            reinterpret_cast<cuda::DevicePtr>(batch.data()),
                            kBatchBytes, stream_),
        Result::kSuccess);
  }
  // Replays the graph once, and returns the bytes that its kernels read.
  std::string Replayed(FakeDriver::Graph exec) {
    const Gpu::Scope scope(*gpu_);
    EXPECT_EQ(fake_.graph_launch(exec, stream_), Result::kSuccess);
    EXPECT_EQ(d().StreamSynchronize(stream_), Result::kSuccess);
    return {static_cast<const char*>(cuda::AsPointer(static_input_)),
            kBatchBytes};
  }
  // Writes as this GPU's worker, which has mapped the memory.
  static void Write(const BatchPool::Buffer& batch, char value) {
    std::memset(batch.data(), value, kBatchBytes);
  }
  // Runs more steps than the pool has memory, all with other bytes.
  void GoOn(BatchPool& pool) {
    for (int i = 0; i < 8; ++i) {
      absl::StatusOr<BatchPool::Buffer> batch = pool.Take();
      ASSERT_TRUE(batch.ok()) << batch.status();
      Write(*batch, static_cast<char>('A' + i));
      ASSERT_TRUE(DeviceOf(*batch).ReleaseAfter(nullptr).ok());
    }
  }

  FakeDriver& fake_ = FakeDriver::Get();
  std::shared_ptr<const Gpu> gpu_;
  cuda::Stream stream_ = nullptr;
  cuda::DevicePtr static_input_ = 0;
  std::vector<cuda::Stream> streams_;
  std::vector<FakeDriver::Graph> graphs_;
};

TEST_F(DeviceCaptureTest, ThreadsOfTheLibraryLeaveItAlone) {
  const std::shared_ptr<BatchPool> pool = Pool(2);
  auto uploader = *Uploader::Create(gpu_);
  const cuda::Stream other = NewStream(cuda::kStreamNonBlocking);
  Begin();
  std::thread([&] {  // the engine's thread
    for (int i = 0; i < 4; ++i) {
      auto a = pool->Take(), b = pool->Take();
      ASSERT_TRUE(a.ok() && b.ok());
      std::promise<absl::Status> done;
      const DeviceMemory& memory = DeviceOf(*a);
      uploader->Add(
          {{{memory.host_part()->data(), memory.data(), kBatchBytes}},
           [&](const absl::Status& status) { done.set_value(status); }});
      EXPECT_TRUE(done.get_future().get().ok());
      b->memory()->CopyFrom(*a->memory(), 0, kBatchBytes);
      EXPECT_TRUE(DeviceOf(*b).status().ok());
      EXPECT_TRUE(DeviceOf(*a).ReleaseAfter(other).ok());
      EXPECT_TRUE(DeviceMemory::Make(gpu_, kBatchBytes).ok());  // and freed
    }
    EXPECT_TRUE(Gpu::Open(0).ok());
  })
      .join();
  uploader.reset();
  EXPECT_EQ(gpu_->CaptureOf(stream_), Gpu::Capture::kYes);
  EXPECT_NE(End(), nullptr) << "it was not spoilt";
  auto mode = cuda::CaptureMode::kGlobal;
  ASSERT_EQ(d().ThreadExchangeStreamCaptureMode(&mode), Result::kSuccess);
  EXPECT_EQ(mode, cuda::CaptureMode::kGlobal) << "the thread's mode came back";
  EXPECT_EQ(pool->kept(), 0u);
}

TEST_F(DeviceCaptureTest, WhatIsHandedOutInOneIsNotSharedAgain) {
  const std::shared_ptr<BatchPool> pool = Pool(2);
  FakeDriver::Graph exec = nullptr;
  {
    auto batch = *pool->Take();
    Write(batch, 'x');
    Begin();
    DeviceOf(batch).UseOn(stream_);
    Copy(batch);
    exec = End();
    ASSERT_TRUE(DeviceOf(batch).ReleaseAfter(stream_).ok());
  }
  GoOn(*pool);
  EXPECT_TRUE(Replayed(exec) == std::string(kBatchBytes, 'x'));
  EXPECT_EQ(pool->kept(), 1u);
}

TEST_F(DeviceCaptureTest, WhatIsGivenBackInOneIsNotSharedAgain) {
  const std::shared_ptr<BatchPool> pool = Pool(2);
  FakeDriver::Graph exec = nullptr;
  {
    auto batch = *pool->Take();
    Write(batch, 'y');
    DeviceOf(batch).UseOn(stream_);
    Begin();
    Copy(batch);
    ASSERT_TRUE(DeviceOf(batch).ReleaseAfter(stream_).ok());
  }
  EXPECT_EQ(gpu_->CaptureOf(stream_), Gpu::Capture::kYes);
  exec = End();
  GoOn(*pool);
  EXPECT_TRUE(Replayed(exec) == std::string(kBatchBytes, 'y'));
  EXPECT_EQ(pool->kept(), 1u);
}

// A side stream that waits for the captured one is captured with it.
TEST_F(DeviceCaptureTest, AStreamThatHasJoinedItIsCaptured) {
  const std::shared_ptr<BatchPool> pool = Pool(2);
  const cuda::Stream side = NewStream(cuda::kStreamNonBlocking);
  cuda::Event event = nullptr;
  const Gpu::Scope scope(*gpu_);
  ASSERT_EQ(d().EventCreate(&event, cuda::kEventDisableTiming),
            Result::kSuccess);
  auto batch = *pool->Take();
  Begin();
  ASSERT_EQ(d().EventRecord(event, stream_), Result::kSuccess);
  ASSERT_EQ(d().StreamWaitEvent(side, event, 0), Result::kSuccess);
  ASSERT_TRUE(DeviceOf(batch).ReleaseAfter(side).ok());
  batch = BatchPool::Buffer();
  EXPECT_EQ(pool->kept(), 1u);
  EXPECT_NE(End(), nullptr);
  d().EventDestroy(event);
}

TEST_F(DeviceCaptureTest, ACaptureThatTheTrainerHasSpoiltIsOneTillItsEnd) {
  const std::shared_ptr<BatchPool> pool = Pool(2);
  auto batch = *pool->Take();
  Begin();
  {
    const Gpu::Scope scope(*gpu_);
    EXPECT_EQ(d().StreamSynchronize(stream_), Result::kCaptureUnsupported);
  }
  EXPECT_EQ(fake_.violations(), 1u) << "the trainer's own mistake";
  ASSERT_TRUE(DeviceOf(batch).ReleaseAfter(stream_).ok());
  batch = BatchPool::Buffer();
  FakeDriver::Graph graph = nullptr;
  EXPECT_EQ(fake_.end_capture(stream_, &graph), Result::kCaptureInvalidated);
  GoOn(*pool);
  EXPECT_EQ(fake_.violations(), 1u);
  fake_.forget_violations();
}

TEST_F(DeviceCaptureTest, CapturesThatEatTheWindowAreAnErrorThatSaysSo) {
  const std::shared_ptr<BatchPool> pool = Pool(2);
  Begin();
  for (int i = 0; i < 3; ++i) {
    auto batch = pool->Take();
    ASSERT_TRUE(batch.ok()) << batch.status();
    DeviceOf(*batch).UseOn(stream_);
    ASSERT_TRUE(DeviceOf(*batch).ReleaseAfter(stream_).ok());
  }
  EXPECT_NE(End(), nullptr);
  const absl::Status status = pool->Take().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(Message(status)),
              AllOf(HasSubstr("3 batches of 5000 bytes"), HasSubstr("of 2 "),
                    HasSubstr("captured into a CUDA graph"),
                    HasSubstr("Take batches outside of captures")));
}

TEST_F(DeviceCaptureTest, TheMemoryIsFreedAtTheEndAfterTheReplaysThatRun) {
  std::shared_ptr<BatchPool> pool = Pool(2);
  {
    auto batch = *pool->Take();
    Begin();
    Copy(batch);
    ASSERT_TRUE(DeviceOf(batch).ReleaseAfter(stream_).ok());
  }
  FakeDriver::Graph exec = End();
  fake_.hold_stream(stream_);
  ASSERT_EQ(fake_.graph_launch(exec, stream_), Result::kSuccess);
  EXPECT_EQ(fake_.count("mappings"), 1);
  std::thread closing([&] { pool.reset(); });
  // Freeing anything before this is a violation.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (fake_.calls("cuCtxSynchronize") == 0 &&
         std::chrono::steady_clock::now() < end)
    std::this_thread::yield();
  fake_.release_stream(stream_);
  closing.join();
  EXPECT_EQ(fake_.count("mappings"), 0);
}

// Querying and waiting would be allowed, queueing on the legacy stream is not.
TEST_F(DeviceCaptureTest, TheLegacyStreamThatACaptureBarsIsAskedLater) {
  const std::shared_ptr<BatchPool> pool = Pool(2);
  const cuda::Stream blocking = NewStream(0);
  std::byte* first = nullptr;
  ASSERT_EQ(fake_.begin_capture(blocking, cuda::CaptureMode::kGlobal),
            Result::kSuccess);
  {
    auto batch = *pool->Take();
    first = batch.data();
    ASSERT_TRUE(DeviceOf(batch).ReleaseAfter(nullptr).ok());
  }
  EXPECT_NE((*pool->Take()).data(), first);
  FakeDriver::Graph graph = nullptr;
  EXPECT_EQ(fake_.end_capture(blocking, &graph), Result::kSuccess);
  graphs_.push_back(graph);
  std::vector<BatchPool::Buffer> taken;
  bool again = false;
  for (int i = 0; i < 3 && !again; ++i) {
    const Gpu::Scope scope(*gpu_);
    d().StreamSynchronize(nullptr);
    taken.push_back(*pool->Take());
    again = taken.back().data() == first;
  }
  EXPECT_TRUE(again);
  EXPECT_EQ(pool->kept(), 0u);
}

// A driver older than CUDA 10.0 captures nothing.
TEST_F(DeviceCaptureTest, ADriverThatKnowsNoCapturesIsUsedAsBefore) {
  fake_.set("trainer", 0);
  auto old = std::make_shared<cuda::Driver>(d());
  old->StreamIsCapturing = nullptr;
  old->ThreadExchangeStreamCaptureMode = nullptr;
  const std::shared_ptr<const Gpu> gpu = *Gpu::Open(0, old);
  const auto made = DeviceMemory::Make(gpu, kBatchBytes);
  ASSERT_TRUE(made.ok()) << made.status();
  auto& memory = static_cast<DeviceMemory&>(**made);
  memory.UseOn(stream_);
  ASSERT_TRUE(memory.ReleaseAfter(stream_).ok());
  EXPECT_NE(memory.reuse(), BatchMemory::Reuse::kKept);
}

// The trainer's pass is still queued when the next batch is written.
TEST_F(DeviceCaptureTest, NobodyWritesWhereAHeldStreamHasStillToRead) {
  // So many that none is freed.
  const std::shared_ptr<BatchPool> pool = Pool(8);
  fake_.hold_stream(stream_);
  {
    auto batch = *pool->Take();
    EXPECT_EQ(fake_.reads(stream_, batch.data(), kBatchBytes), 1);
    ASSERT_TRUE(DeviceOf(batch).ReleaseAfter(stream_).ok());
  }
  GoOn(*pool);
  EXPECT_EQ(fake_.violations(), 0u);
  fake_.release_stream(stream_);
  {
    const Gpu::Scope scope(*gpu_);
    d().StreamSynchronize(stream_);
  }
  // The same, released on a stream that does not wait for the pass.
  fake_.hold_stream(stream_);
  const std::byte* first = nullptr;
  {
    auto batch = *pool->Take();
    first = batch.data();
    EXPECT_EQ(fake_.reads(stream_, first, kBatchBytes), 1);
    ASSERT_TRUE(DeviceOf(batch).ReleaseAfter(nullptr).ok());
  }
  const Gpu::Scope scope(*gpu_);
  d().StreamSynchronize(nullptr);
  std::vector<BatchPool::Buffer> taken;
  while (taken.empty() || (taken.back().data() != first && taken.size() < 12))
    taken.push_back(*pool->Take());
  Write(taken.back(), '!');
  fake_.release_stream(stream_);
  d().StreamSynchronize(stream_);
  EXPECT_EQ(fake_.violations(), 1u) << "the driver notices it";
  fake_.forget_violations();
}

}  // namespace
}  // namespace leat::client
