// SPDX-License-Identifier: Apache-2.0
//
// Streams, events, modules and launches of the fake driver.
#include <chrono>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "tests/support/fake_cuda/fake_cuda.h"
#include "tests/support/fake_cuda/state.h"
#include "tests/support/host_launcher.h"

using leat::MutexLock;
using namespace leat::cuda;       // NOLINT: the types of every signature
using namespace leat::fake_cuda;  // NOLINT

namespace leat::fake_cuda {
namespace {

constexpr unsigned kMaxThreads = 1024;
constexpr unsigned kMaxGridY = 65535;

// A fat binary, a device's own code, or PTX.
bool IsImage(const void* image) {
  const auto* bytes = static_cast<const unsigned char*>(image);
  constexpr unsigned char kFatbin[] = {0x50, 0xed, 0x55, 0xba};
  return std::memcmp(bytes, kFatbin, 4) == 0 ||
         std::memcmp(bytes, "\177ELF", 4) == 0 ||
         std::memcmp(bytes, ".ver", 4) == 0 || std::memcmp(bytes, "//", 2) == 0;
}

// Finds the marker of an event's last record; nullptr: never recorded, or
// recorded in a capture.
Result MarkerOf(const char* symbol, cuda::Event event,
                std::shared_ptr<Marker>* marker) {
  State& state = GetState();
  MutexLock lock(&state.mu);
  const auto found = state.events.find(HandleOf(event));
  if (found == state.events.end())
    return state.Violate(symbol, "an event that does not exist",
                         Result::kInvalidHandle);
  if (const auto& captured = found->second.captured)
    return state.Spoil(symbol, captured, Result::kCapturedEvent);
  *marker = found->second.marker;
  return Result::kSuccess;
}

// Finds the thread of a stream that is not captured.
Result ThreadOf(const char* symbol, cuda::Stream stream,
                std::shared_ptr<StreamThread>* thread) {
  std::shared_ptr<Capture> capture;
  const Result found = Find(symbol, stream, thread, false, &capture);
  if (found != Result::kSuccess || capture == nullptr) return found;
  State& state = GetState();
  MutexLock lock(&state.mu);
  return state.Spoil(symbol, capture, Result::kCaptureUnsupported);
}

// Joins the stream to the capture that the event belongs to.
Result Join(const char* symbol, cuda::Stream stream,
            const std::shared_ptr<Capture>& captured) {
  State& state = GetState();
  MutexLock lock(&state.mu);
  const auto found = state.streams.find(HandleOf(stream));
  if (found == state.streams.end())
    return state.Violate(symbol, "a stream that cannot be captured",
                         Result::kInvalidHandle);
  auto& capture = found->second.capture;
  if (capture != nullptr && capture != captured)
    return state.Spoil(symbol, capture, Result::kCaptureIsolation);
  capture = captured;
  return Result::kSuccess;
}

Result FunctionOf(const char* symbol, cuda::Function function,
                  FunctionObject* object) {
  State& state = GetState();
  MutexLock lock(&state.mu);
  const auto found = state.functions.find(HandleOf(function));
  if (found == state.functions.end())
    return state.Violate(symbol, "a function of a module that is not loaded",
                         Result::kInvalidHandle);
  *object = found->second;
  return Result::kSuccess;
}

}  // namespace
}  // namespace leat::fake_cuda

