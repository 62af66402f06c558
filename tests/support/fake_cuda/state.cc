// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fake_cuda/state.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <utility>

#include "cuda/driver.h"
#include "fmt/format.h"
#include "tests/support/fake_cuda/fake_cuda.h"

namespace leat::fake_cuda {
namespace {

constexpr size_t kMaxViolations = 64;
// Actions that calls may be told to do instead of returning a code.
constexpr auto kNeverReturns = static_cast<Result>(-1);
constexpr auto kCrashes = static_cast<Result>(-2);

uint64_t Number(const char* variable, uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr || *text == '\0' ? otherwise
                                          : std::strtoull(text, nullptr, 10);
}

std::vector<Fault> ParseFaults(const char* text) {
  std::vector<Fault> faults;
  std::istringstream list(text == nullptr ? "" : text);
  for (std::string entry; std::getline(list, entry, ';');) {
    std::istringstream parts(entry);
    std::string symbol, nth, code;
    if (!std::getline(parts, symbol, ':') || !std::getline(parts, nth, ':') ||
        !std::getline(parts, code))
      continue;
    faults.push_back({.symbol = symbol,
                      .at = std::strtoull(nth.c_str(), nullptr, 10),
                      .onwards = nth.back() == '+',
                      .code = static_cast<Result>(std::atoi(code.c_str()))});
  }
  return faults;
}

// True for functions that work without a context, even after it is spoilt.
bool IsHarmless(const char* symbol) {
  for (const char* name : {"cuGetErrorName", "cuGetErrorString",
                           "cuDriverGetVersion", "cuInit", "cuDeviceGetCount"})
    if (std::strcmp(symbol, name) == 0) return true;
  return false;
}

// True for codes that, on a real GPU, all later calls return too: those of a
// spoilt context, and those that mean that there is no such GPU.
bool IsSticky(Result code) {
  return code == Result::kNoDevice || code == Result::kInvalidDevice ||
         code == Result::kSystemNotReady ||
         (cuda::PoisonsContext(code) && code != Result::kIllegalState);
}

void Report() {
  const char* const path = std::getenv("LEAT_FAKE_CUDA_REPORT");
  if (path == nullptr) return;
  State& state = GetState();
  MutexLock lock(&state.mu);
  std::string line = fmt::format("pid={}", getpid());
  for (const auto& [what, count] : state.counts)
    line += fmt::format(" {}={}", what, count);
  line += fmt::format(" violations={}", state.violation_count);
  for (const std::string& violation : state.violations)
    line += fmt::format(" \"{}\"", violation);
  line += '\n';
  const int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return;
  // One write, so that lines of several processes do not mix.
  if (write(fd, line.data(), line.size()) < 0) std::perror(path);
  close(fd);
}

}  // namespace

bool Holds(const Ranges& ranges, uintptr_t at, size_t bytes) {
  auto next = ranges.upper_bound(at);
  if (next == ranges.begin()) return false;
  const auto& [start, range] = *--next;
  return range.accessible && at - start <= range.bytes &&
         bytes <= range.bytes - (at - start);
}

State& GetState() {
  static State* const state = [] {
    auto* made = new State;
    MutexLock lock(&made->mu);
    made->ReadEnvironment();
    std::atexit(Report);
    return made;
  }();
  return *state;
}

void State::ReadEnvironment() {
  settings["memory"] = Number("LEAT_FAKE_CUDA_MEMORY", 16ull << 30);
  settings["devices"] = Number("LEAT_FAKE_CUDA_DEVICES", 1);
  settings["compute"] = Number("LEAT_FAKE_CUDA_COMPUTE", 90);
  settings["version"] = Number("LEAT_FAKE_CUDA_VERSION", 13000);
  settings["engines"] = Number("LEAT_FAKE_NVJPEG_ENGINES", 7);
  settings["cores"] = Number("LEAT_FAKE_NVJPEG_CORES", 1);
  settings["roi"] = Number("LEAT_FAKE_NVJPEG_ROI", 1);
  settings["scale"] = Number("LEAT_FAKE_NVJPEG_SCALE", 1);
  settings["damaged"] = Number("LEAT_FAKE_NVJPEG_DAMAGED", 3);
  settings["edges"] = Number("LEAT_FAKE_NVJPEG_EDGES", 1);
  settings["batch_damaged"] = Number("LEAT_FAKE_NVJPEG_BATCH_DAMAGED", 6);
  settings["gray"] = Number("LEAT_FAKE_NVJPEG_GRAY", 1);
  settings["preallocate"] = Number("LEAT_FAKE_NVJPEG_PREALLOCATE", 5);
  settings["ordered"] = Number("LEAT_FAKE_NVJPEG_ORDERED", 0);
  settings["parse_together"] = Number("LEAT_FAKE_NVJPEG_PARSE_TOGETHER", 0);
  settings["parse_spoils"] = Number("LEAT_FAKE_NVJPEG_PARSE_SPOILS", 1);
  settings["video"] = Number("LEAT_FAKE_NVJPEG_VIDEO", 1);
  settings["whole_mcus"] = Number("LEAT_FAKE_NVJPEG_WHOLE_MCUS", 0);
  settings["stop"] = Number("LEAT_FAKE_CUDA_STOP", 0);
  StreamStopper().Set(settings["stop"]);
  settings["wrong"] = Number("LEAT_FAKE_NVJPEG_WRONG", 0);
  settings["turn"] = Number("LEAT_FAKE_NVJPEG_TURN", 1);
  settings["pinned"] = Number("LEAT_FAKE_CUDA_PINNED", 64ull << 30);
  settings["refuse_pinned"] = Number("LEAT_FAKE_CUDA_REFUSE_PINNED", 2);
  settings["register_ms"] = Number("LEAT_FAKE_CUDA_REGISTER_MS", 5);
  settings["trainer"] = Number("LEAT_FAKE_CUDA_TRAINER", 0);
  settings["granularity"] = Number("LEAT_FAKE_CUDA_GRANULARITY", 2 << 20);
  const char* const given = std::getenv("LEAT_FAKE_CUDA_NAME");
  name = given == nullptr ? "Fake GPU" : given;
  faults = ParseFaults(std::getenv("LEAT_FAKE_CUDA_FAIL"));
}

Result State::Enter(const char* symbol, bool needs_init) {
  std::vector<std::shared_ptr<StreamThread>> spoilt;
  const Result result = Count(symbol, needs_init, &spoilt);
  // A spoilt context does not work any more: memory freed now is not touched
  // later.
  for (const auto& thread : spoilt) thread->Drain();
  while (result == kNeverReturns) pause();
  if (result == kCrashes) std::abort();
  return result;
}

Result State::Count(const char* symbol, bool needs_init,
                    std::vector<std::shared_ptr<StreamThread>>* spoilt) {
  MutexLock lock(&mu);
  const uint64_t call = ++calls[symbol], any = ++calls["*"];
  for (const Fault& fault : faults) {
    if (fault.symbol != "*" && fault.symbol != symbol) continue;
    const uint64_t count = fault.symbol == "*" ? any : call;
    if (count != fault.at && !(fault.onwards && count > fault.at)) continue;
    if (IsSticky(fault.code) && initialised) {
      if (poison == Result::kSuccess)
        for (const auto& [handle, stream] : streams)
          spoilt->push_back(stream.thread);
      poison = fault.code;
    }
    return fault.code;
  }
  if (IsHarmless(symbol)) return Result::kSuccess;
  if (poison != Result::kSuccess) return poison;
  if (needs_init && !initialised) return Result::kNotInitialized;
  return Result::kSuccess;
}

Result State::Violate(const char* symbol, const std::string& what,
                      Result code) {
  ++violation_count;
  if (violations.size() < kMaxViolations)
    violations.push_back(fmt::format("{}: {}", symbol, what));
  return code;
}

bool State::IsDeviceMemory(uintptr_t at, size_t bytes) {
  return Holds(allocations, at, bytes) || Holds(mapped, at, bytes);
}

bool State::IsPinned(uintptr_t at, size_t bytes) {
  return Holds(pinned, at, bytes) || Holds(registered, at, bytes);
}

bool State::Take(int device, size_t bytes) {
  uint64_t& used = used_bytes[device];
  if (bytes > settings["memory"] || used > settings["memory"] - bytes)
    return false;
  used += bytes;
  return true;
}

bool State::TakePinned(size_t bytes) {
  const uint64_t refused = settings["refuse_pinned"];
  if (++pinned_requests; refused != 0 && pinned_requests % refused == 0) {
    ++counts["pinned_refusals"];
    return false;
  }
  if (bytes > settings["pinned"] || pinned_bytes > settings["pinned"] - bytes)
    return false;
  pinned_bytes += bytes;
  return true;
}

std::vector<std::shared_ptr<StreamThread>> State::Threads(int device) {
  std::vector<std::shared_ptr<StreamThread>> threads;
  for (const auto& [handle, entry] : streams)
    if (entry.device == device) threads.push_back(entry.thread);
  return threads;
}

Result Find(const char* symbol, cuda::Stream stream,
            std::shared_ptr<StreamThread>* thread, bool own_context,
            std::shared_ptr<Capture>* capture) {
  State& state = GetState();
  const int current = CurrentDevice();
  MutexLock lock(&state.mu);
  uint64_t handle = HandleOf(stream);
  // The default stream: one per device, made when first used.
  if (handle <= 2) {
    if (current < 0) return Result::kInvalidContext;
    if (state.ImplicitCapture(current)) {
      for (const auto& each : state.captures)
        if (each->blocking) each->invalid = true;
      return state.Violate(symbol, "the legacy stream would wait for a capture",
                           Result::kCaptureImplicit);
    }
    handle = static_cast<uint64_t>(current) + 16;
    StreamEntry& entry = state.streams[handle];
    entry.device = current;
    if (entry.thread == nullptr)
      entry.thread = std::make_shared<StreamThread>();
  }
  const auto found = state.streams.find(handle);
  if (found == state.streams.end())
    return state.Violate(symbol, "a stream that does not exist",
                         Result::kInvalidHandle);
  if (own_context && found->second.device != current)
    return state.Violate(symbol, "a stream of a context that is not current",
                         Result::kInvalidHandle);
  *thread = found->second.thread;
  if (capture != nullptr) *capture = found->second.capture;
  return Result::kSuccess;
}

Result Enqueue(const char* symbol, cuda::Stream stream, Work work, bool wait,
               bool own_context) {
  std::shared_ptr<StreamThread> thread;
  std::shared_ptr<Capture> capture;
  if (const Result found = Find(symbol, stream, &thread, own_context, &capture);
      found != Result::kSuccess)
    return found;
  if (capture != nullptr) {
    State& state = GetState();
    MutexLock lock(&state.mu);
    if (capture->invalid) return Result::kCaptureInvalidated;
    capture->work.push_back(std::move(work));
    return Result::kSuccess;
  }
  thread->Append(StreamTraffic().Queue(symbol, thread.get(), std::move(work)));
  if (wait) thread->Drain();
  return Result::kSuccess;
}

}  // namespace leat::fake_cuda
