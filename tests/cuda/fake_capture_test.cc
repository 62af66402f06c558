// SPDX-License-Identifier: Apache-2.0
//
// Tests what other tests rely on in the fake driver about captures and races:
// which calls invalidate a capture, what a graph does when it is replayed, and
// which writes are violations.
#include <cstring>
#include <thread>
#include <utility>

#include "cuda/driver.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cuda/fake_library.h"

namespace leat::cuda {
namespace {

using ::testing::HasSubstr;

class FakeCapture : public ::testing::Test {
 protected:
  void SetUp() override {
    driver_ = *LoadDriver(fake_.search);
    ASSERT_EQ(d().Init(0), Result::kSuccess);
    Context context = nullptr;
    ASSERT_EQ(d().DevicePrimaryCtxRetain(&context, 0), Result::kSuccess);
    ASSERT_EQ(d().CtxSetCurrent(context), Result::kSuccess);
    for (Stream* stream : {&a_, &b_})
      ASSERT_EQ(d().StreamCreate(stream, kStreamNonBlocking), Result::kSuccess);
    ASSERT_EQ(d().EventCreate(&event_, kEventDisableTiming), Result::kSuccess);
    for (DevicePtr* memory : {&from_, &to_})
      ASSERT_EQ(d().MemAlloc(memory, kBytes), Result::kSuccess);
  }
  void TearDown() override {
    fake_.release_stream(a_);
    fake_.release_stream(b_);
    {
      const RelaxedCapture relaxed(d());
      d().StreamSynchronize(a_);
      d().StreamSynchronize(b_);
    }
    fake_.reset();
    d().CtxSetCurrent(nullptr);
  }
  const Driver& d() const { return *driver_; }
  CaptureStatus StatusOf(Stream stream) {
    CaptureStatus status = CaptureStatus::kNone;
    EXPECT_EQ(d().StreamIsCapturing(stream, &status), Result::kSuccess);
    return status;
  }
  // Returns the result of `call` on another thread, in this mode.
  template <class Call>
  Result Elsewhere(CaptureMode mode, Call call) {
    Result result = Result::kUnknown;
    std::thread([&] {
      d().CtxSetCurrent(
          reinterpret_cast<Context>(uintptr_t{0x100}));  // of device 0
      EXPECT_EQ(d().ThreadExchangeStreamCaptureMode(&mode), Result::kSuccess);
      EXPECT_EQ(mode, CaptureMode::kGlobal) << "what a thread begins with";
      result = call();
    }).join();
    return result;
  }

