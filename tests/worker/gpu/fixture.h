// SPDX-License-Identifier: Apache-2.0
//
// GpuTest: a GPU worker on the fake driver.
#pragma once

#include <dlfcn.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/worker/gpu/groups/group_test.h"

namespace leat::worker {

// Controls the fake driver (tests/support/fake_cuda/fake_cuda.h).
class FakeCuda {
  template <class Signature, class... Args>
  auto Call(const char* name, Args... args) {
    auto* const function = reinterpret_cast<Signature*>(dlsym(library_, name));
    if (function == nullptr) std::abort();
    return function(args...);
  }

 public:
  explicit FakeCuda(void* library) : library_(library) {}

  // Restores the environment's settings.
  void Reset() { Call<void()>("fake_cuda_reset"); }
  // Resets the totals.
  void Forget() { Call<void()>("fake_cuda_forget"); }
  void Fail(const char* symbol, uint64_t nth, bool onwards, int code) {
    Call<void(const char*, uint64_t, int, int)>("fake_cuda_fail", symbol, nth,
                                                int{onwards}, code);
  }
  void Set(const char* setting, uint64_t value) {
    Call<int(const char*, uint64_t)>("fake_cuda_set", setting, value);
  }
  uint64_t Get(const char* setting) {
    return Call<uint64_t(const char*)>("fake_cuda_get", setting);
  }
  // While held, streams and engines begin nothing new.
  void Hold() { Call<void()>("fake_cuda_hold"); }
  void Release() { Call<void()>("fake_cuda_release"); }
  int64_t Count(const char* what) {
    return Call<int64_t(const char*)>("fake_cuda_count", what);
  }
  uint64_t Calls(const char* symbol) {
    return Call<uint64_t(const char*)>("fake_cuda_calls", symbol);
  }
  // Returns how many allocations, streams, states … were not released.
  int64_t Live() { return Call<int64_t(const char*)>("fake_cuda_count", "*"); }
  // Returns the forbidden calls that the driver received.
  std::vector<std::string> Violations() {
    std::vector<std::string> texts;
    const uint64_t count = Call<uint64_t()>("fake_cuda_violations");
    for (uint64_t i = 0; i < count; ++i) {
      const char* text = Call<const char*(uint64_t)>("fake_cuda_violation", i);
      if (text != nullptr) texts.emplace_back(text);
    }
    return texts;
  }

 private:
  void* const library_;
};

class GpuTest : public GroupTest {
 protected:
  GpuTest() {
    if (const char* path = std::getenv("LEAT_CUDA_LIBRARY"))
      if (void* library = dlopen(path, RTLD_NOW))
        fake_ = std::make_unique<FakeCuda>(library);
  }
  ~GpuTest() override { Close(); }
  void SetUp() override {
    if (fake_ == nullptr)
      GTEST_SKIP() << "LEAT_CUDA_LIBRARY does not name the fake driver";
    fake_->Reset();
  }
  void WithoutEngines() { fake_->Set("engines", 0); }
  void WithGpus(uint64_t count) { fake_->Set("devices", count); }
  void Open() {
    fake_->Set("roi", regions_);
    fake_->Set("scale", scales_);
    Use(GpuWorker::Open(config_, {}, wake_, OnFatal()));
    fake_->Forget();  // images decoded by the decoder's trial
  }
  // Checks that nothing is left over, and that no call was forbidden.
  void Close() {
    if (fake_ == nullptr) return;
    gpus_.reset();
    if (fatal_.ok()) {
      EXPECT_EQ(fake_->Live(), 0);
    }
    for (const std::string& violation : fake_->Violations())
      ADD_FAILURE() << violation;
    fake_->Reset();
  }

  // The engines' abilities. Scales give other bytes than the CPU's.
  bool regions_ = true, scales_ = false;
  std::unique_ptr<FakeCuda> fake_;
};

}  // namespace leat::worker
