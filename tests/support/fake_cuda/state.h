// SPDX-License-Identifier: Apache-2.0
//
// State: the fake driver's state; one per process, never destroyed.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/mutex.h"
#include "cuda/types.h"
#include "tests/support/fake_cuda/stream.h"
#include "tests/support/fake_cuda/work.h"

namespace leat::fake_cuda {

using cuda::Result;

struct Fault {
  std::string symbol;  // "*": any
  uint64_t at = 0;     // counted from 1
  bool onwards = false;
  Result code = Result::kUnknown;
};

// A range of memory and its owner.
struct Range {
  size_t bytes = 0;
  int device = 0;
  bool accessible = true;
};
using Ranges = std::map<uintptr_t, Range>;
// True if [at, at + bytes) lies in one range.
bool Holds(const Ranges& ranges, uintptr_t at, size_t bytes);

struct Kernel {
  std::string name;
  int params = 1;
  // nullptr: one of Leat's kernels.
  void (*run)(const uint64_t* params, unsigned threads) = nullptr;
};

struct ModuleObject {
  int device = 0;
  std::vector<uint64_t> functions;
};
struct FunctionObject {
  int device = 0;
  Kernel kernel;
};
struct EventObject {
  int device = 0;
  bool timing = true;
  bool sleeps = false;                // a waiting host sleeps
  std::shared_ptr<Marker> marker;     // the last record's
  std::shared_ptr<Capture> captured;  // the last record was a part of it
};
struct StreamEntry {
  int device = 0;
  bool blocking = true;  // as the legacy stream, and streams of flags 0
  std::shared_ptr<StreamThread> thread;
  std::shared_ptr<Capture> capture;  // the capture that it is a part of
};
// Memory of cuMemCreate.
struct Allocation {
  int fd = -1;
  size_t bytes = 0;
  int device = 0;
  bool imported = false;
  cuda::HandleType exported_as = cuda::HandleType::kNone;
  int users = 1;  // the handle and mappings
};
struct Mapping {
  size_t bytes = 0;
  uint64_t allocation = 0;
};

struct State {
  Mutex mu;
  std::map<std::string, uint64_t> settings ABSL_GUARDED_BY(mu);
  std::string name ABSL_GUARDED_BY(mu);
  std::vector<Fault> faults ABSL_GUARDED_BY(mu);
  std::map<std::string, uint64_t> calls ABSL_GUARDED_BY(mu);
  std::map<std::string, int64_t> counts ABSL_GUARDED_BY(mu);
  std::vector<std::string> violations ABSL_GUARDED_BY(mu);
  uint64_t violation_count ABSL_GUARDED_BY(mu) = 0;
  Result poison ABSL_GUARDED_BY(mu) = Result::kSuccess;
  bool initialised ABSL_GUARDED_BY(mu) = false;
  uint64_t next_handle ABSL_GUARDED_BY(mu) = 0x1000;

  std::map<int, int> contexts ABSL_GUARDED_BY(mu);  // retains of a device
  std::map<int, uint64_t> used_bytes ABSL_GUARDED_BY(mu);  // of a device
  uint64_t pinned_bytes ABSL_GUARDED_BY(mu) = 0;
  uint64_t pinned_requests ABSL_GUARDED_BY(mu) = 0;
  cuda::Flags context_flags ABSL_GUARDED_BY(mu) = 0;
  Ranges allocations ABSL_GUARDED_BY(mu);  // of cuMemAlloc
  Ranges mapped ABSL_GUARDED_BY(mu);       // virtual memory in use
  Ranges pinned ABSL_GUARDED_BY(mu);       // of cuMemHostAlloc
  Ranges registered ABSL_GUARDED_BY(mu);
  Ranges reserved ABSL_GUARDED_BY(mu);
  std::map<uint64_t, Allocation> handles ABSL_GUARDED_BY(mu);
  std::map<uintptr_t, Mapping> mappings ABSL_GUARDED_BY(mu);
  std::map<uint64_t, StreamEntry> streams ABSL_GUARDED_BY(mu);
  std::map<uint64_t, EventObject> events ABSL_GUARDED_BY(mu);
  std::map<uint64_t, ModuleObject> modules ABSL_GUARDED_BY(mu);
  std::map<uint64_t, FunctionObject> functions ABSL_GUARDED_BY(mu);
  std::vector<Kernel> kernels ABSL_GUARDED_BY(mu);
  std::vector<std::shared_ptr<Capture>> captures ABSL_GUARDED_BY(mu);
  std::map<uint64_t, std::vector<Work>> graphs ABSL_GUARDED_BY(mu);