extern "C" {

Result cuStreamCreate(Stream* stream, Flags flags) {
  FAKE_ENTER_UNSAFE_CONTEXT(device);
  if (flags > kStreamNonBlocking) return Result::kInvalidValue;
  State& state = GetState();
  MutexLock lock(&state.mu);
  const uint64_t handle = state.NewHandle();
  state.streams[handle] = {.device = device,
                           .blocking = (flags & kStreamNonBlocking) == 0,
                           .thread = std::make_shared<StreamThread>(),
                           .capture = nullptr};
  ++state.counts["streams"];
  *stream = AsHandle<Stream>(handle);
  return Result::kSuccess;
}

Result cuStreamDestroy_v2(Stream stream) {
  FAKE_ENTER_UNSAFE();
  State& state = GetState();
  std::shared_ptr<StreamThread> thread;  // joined without the lock
  MutexLock lock(&state.mu);
  const auto found = state.streams.find(HandleOf(stream));
  if (found == state.streams.end())
    return state.Violate(__func__, "a stream that does not exist",
                         Result::kInvalidHandle);
  thread = found->second.thread;
  state.streams.erase(found);
  --state.counts["streams"];
  return Result::kSuccess;
}

Result cuStreamSynchronize(Stream stream) {
  FAKE_ENTER_UNSAFE();
  std::shared_ptr<StreamThread> thread;
  if (const Result found = ThreadOf(__func__, stream, &thread);
      found != Result::kSuccess)
    return found;
  thread->Drain();
  State& state = GetState();
  MutexLock lock(&state.mu);
  if ((state.context_flags & kContextBlockingSync) == 0)
    ++state.counts["spinning_waits"];
  return state.poison;
}

Result cuStreamQuery(Stream stream) {
  FAKE_ENTER_UNSAFE();
  std::shared_ptr<StreamThread> thread;
  if (const Result found = ThreadOf(__func__, stream, &thread);
      found != Result::kSuccess)
    return found;
  return thread->IsIdle() ? Result::kSuccess : Result::kNotReady;
}

Result cuStreamWaitEvent(Stream stream, Event event, Flags) {
  FAKE_ENTER();
  std::shared_ptr<Capture> captured;
  {
    State& state = GetState();
    MutexLock lock(&state.mu);
    const auto found = state.events.find(HandleOf(event));
    if (found != state.events.end()) captured = found->second.captured;
  }
  if (captured != nullptr) return Join(__func__, stream, captured);
  std::shared_ptr<Marker> marker;
  if (const Result found = MarkerOf(__func__, event, &marker);
      found != Result::kSuccess)
    return found;
  std::shared_ptr<StreamThread> thread;
  std::shared_ptr<Capture> capture;
  if (const Result found = Find(__func__, stream, &thread, false, &capture);
      found != Result::kSuccess)
    return found;
  if (capture != nullptr) {
    State& state = GetState();
    MutexLock lock(&state.mu);
    return state.Spoil(__func__, capture, Result::kCaptureIsolation);
  }
  if (marker != nullptr) thread->Append([marker] { marker->Wait(); });
  return Result::kSuccess;
}

Result cuEventCreate(Event* event, Flags flags) {
  FAKE_ENTER_CONTEXT(device);
  State& state = GetState();
  MutexLock lock(&state.mu);
  const uint64_t handle = state.NewHandle();
  state.events[handle] = {.device = device,
                          .timing = (flags & kEventDisableTiming) == 0,
                          .sleeps = (flags & kEventBlockingSync) != 0};
  ++state.counts["events"];
  *event = AsHandle<Event>(handle);
  return Result::kSuccess;
}

Result cuEventDestroy_v2(Event event) {
  FAKE_ENTER();
  State& state = GetState();
  MutexLock lock(&state.mu);
  if (state.events.erase(HandleOf(event)) == 0)
    return state.Violate(__func__, "an event that does not exist",
                         Result::kInvalidHandle);
  --state.counts["events"];
  return Result::kSuccess;
}

Result cuEventRecord(Event event, Stream stream) {
  FAKE_ENTER();
  std::shared_ptr<StreamThread> thread;
  std::shared_ptr<Capture> capture;
  if (const Result found = Find(__func__, stream, &thread, false, &capture);
      found != Result::kSuccess)
    return found;
  auto marker = std::make_shared<Marker>();
  {
    State& state = GetState();
    MutexLock lock(&state.mu);
    const auto found = state.events.find(HandleOf(event));
    if (found == state.events.end())
      return state.Violate(__func__, "an event that does not exist",
                           Result::kInvalidHandle);
    if (capture != nullptr && capture->invalid)
      return Result::kCaptureInvalidated;
    found->second.captured = capture;
    found->second.marker = marker;
  }
  // An event in a capture is an edge of the graph, and never complete.
  if (capture == nullptr) thread->Append([marker] { marker->Set(); });
  return Result::kSuccess;
}

Result cuEventQuery(Event event) {
  FAKE_ENTER_UNSAFE();
  std::shared_ptr<Marker> marker;
  if (const Result found = MarkerOf(__func__, event, &marker);
      found != Result::kSuccess)
    return found;
  return marker == nullptr || marker->IsSet() ? Result::kSuccess
                                              : Result::kNotReady;
}

Result cuEventSynchronize(Event event) {
  FAKE_ENTER_UNSAFE();
  std::shared_ptr<Marker> marker;
  if (const Result found = MarkerOf(__func__, event, &marker);
      found != Result::kSuccess)
    return found;
  if (marker != nullptr) marker->Wait();
  State& state = GetState();
  MutexLock lock(&state.mu);
  const auto known = state.events.find(HandleOf(event));
  if (known != state.events.end() && !known->second.sleeps)
    ++state.counts["spinning_waits"];
  return state.poison;
}

Result cuEventElapsedTime(float* milliseconds, Event start, Event end) {
  FAKE_ENTER();
  std::shared_ptr<Marker> first, last;
  Result found = MarkerOf(__func__, start, &first);
  if (found == Result::kSuccess) found = MarkerOf(__func__, end, &last);
  if (found != Result::kSuccess) return found;
  if (first == nullptr || last == nullptr) return Result::kInvalidHandle;
  if (!first->IsSet() || !last->IsSet()) return Result::kNotReady;
  *milliseconds =
      std::chrono::duration<float, std::milli>(last->time() - first->time())
          .count();
  return Result::kSuccess;
}

Result cuModuleLoadData(Module* module, const void* image) {
  FAKE_ENTER_UNSAFE_CONTEXT(device);
  if (image == nullptr || !IsImage(image)) return Result::kInvalidImage;
  State& state = GetState();
  MutexLock lock(&state.mu);
  if (state.settings["version"] < 12000) return Result::kUnsupportedPtxVersion;
  if (state.settings["compute"] < 75) return Result::kNoBinaryForGpu;
  const uint64_t handle = state.NewHandle();
  state.modules[handle] = {.device = device};
  ++state.counts["modules"];
  *module = AsHandle<Module>(handle);
  return Result::kSuccess;
}

Result cuModuleUnload(Module module) {
  FAKE_ENTER_UNSAFE_CONTEXT(device);
  State& state = GetState();
  std::vector<std::shared_ptr<StreamThread>> threads;
  {
    MutexLock lock(&state.mu);
    threads = state.Threads(device);
  }
  for (const auto& thread : threads) thread->Drain();
  MutexLock lock(&state.mu);
  const auto found = state.modules.find(HandleOf(module));
  if (found == state.modules.end())
    return state.Violate(__func__, "a module that does not exist",
                         Result::kInvalidHandle);
  for (const uint64_t function : found->second.functions)
    state.functions.erase(function);
  state.modules.erase(found);
  --state.counts["modules"];
  return Result::kSuccess;
}

Result cuModuleGetFunction(Function* function, Module module,
                           const char* name) {
  FAKE_ENTER_CONTEXT(device);
  State& state = GetState();
  MutexLock lock(&state.mu);
  const auto found = state.modules.find(HandleOf(module));
  if (found == state.modules.end())
    return state.Violate(__func__, "a module that does not exist",
                         Result::kInvalidHandle);
  Kernel kernel{.name = name};
  for (const Kernel& known : state.kernels)
    if (known.name == name) kernel = known;
  if (kernel.run == nullptr && !leat::worker::IsHostKernel(name))
    return Result::kNotFound;
  const uint64_t handle = state.NewHandle();
  state.functions[handle] = {.device = device, .kernel = std::move(kernel)};
  found->second.functions.push_back(handle);
  *function = AsHandle<Function>(handle);
  return Result::kSuccess;
}

Result cuFuncGetAttribute(int* value, FunctionAttribute attribute,
                          Function function) {
  FAKE_ENTER();
  FunctionObject object;
  if (const Result found = FunctionOf(__func__, function, &object);
      found != Result::kSuccess)
    return found;
  switch (attribute) {
    case FunctionAttribute::kMaxThreadsPerBlock:
      *value = static_cast<int>(kMaxThreads);
      break;
    case FunctionAttribute::kRegisters:
      *value = 64;
      break;
    case FunctionAttribute::kPtxVersion:
    case FunctionAttribute::kBinaryVersion:
      *value = static_cast<int>(fake_cuda_get("compute"));
      break;
    default:
      *value = 0;
  }
  return Result::kSuccess;
}

Result cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks,
                                                   Function function,
                                                   int block_threads, size_t) {
  FAKE_ENTER();
  FunctionObject object;
  if (const Result found = FunctionOf(__func__, function, &object);
      found != Result::kSuccess)
    return found;
  if (block_threads <= 0) return Result::kInvalidValue;
  *blocks = 2048 / block_threads;
  return Result::kSuccess;
}

