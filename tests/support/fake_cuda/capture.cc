// SPDX-License-Identifier: Apache-2.0
//
// Streams that are captured into graphs, and graphs that are replayed, as in
// CUDA's guide ("Prohibited and unhandled operations"): a prohibited call fails
// and spoils the capture.
#include <algorithm>
#include <thread>
#include <utility>

#include "tests/support/fake_cuda/fake_cuda.h"
#include "tests/support/fake_cuda/state.h"

using leat::MutexLock;
using namespace leat::cuda;       // NOLINT: the types of every signature
using namespace leat::fake_cuda;  // NOLINT

using Graph = struct GraphTag*;
using GraphExec = struct GraphExecTag*;

namespace leat::fake_cuda {
namespace {

thread_local CaptureMode thread_mode = CaptureMode::kGlobal;

uint64_t ThisThread() {
  return std::hash<std::thread::id>()(std::this_thread::get_id());
}

}  // namespace

Result CheckUnsafe(const char* symbol) {
  if (thread_mode == CaptureMode::kRelaxed) return Result::kSuccess;
  State& state = GetState();
  MutexLock lock(&state.mu);
  const bool global = thread_mode == CaptureMode::kGlobal;
  // Another thread of a trainer may capture at any time.
  bool refused = global && state.settings["trainer"] != 0;
  for (const auto& capture : state.captures) {
    const bool forbids = capture->thread == ThisThread()
                             ? capture->mode != CaptureMode::kRelaxed
                             : global && capture->mode == CaptureMode::kGlobal;
    if (!forbids) continue;
    capture->invalid = refused = true;
  }
  if (!refused) return Result::kSuccess;
  return state.Violate(symbol,
                       "a call that spoils the capture of another thread",
                       Result::kCaptureUnsupported);
}

Result State::Spoil(const char* symbol, const std::shared_ptr<Capture>& capture,
                    Result code) {
  capture->invalid = true;
  return Violate(symbol, "not with what is being captured", code);
}

bool State::ImplicitCapture(int device) {
  for (const auto& capture : captures)
    if (capture->blocking && capture->device == device) return true;
  return false;
}

}  // namespace leat::fake_cuda

