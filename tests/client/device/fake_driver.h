// SPDX-License-Identifier: Apache-2.0
//
// The controls of the fake CUDA driver that LEAT_CUDA_LIBRARY names
// (tests/support/fake_cuda/fake_cuda.h).
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <type_traits>

#include "gtest/gtest.h"

namespace leat::client {

struct FakeDriver {
  void (*Reset)();
  void (*fail)(const char* symbol, uint64_t nth, int onwards, int code);
  int (*set)(const char* setting, uint64_t value);
  uint64_t (*calls)(const char* symbol);
  int64_t (*count)(const char* what);
  uint64_t (*violations)();
  const char* (*violation)(uint64_t index);
  void (*hold)();
  void (*release)();

  static FakeDriver& Get() {
    static FakeDriver fake = Load();
    return fake;
  }
  // Nothing of the device is live, and nothing was done that must not be.
  void ExpectClean() const {
    EXPECT_EQ(count("*"), 0);
    for (uint64_t i = 0; i < violations(); ++i)
      ADD_FAILURE() << (violation(i) != nullptr ? violation(i) : "and more");
  }

 private:
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
    find("fake_cuda_reset", &fake.Reset);
    find("fake_cuda_fail", &fake.fail);
    find("fake_cuda_set", &fake.set);
    find("fake_cuda_calls", &fake.calls);
    find("fake_cuda_count", &fake.count);
    find("fake_cuda_violations", &fake.violations);
    find("fake_cuda_violation", &fake.violation);
    find("fake_cuda_hold", &fake.hold);
    find("fake_cuda_release", &fake.release);
    return fake;
  }
};

}  // namespace leat::client