  // Counts the call. Returns what it must return, or kSuccess: go on.
  Result Enter(const char* symbol, bool needs_init = true);
  // `spoilt`: receives the streams whose context this call spoils.
  Result Count(const char* symbol, bool needs_init,
               std::vector<std::shared_ptr<StreamThread>>* spoilt);
  Result Violate(const char* symbol, const std::string& what,
                 Result code = Result::kInvalidValue)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // The call cannot be a part of the capture, and ends it.
  Result Spoil(const char* symbol, const std::shared_ptr<Capture>& capture,
               Result code) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // True if a stream is captured that the legacy stream waits for.
  bool ImplicitCapture(int device) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  uint64_t NewHandle() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    return next_handle += 16;
  }
  bool IsDeviceMemory(uintptr_t at, size_t bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  bool IsPinned(uintptr_t at, size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Takes `bytes` of a device's memory. False: too little is left.
  bool Take(int device, size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Takes `bytes` of page-lockable memory. False: too little is left, or it is
  // this request's turn to be refused.
  bool TakePinned(size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Returns all streams' threads, to wait for without the lock.
  std::vector<std::shared_ptr<StreamThread>> Threads(int device)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  void ReadEnvironment() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
};

State& GetState();

// The device of the calling thread's current context; -1: none.
int CurrentDevice();

// Appends work to the stream, or to the graph that it is captured into;
// kInvalidHandle: unknown, or of another context. `wait`: returns when it has
// run. Records violations.
Result Enqueue(const char* symbol, cuda::Stream stream, Work work,
               bool wait = false, bool own_context = true);
// Finds the stream's thread, and the capture it belongs to, or nullptr. The
// handle need not be of the current context.
Result Find(const char* symbol, cuda::Stream stream,
            std::shared_ptr<StreamThread>* thread, bool own_context = false,
            std::shared_ptr<Capture>* capture = nullptr);
// Returns the error of a call that this thread may not make while a stream is
// captured ("potentially unsafe" in CUDA's words), or kSuccess.
Result CheckUnsafe(const char* symbol);

template <class T>
uint64_t HandleOf(T handle) {
  return reinterpret_cast<uintptr_t>(handle);
}
template <class T>
T AsHandle(uint64_t handle) {
  return reinterpret_cast<T>(static_cast<uintptr_t>(handle));
}

}  // namespace leat::fake_cuda

// Counts the call of the enclosing function; returns the code that was set for
// it.
#define FAKE_ENTER()                                                 \
  do {                                                               \
    const ::leat::cuda::Result entered_ =                            \
        ::leat::fake_cuda::GetState().Enter(__func__);               \
    if (entered_ != ::leat::cuda::Result::kSuccess) return entered_; \
  } while (false)
// The same, for a call that is unsafe while a stream is captured.
#define FAKE_ENTER_UNSAFE()                                    \
  FAKE_ENTER();                                                \
  do {                                                         \
    const ::leat::cuda::Result safe_ =                         \
        ::leat::fake_cuda::CheckUnsafe(__func__);              \
    if (safe_ != ::leat::cuda::Result::kSuccess) return safe_; \
  } while (false)
// The same, and the thread must have a current context, whose device is `name`.
#define FAKE_ENTER_CONTEXT(name) \
  FAKE_ENTER();                  \
  FAKE_CONTEXT(name)
#define FAKE_ENTER_UNSAFE_CONTEXT(name) \
  FAKE_ENTER_UNSAFE();                  \
  FAKE_CONTEXT(name)
#define FAKE_CONTEXT(name)                                              \
  [[maybe_unused]] const int name = ::leat::fake_cuda::CurrentDevice(); \
  if (name < 0) return ::leat::cuda::Result::kInvalidContext
