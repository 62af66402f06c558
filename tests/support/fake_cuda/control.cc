// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <map>
#include <memory>
#include <string>

#include "cuda/nvjpeg.h"
#include "tests/support/fake_cuda/fake_cuda.h"
#include "tests/support/fake_cuda/state.h"

using leat::MutexLock;
using leat::cuda::Result;
using leat::fake_cuda::GetState;
using leat::fake_cuda::State;

namespace {

// True if it counts events rather than live objects.
bool IsTotal(const std::string& what) {
  return what.starts_with("pageable_") || what.ends_with("_images") ||
         what == "launches" || what == "pinned_refusals" ||
         what == "spinning_waits";
}

}  // namespace

void fake_cuda_reset() {
  State& state = GetState();
  std::map<uint64_t, leat::fake_cuda::StreamEntry> streams;
  MutexLock lock(&state.mu);
  streams.swap(state.streams);
  state.calls.clear();
  state.counts.clear();
  state.violations.clear();
  state.violation_count = 0;
  state.poison = Result::kSuccess;
  state.initialised = false;
  state.contexts.clear();
  state.used_bytes.clear();
  state.pinned_bytes = 0;
  state.pinned_requests = 0;
  state.context_flags = 0;
  state.allocations.clear();
  state.mapped.clear();
  state.pinned.clear();
  state.registered.clear();
  state.reserved.clear();
  state.handles.clear();
  state.mappings.clear();
  state.events.clear();
  state.modules.clear();
  state.functions.clear();
  state.captures.clear();
  state.graphs.clear();
  state.ReadEnvironment();
}

void fake_cuda_forget() {
  State& state = GetState();
  MutexLock lock(&state.mu);
  std::erase_if(state.counts, [](const auto& entry) {
    return IsTotal(entry.first) && entry.first != "pinned_refusals" &&
           entry.first != "spinning_waits";
  });
}

void fake_cuda_fail(const char* symbol, uint64_t nth, int onwards, int code) {
  State& state = GetState();
  MutexLock lock(&state.mu);
  state.faults.push_back({.symbol = symbol,
                          .at = state.calls[symbol] + nth,
                          .onwards = onwards != 0,
                          .code = static_cast<Result>(code)});
}

int fake_cuda_set(const char* setting, uint64_t value) {
  State& state = GetState();
  MutexLock lock(&state.mu);
  const auto found = state.settings.find(setting);
  if (found == state.settings.end()) return 0;
  found->second = value;
  if (found->first == "stop") leat::fake_cuda::StreamStopper().Set(value);
  return 1;
}

uint64_t fake_cuda_get(const char* setting) {
  State& state = GetState();
  MutexLock lock(&state.mu);
  const auto found = state.settings.find(setting);
  return found == state.settings.end() ? 0 : found->second;
}

uint64_t fake_cuda_calls(const char* symbol) {
  State& state = GetState();
  MutexLock lock(&state.mu);
  const auto found = state.calls.find(symbol);
  return found == state.calls.end() ? 0 : found->second;
}

int64_t fake_cuda_count(const char* what) {
  State& state = GetState();
  MutexLock lock(&state.mu);
  if (std::strcmp(what, "*") == 0) {
    int64_t all = 0;
    for (const auto& [name, count] : state.counts)
      if (!IsTotal(name)) all += count;
    return all;
  }
  const auto found = state.counts.find(what);
  return found == state.counts.end() ? 0 : found->second;
}

uint64_t fake_cuda_violations() {
  State& state = GetState();
  MutexLock lock(&state.mu);
  return state.violation_count;
}

const char* fake_cuda_violation(uint64_t index) {
  State& state = GetState();
  MutexLock lock(&state.mu);
  return index < state.violations.size() ? state.violations[index].c_str()
                                         : nullptr;
}

void fake_cuda_forget_violations() {
  State& state = GetState();
  MutexLock lock(&state.mu);
  state.violations.clear();
  state.violation_count = 0;
}

void fake_cuda_hold() { leat::fake_cuda::StreamGate().Shut(); }
void fake_cuda_release() { leat::fake_cuda::StreamGate().Open(); }

void fake_cuda_kernel(const char* name, int params,
                      void (*run)(const uint64_t* params, unsigned threads)) {
  State& state = GetState();
  MutexLock lock(&state.mu);
  state.kernels.push_back({.name = name, .params = params, .run = run});
}

int fake_cuda_enter(const char* symbol, int* code) {
  *code = static_cast<int>(GetState().Enter(symbol, false));
  // nvJPEG has no code for a spoilt context.
  if (static_cast<leat::cuda::Result>(*code) >= Result::kStubLibrary)
    *code = static_cast<int>(leat::cuda::NvjpegResult::kExecutionFailed);
  return *code == 0;
}

void fake_cuda_add(const char* what, int64_t delta) {
  State& state = GetState();
  MutexLock lock(&state.mu);
  state.counts[what] += delta;
}

void fake_cuda_violate(const char* text) {
  State& state = GetState();
  MutexLock lock(&state.mu);
  state.Violate("nvJPEG", text);
}

int fake_cuda_has_context() { return leat::fake_cuda::CurrentDevice() >= 0; }

int fake_cuda_is_device(const void* memory, size_t bytes) {
  State& state = GetState();
  MutexLock lock(&state.mu);
  return state.IsDeviceMemory(reinterpret_cast<uintptr_t>(memory), bytes);
}

int fake_cuda_is_pinned(const void* memory, size_t bytes) {
  State& state = GetState();
  MutexLock lock(&state.mu);
  return state.IsPinned(reinterpret_cast<uintptr_t>(memory), bytes);
}

int fake_cuda_enqueue(void* stream, void (*run)(void*), void* argument) {
  return leat::fake_cuda::Enqueue(
             "nvJPEG", static_cast<leat::cuda::Stream>(stream),
             {.run = [=] { run(argument); }}) == Result::kSuccess;
}

void* fake_cuda_engines() { return new leat::fake_cuda::StreamThread; }

void fake_cuda_engines_free(void* engines) {
  delete static_cast<leat::fake_cuda::StreamThread*>(engines);
}

int fake_cuda_engines_run(void* engines, void* stream, void (*run)(void*),
                          void* const* arguments, size_t count) {
  auto* const thread = static_cast<leat::fake_cuda::StreamThread*>(engines);
  auto done = std::make_shared<leat::fake_cuda::Marker>();
  if (leat::fake_cuda::Enqueue(
          "nvJPEG", static_cast<leat::cuda::Stream>(stream),
          {.run = [done] { done->Wait(); }}) != Result::kSuccess)
    return 0;
  for (size_t i = 0; i < count; ++i)
    thread->Append([run, argument = arguments[i]] { run(argument); });
  thread->Append([done] { done->Set(); });
  return 1;
}