Result cuLaunchKernel(Function function, unsigned grid_x, unsigned grid_y,
                      unsigned grid_z, unsigned block_x, unsigned block_y,
                      unsigned block_z, unsigned shared_bytes, Stream stream,
                      void** parameters, void** extra) {
  FAKE_ENTER_CONTEXT(device);
  FunctionObject object;
  if (const Result found = FunctionOf(__func__, function, &object);
      found != Result::kSuccess)
    return found;
  if (object.device != device) return Result::kInvalidHandle;
  if (grid_x == 0 || grid_y == 0 || grid_z == 0 || grid_y > kMaxGridY ||
      grid_z > kMaxGridY || block_x == 0 || block_y == 0 || block_z == 0 ||
      block_x * block_y * block_z > kMaxThreads || extra != nullptr)
    return Result::kInvalidValue;
  // Parameters are copied before the launch returns.
  std::vector<uint64_t> values(static_cast<size_t>(object.kernel.params));
  for (size_t i = 0; i < values.size(); ++i)
    std::memcpy(&values[i], parameters[i], sizeof values[i]);
  const leat::worker::LaunchConfig config{.grid_x = grid_x,
                                          .grid_y = grid_y,
                                          .grid_z = grid_z,
                                          .block_x = block_x,
                                          .block_y = block_y,
                                          .block_z = block_z,
                                          .shared_bytes = shared_bytes};
  {
    State& state = GetState();
    MutexLock lock(&state.mu);
    ++state.counts["launches"];
  }
  return Enqueue(__func__, stream,
                 {.run = [kernel = object.kernel, config,
                          values = std::move(values)]() mutable {
                   std::vector<void*> pointers;
                   for (uint64_t& value : values) pointers.push_back(&value);
                   if (kernel.run != nullptr)
                     kernel.run(values.data(), config.grid_x * config.block_x);
                   else
                     leat::worker::LaunchOnHost(kernel.name.c_str(), config,
                                                pointers.data());
                 }});
}

Result cuLaunchHostFunc(Stream stream, HostFunction function, void* data) {
  FAKE_ENTER();
  return Enqueue(__func__, stream, {.run = [=] { function(data); }},
                 /*wait=*/false, /*own_context=*/false);
}

}  // extern "C"