extern "C" {

Result cuThreadExchangeStreamCaptureMode(CaptureMode* mode) {
  State& state = GetState();
  {
    MutexLock lock(&state.mu);
    if (!state.initialised) return Result::kNotInitialized;
  }
  std::swap(*mode, thread_mode);
  return Result::kSuccess;
}

Result cuStreamIsCapturing(Stream stream, CaptureStatus* status) {
  FAKE_ENTER();
  State& state = GetState();
  const int current = CurrentDevice();
  MutexLock lock(&state.mu);
  *status = CaptureStatus::kNone;
  if (HandleOf(stream) <= 2)
    return state.ImplicitCapture(current) ? Result::kCaptureImplicit
                                          : Result::kSuccess;
  const auto found = state.streams.find(HandleOf(stream));
  if (found == state.streams.end())
    return state.Violate(__func__, "a stream that does not exist",
                         Result::kInvalidHandle);
  if (const auto& capture = found->second.capture)
    *status =
        capture->invalid ? CaptureStatus::kInvalidated : CaptureStatus::kActive;
  return Result::kSuccess;
}

Result cuStreamBeginCapture_v2(Stream stream, CaptureMode mode) {
  FAKE_ENTER();
  State& state = GetState();
  MutexLock lock(&state.mu);
  const auto found = state.streams.find(HandleOf(stream));
  if (found == state.streams.end() || found->second.capture != nullptr)
    return state.Violate(__func__, "no stream that can be captured",
                         Result::kCaptureUnsupported);
  StreamEntry& entry = found->second;
  entry.capture = std::make_shared<Capture>(Capture{.mode = mode,
                                                    .stream = HandleOf(stream),
                                                    .thread = ThisThread(),
                                                    .device = entry.device,
                                                    .blocking = entry.blocking,
                                                    .invalid = false,
                                                    .work = {}});
  state.captures.push_back(entry.capture);
  return Result::kSuccess;
}

Result cuStreamEndCapture(Stream stream, Graph* graph) {
  FAKE_ENTER();
  State& state = GetState();
  MutexLock lock(&state.mu);
  const auto found = state.streams.find(HandleOf(stream));
  if (found == state.streams.end() || found->second.capture == nullptr)
    return Result::kIllegalState;
  const std::shared_ptr<Capture> capture = found->second.capture;
  if (capture->stream != found->first)
    return state.Spoil(__func__, capture, Result::kCaptureUnmatched);
  if (capture->mode != CaptureMode::kRelaxed && capture->thread != ThisThread())
    return state.Spoil(__func__, capture, Result::kCaptureWrongThread);
  for (auto& [handle, entry] : state.streams)
    if (entry.capture == capture) entry.capture = nullptr;
  std::erase(state.captures, capture);
  *graph = nullptr;
  if (capture->invalid) return Result::kCaptureInvalidated;
  const uint64_t handle = state.NewHandle();
  state.graphs[handle] = std::move(capture->work);
  ++state.counts["graphs"];
  *graph = AsHandle<Graph>(handle);
  return Result::kSuccess;
}

Result cuGraphInstantiateWithFlags(GraphExec* exec, Graph graph, LongFlags) {
  FAKE_ENTER();
  State& state = GetState();
  MutexLock lock(&state.mu);
  const auto found = state.graphs.find(HandleOf(graph));
  if (found == state.graphs.end()) return Result::kInvalidValue;
  const uint64_t handle = state.NewHandle();
  state.graphs[handle] = found->second;
  ++state.counts["graphs"];
  *exec = AsHandle<GraphExec>(handle);
  return Result::kSuccess;
}

Result cuGraphLaunch(GraphExec exec, Stream stream) {
  FAKE_ENTER();
  std::vector<Work> work;
  {
    State& state = GetState();
    MutexLock lock(&state.mu);
    const auto found = state.graphs.find(HandleOf(exec));
    if (found == state.graphs.end()) return Result::kInvalidValue;
    work = found->second;
  }
  for (Work& each : work)
    if (const Result result = Enqueue(__func__, stream, std::move(each));
        result != Result::kSuccess)
      return result;
  return Result::kSuccess;
}

Result cuGraphDestroy(Graph graph) {
  FAKE_ENTER();
  State& state = GetState();
  MutexLock lock(&state.mu);
  if (state.graphs.erase(HandleOf(graph)) == 0) return Result::kInvalidValue;
  --state.counts["graphs"];
  return Result::kSuccess;
}

Result cuGraphExecDestroy(GraphExec exec) {
  return cuGraphDestroy(AsHandle<Graph>(HandleOf(exec)));
}

}  // extern "C"

int fake_cuda_reads(void* stream, const void* memory, size_t bytes) {
  const auto at = reinterpret_cast<uintptr_t>(memory);
  const auto run = [at, bytes] {
    unsigned char sum = 0;
    for (size_t i = 0; i < bytes; ++i)
      sum ^= reinterpret_cast<const unsigned char*>(at)[i];
    [[maybe_unused]] volatile unsigned char kept = sum;
  };
  return Enqueue("a kernel", static_cast<Stream>(stream),
                 {.run = run, .reads = {{at, bytes}}, .writes = {}}) ==
         Result::kSuccess;
}

static void HoldStream(void* stream, bool held) {
  std::shared_ptr<StreamThread> thread;
  if (Find("fake_cuda_hold_stream", static_cast<Stream>(stream), &thread) ==
      Result::kSuccess)
    thread->Hold(held);
}
void fake_cuda_hold_stream(void* stream) { HoldStream(stream, true); }
void fake_cuda_release_stream(void* stream) { HoldStream(stream, false); }