  static constexpr size_t kBytes = 4096;
  leat::testing::FakeCuda fake_;
  std::shared_ptr<const Driver> driver_;
  Stream a_ = nullptr, b_ = nullptr;
  Event event_ = nullptr;
  DevicePtr from_ = 0, to_ = 0;
};

TEST_F(FakeCapture, UnsafeCallsOfOtherThreadsSpoilAGlobalCapture) {
  for (const CaptureMode mode :
       {CaptureMode::kGlobal, CaptureMode::kThreadLocal, CaptureMode::kRelaxed})
    for (const CaptureMode other :
         {CaptureMode::kGlobal, CaptureMode::kRelaxed}) {
      ASSERT_EQ(fake_.begin_capture(a_, mode), Result::kSuccess);
      const bool spoils =
          mode == CaptureMode::kGlobal && other == CaptureMode::kGlobal;
      const Result result =
          Elsewhere(other, [&] { return d().EventQuery(event_); });
      EXPECT_EQ(result,
                spoils ? Result::kCaptureUnsupported : Result::kSuccess);
      EXPECT_EQ(StatusOf(a_),
                spoils ? CaptureStatus::kInvalidated : CaptureStatus::kActive);
      leat::testing::FakeCuda::Graph graph = nullptr;
      EXPECT_EQ(fake_.end_capture(a_, &graph),
                spoils ? Result::kCaptureInvalidated : Result::kSuccess);
      EXPECT_EQ(StatusOf(a_), CaptureStatus::kNone);
      if (graph != nullptr) fake_.graph_destroy(graph);
    }
  EXPECT_THAT(fake_.FirstViolation(),
              HasSubstr("cuEventQuery: a call that spoils the capture"));
  EXPECT_EQ(fake_.violations(), 1u);
}

TEST_F(FakeCapture, EveryCallThatWaitsOrMakesMemoryIsUnsafe) {
  fake_.set("trainer", 1);  // as if a capture were always in progress
  int host[16];
  DevicePtr memory = 0;
  void* pinned = nullptr;
  AllocationHandle handle = 0;
  AllocationProperties properties;
  properties.handle_types = HandleType::kPosixFileDescriptor;
  const Result results[] = {
      d().EventQuery(event_),
      d().EventSynchronize(event_),
      d().StreamSynchronize(a_),
      d().StreamQuery(a_),
      d().MemAlloc(&memory, 64),
      d().MemFree(from_),
      d().MemHostAlloc(&pinned, 64, 0),
      d().MemHostRegister(host, sizeof host, 0),
      d().MemHostUnregister(host),
      d().CtxSynchronize(),
      d().MemCreate(&handle, 2 << 20, &properties, 0),
  };
  for (const Result result : results)
    EXPECT_EQ(result, Result::kCaptureUnsupported);
  EXPECT_EQ(fake_.violations(), std::size(results));
  const RelaxedCapture relaxed(d());
  EXPECT_EQ(d().EventQuery(event_), Result::kSuccess);
  EXPECT_EQ(d().StreamSynchronize(a_), Result::kSuccess);
}

TEST_F(FakeCapture, WhatIsCapturedIsNeverWaitedForInAnyMode) {
  const RelaxedCapture relaxed(d());
  for (int i = 0; i < 4; ++i) {
    ASSERT_EQ(fake_.begin_capture(a_, CaptureMode::kRelaxed), Result::kSuccess);
    ASSERT_EQ(d().EventRecord(event_, a_), Result::kSuccess);
    const Result result = i == 0   ? d().EventQuery(event_)
                          : i == 1 ? d().EventSynchronize(event_)
                          : i == 2 ? d().StreamSynchronize(a_)
                                   : d().CtxSynchronize();
    EXPECT_EQ(result,
              i < 2 ? Result::kCapturedEvent : Result::kCaptureUnsupported);
    EXPECT_EQ(StatusOf(a_), CaptureStatus::kInvalidated);
    EXPECT_EQ(d().MemsetD8Async(to_, 1, 8, a_), Result::kCaptureInvalidated);
    leat::testing::FakeCuda::Graph graph = nullptr;
    EXPECT_EQ(fake_.end_capture(a_, &graph), Result::kCaptureInvalidated);
  }
  // Outside of a capture an event is as before.
  EXPECT_EQ(d().EventRecord(event_, a_), Result::kSuccess);
  EXPECT_EQ(d().EventSynchronize(event_), Result::kSuccess);
}

TEST_F(FakeCapture, TheLegacyStreamMayNotDependOnACapture) {
  Stream blocking = nullptr;
  ASSERT_EQ(d().StreamCreate(&blocking, 0), Result::kSuccess);
  ASSERT_EQ(fake_.begin_capture(blocking, CaptureMode::kGlobal),
            Result::kSuccess);
  CaptureStatus status;
  EXPECT_EQ(d().StreamIsCapturing(nullptr, &status), Result::kCaptureImplicit);
  EXPECT_EQ(StatusOf(blocking), CaptureStatus::kActive) << "asking is allowed";
  EXPECT_EQ(d().EventRecord(event_, nullptr), Result::kCaptureImplicit);
  EXPECT_EQ(StatusOf(blocking), CaptureStatus::kInvalidated);
  leat::testing::FakeCuda::Graph graph = nullptr;
  EXPECT_EQ(fake_.end_capture(blocking, &graph), Result::kCaptureInvalidated);
  EXPECT_EQ(d().EventRecord(event_, nullptr), Result::kSuccess);
}

TEST_F(FakeCapture, AReplayReadsTheMemoryAgain) {
  ASSERT_EQ(d().MemsetD8Async(from_, 1, kBytes, a_), Result::kSuccess);
  ASSERT_EQ(d().StreamSynchronize(a_), Result::kSuccess);
  ASSERT_EQ(fake_.begin_capture(a_, CaptureMode::kGlobal), Result::kSuccess);
  ASSERT_EQ(d().EventRecord(event_, a_), Result::kSuccess);
  ASSERT_EQ(d().StreamWaitEvent(b_, event_, 0), Result::kSuccess);
  EXPECT_EQ(StatusOf(b_), CaptureStatus::kActive) << "it has joined";
  ASSERT_EQ(d().MemcpyDtoDAsync(to_, from_, kBytes, b_), Result::kSuccess);
  leat::testing::FakeCuda::Graph graph = nullptr, exec = nullptr;
  ASSERT_EQ(fake_.end_capture(a_, &graph), Result::kSuccess);
  ASSERT_EQ(fake_.graph_instantiate(&exec, graph, 0), Result::kSuccess);
  const auto* const to = static_cast<const unsigned char*>(AsPointer(to_));
  for (unsigned char value = 5; value < 8; ++value) {
    d().MemsetD8Async(from_, value, kBytes, a_);
    ASSERT_EQ(fake_.graph_launch(exec, a_), Result::kSuccess);
    d().StreamSynchronize(a_);
    EXPECT_EQ(to[kBytes - 1], value);
  }
  EXPECT_EQ(fake_.count("graphs"), 2);
  fake_.graph_destroy(graph);
  fake_.graph_destroy(exec);
  EXPECT_EQ(fake_.violations(), 0u) << fake_.FirstViolation();
}

TEST_F(FakeCapture, AWriteToWhatHeldWorkHasStillToReadIsAViolation) {
  fake_.set("trainer", 1);
  const RelaxedCapture relaxed(d());
  for (const bool copies : {false, true}) {
    const uint64_t before = fake_.violations();
    fake_.hold_stream(a_);
    if (copies)
      d().MemcpyDtoDAsync(to_, from_, kBytes, a_);
    else
      fake_.reads(a_, AsPointer(from_), kBytes);
    d().MemsetD8Async(from_ + 10, 3, 1, b_);
    d().StreamSynchronize(b_);
    EXPECT_EQ(fake_.violations(), before + 1) << copies;
    fake_.release_stream(a_);
    d().StreamSynchronize(a_);
  }
  EXPECT_THAT(fake_.FirstViolation(),
              HasSubstr("a kernel on another stream has still to read"));
}

TEST_F(FakeCapture, WhoeverWritesThereIsNoticed) {
  fake_.set("trainer", 1);
  const RelaxedCapture relaxed(d());
  fake_.hold_stream(a_);
  fake_.reads(a_, AsPointer(from_), kBytes);
  // The write comes from the host, or from another process that has mapped it.
  std::memset(static_cast<char*>(AsPointer(from_)) + kBytes - 1, 9, 1);
  EXPECT_EQ(fake_.violations(), 0u);
  fake_.release_stream(a_);
  d().StreamSynchronize(a_);
  EXPECT_EQ(fake_.violations(), 1u);
  EXPECT_THAT(fake_.FirstViolation(), HasSubstr("memory was written to while"));
}

TEST_F(FakeCapture, WhatEventsPutInOrderIsNoViolation) {
  fake_.set("trainer", 1);
  const RelaxedCapture relaxed(d());
  // Written on b, read on a after that, then written on b again.
  fake_.hold_stream(b_);
  d().MemsetD8Async(from_, 1, kBytes, b_);
  d().EventRecord(event_, b_);
  d().StreamWaitEvent(a_, event_, 0);
  fake_.reads(a_, AsPointer(from_), kBytes);
  d().EventRecord(event_, a_);
  d().StreamWaitEvent(b_, event_, 0);
  d().MemsetD8Async(from_, 2, kBytes, b_);
  fake_.release_stream(b_);
  d().StreamSynchronize(a_);
  d().StreamSynchronize(b_);
  EXPECT_EQ(fake_.violations(), 0u) << fake_.FirstViolation();
  // On a single stream no event is needed.
  fake_.hold_stream(a_);
  d().MemsetD8Async(from_, 3, kBytes, a_);
  fake_.reads(a_, AsPointer(from_), kBytes);
  d().MemsetD8Async(from_, 4, kBytes, a_);
  fake_.release_stream(a_);
  d().StreamSynchronize(a_);
  EXPECT_EQ(fake_.violations(), 0u) << fake_.FirstViolation();
}

}  // namespace
}  // namespace leat::cuda
