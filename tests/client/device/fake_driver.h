// SPDX-License-Identifier: Apache-2.0
//
// FakeDriver holds the functions that control the fake CUDA driver, which the
// tests of client/device load in place of CUDA (tests/support/fake_cuda/).
//
// The process has one, made by the first Get. Its functions may be called by any
// thread. If LEAT_CUDA_LIBRARY names no fake driver, or one that lacks a
// function, the test program ends.
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <type_traits>

#include "cuda/types.h"
#include "gtest/gtest.h"

namespace leat::client {

struct FakeDriver {
  // Resets to the environment's settings, in a trainer's process: a graph is
  // being captured at all times, and memory that queued work still reads is
  // watched.
  void Reset() const {
    reset();
    set("trainer", 1);
  }
  void (*fail)(const char* symbol, uint64_t nth, int onwards, int code);
  int (*set)(const char* setting, uint64_t value);
  uint64_t (*calls)(const char* symbol);
  int64_t (*count)(const char* what);
  uint64_t (*violations)();
  const char* (*violation)(uint64_t index);
  void (*forget_violations)();
  void (*hold)();
  void (*release)();
  void (*hold_stream)(void* stream);
  void (*release_stream)(void* stream);
  int (*reads)(void* stream, const void* memory, size_t bytes);
  // Functions that a trainer calls, and Leat does not.
  using Graph = void*;
  cuda::Result (*begin_capture)(cuda::Stream, cuda::CaptureMode);
  cuda::Result (*end_capture)(cuda::Stream, Graph*);
  cuda::Result (*graph_instantiate)(Graph* exec, Graph, cuda::LongFlags);
  cuda::Result (*graph_launch)(Graph exec, cuda::Stream);
  cuda::Result (*graph_destroy)(Graph);  // also for launchable graphs

  static FakeDriver& Get() {
    static FakeDriver fake = Load();
    return fake;
  }
  // Expects that nothing of the device is live, and that no rule was violated.
  void ExpectClean() const {
    EXPECT_EQ(count("*"), 0);
    for (uint64_t i = 0; i < violations(); ++i)
      ADD_FAILURE() << (violation(i) != nullptr ? violation(i) : "and more");
  }

 private:
  void (*reset)();

  static FakeDriver Load() {
    const char* const path = std::getenv("LEAT_CUDA_LIBRARY");
    void* const library =
        path != nullptr ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
    if (library == nullptr) {
      ADD_FAILURE() << "LEAT_CUDA_LIBRARY: "
                    << (path != nullptr ? dlerror() : "not set");
      std::abort();
    }
    FakeDriver fake{};
    const auto find = [library](const char* name, auto* function) {
      *function = reinterpret_cast<std::remove_pointer_t<decltype(function)>>(
          dlsym(library, name));
      if (*function == nullptr) std::abort();
    };
    find("fake_cuda_reset", &fake.reset);
    find("fake_cuda_fail", &fake.fail);
    find("fake_cuda_set", &fake.set);
    find("fake_cuda_calls", &fake.calls);
    find("fake_cuda_count", &fake.count);
    find("fake_cuda_violations", &fake.violations);
    find("fake_cuda_violation", &fake.violation);
    find("fake_cuda_forget_violations", &fake.forget_violations);
    find("fake_cuda_hold", &fake.hold);
    find("fake_cuda_release", &fake.release);
    find("fake_cuda_hold_stream", &fake.hold_stream);
    find("fake_cuda_release_stream", &fake.release_stream);
    find("fake_cuda_reads", &fake.reads);
    find("cuStreamBeginCapture_v2", &fake.begin_capture);
    find("cuStreamEndCapture", &fake.end_capture);
    find("cuGraphInstantiateWithFlags", &fake.graph_instantiate);
    find("cuGraphLaunch", &fake.graph_launch);
    find("cuGraphDestroy", &fake.graph_destroy);
    return fake;
  }
};

}  // namespace leat::client
