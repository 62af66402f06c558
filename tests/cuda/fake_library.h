// SPDX-License-Identifier: Apache-2.0
//
// FakeCuda: the fake driver and nvJPEG in this process, and how to steer them.
// Their paths are compiled in: LEAT_FAKE_CUDA_FOLDER.
#pragma once

#include <dlfcn.h>

#include <cstdlib>
#include <string>

#include "cuda/library.h"
#include "gtest/gtest.h"
#include "tests/support/fake_cuda/fake_cuda.h"

namespace leat::testing {

struct FakeCuda {
  FakeCuda() {
    const std::string folder = LEAT_FAKE_CUDA_FOLDER;
    search.cuda_library = folder + "/libcuda.so.1";
    search.nvjpeg_library = folder + "/libnvjpeg.so.13";
    // nodelete: the library stays for the process.
    void* const handle = dlopen(search.cuda_library.c_str(), RTLD_NOW);
    if (handle == nullptr) {
      ADD_FAILURE() << dlerror();
      std::abort();
    }
    Bind(handle, "fake_cuda_reset", &reset);
    Bind(handle, "fake_cuda_fail", &fail);
    Bind(handle, "fake_cuda_set", &set);
    Bind(handle, "fake_cuda_calls", &calls);
    Bind(handle, "fake_cuda_count", &count);
    Bind(handle, "fake_cuda_violations", &violations);
    Bind(handle, "fake_cuda_violation", &violation);
    Bind(handle, "fake_cuda_hold", &hold);
    Bind(handle, "fake_cuda_release", &release);
    Bind(handle, "fake_cuda_kernel", &kernel);
    reset();
  }

  // The first violation; empty: none.
  std::string FirstViolation() const {
    const char* const text = violation(0);
    return text == nullptr ? "" : text;
  }

  cuda::LibrarySearch search;
  decltype(&fake_cuda_reset) reset;
  decltype(&fake_cuda_fail) fail;
  decltype(&fake_cuda_set) set;
  decltype(&fake_cuda_calls) calls;
  decltype(&fake_cuda_count) count;
  decltype(&fake_cuda_violations) violations;
  decltype(&fake_cuda_violation) violation;
  decltype(&fake_cuda_hold) hold;
  decltype(&fake_cuda_release) release;
  decltype(&fake_cuda_kernel) kernel;

 private:
  template <class F>
  static void Bind(void* handle, const char* symbol, F* function) {
    *function = reinterpret_cast<F>(dlsym(handle, symbol));
    if (*function == nullptr) {
      ADD_FAILURE() << symbol;
      std::abort();
    }
  }
};

}  // namespace leat::testing
