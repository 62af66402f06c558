// SPDX-License-Identifier: Apache-2.0
//
// FakeCuda controls the fake driver and nvJPEG in this process. Their paths are
// compiled in: LEAT_FAKE_CUDA_FOLDER.
#pragma once

#include <dlfcn.h>

#include <cstdlib>
#include <string>

#include "cuda/library.h"
#include "cuda/types.h"
#include "gtest/gtest.h"
#include "tests/support/fake_cuda/fake_cuda.h"

namespace leat::testing {

struct FakeCuda {
  FakeCuda() {
    const std::string folder = LEAT_FAKE_CUDA_FOLDER;
    search.cuda_library = folder + "/libcuda.so.1";
    search.nvjpeg_library = folder + "/libnvjpeg.so.13";
    // nodelete: the library stays loaded until the process ends.
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
    Bind(handle, "fake_cuda_hold_stream", &hold_stream);
    Bind(handle, "fake_cuda_release_stream", &release_stream);
    Bind(handle, "fake_cuda_reads", &reads);
    Bind(handle, "cuStreamBeginCapture_v2", &begin_capture);
    Bind(handle, "cuStreamEndCapture", &end_capture);
    Bind(handle, "cuGraphInstantiateWithFlags", &graph_instantiate);
    Bind(handle, "cuGraphLaunch", &graph_launch);
    Bind(handle, "cuGraphDestroy", &graph_destroy);
    reset();
  }

  // Returns the first violation; empty: there is none.
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
  decltype(&fake_cuda_hold_stream) hold_stream;
  decltype(&fake_cuda_release_stream) release_stream;
  decltype(&fake_cuda_reads) reads;
  // Functions that a trainer calls, and Leat does not. A graph that can be
  // launched is destroyed in the same way as one that cannot.
  using Graph = void*;
  cuda::Result (*begin_capture)(cuda::Stream, cuda::CaptureMode);
  cuda::Result (*end_capture)(cuda::Stream, Graph*);
  cuda::Result (*graph_instantiate)(Graph* exec, Graph, cuda::LongFlags);
  cuda::Result (*graph_launch)(Graph exec, cuda::Stream);
  cuda::Result (*graph_destroy)(Graph);

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
