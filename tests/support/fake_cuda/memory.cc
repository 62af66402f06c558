// SPDX-License-Identifier: Apache-2.0
//
// Memory and copies of the fake driver. Device memory is the host's, so that
// address checkers see what lies beyond it.
#include <sanitizer/asan_interface.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "fmt/format.h"
#include "tests/support/fake_cuda/fake_cuda.h"
#include "tests/support/fake_cuda/state.h"

using leat::MutexLock;
using leat::cuda::DevicePtr;
using leat::cuda::Flags;
using leat::cuda::Result;
using leat::cuda::Stream;
using leat::fake_cuda::Enqueue;
using leat::fake_cuda::GetState;
using leat::fake_cuda::Ranges;
using leat::fake_cuda::State;
using leat::fake_cuda::StreamThread;

namespace leat::fake_cuda {
namespace {

constexpr size_t kDeviceAlignment = 512;
constexpr size_t kPage = 4096;

size_t RoundUp(size_t bytes, size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

// Large blocks are mapped, with an inaccessible page after them. For an
// ordinary block a sanitizer sets or walks through the whole shadow, which took
// most of the time of tests whose worker has a GiB that no test touches.
constexpr size_t kMapped = size_t{1} << 20;

void* NewBlock(size_t alignment, size_t bytes) {
  if (bytes < kMapped)
    return std::aligned_alloc(alignment, RoundUp(bytes, alignment));
  const size_t pages = RoundUp(bytes, kPage);
  void* const block = mmap(nullptr, pages + kPage, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (block == MAP_FAILED) return nullptr;
  char* const end = static_cast<char*>(block) + pages;
  if (mprotect(end, kPage, PROT_NONE) != 0) std::abort();
  ASAN_POISON_MEMORY_REGION(static_cast<char*>(block) + bytes, pages - bytes);
  return block;
}

void FreeBlock(void* block, size_t bytes) {
  if (bytes < kMapped) {
    std::free(block);
    return;
  }
  const size_t pages = RoundUp(bytes, kPage);
  ASAN_UNPOISON_MEMORY_REGION(block, pages);
  munmap(block, pages + kPage);
}

// Waits until the device's streams are empty, as freeing does.
void DrainDevice(int device) {
  State& state = GetState();
  std::vector<std::shared_ptr<StreamThread>> threads;
  {
    MutexLock lock(&state.mu);
    threads = state.Threads(device);
  }
  for (const auto& thread : threads) thread->Drain();
}

uintptr_t AddressOf(const void* memory) {
  return reinterpret_cast<uintptr_t>(memory);
}

// Removes a range. 0 bytes: there is no such range.
Range TakeOut(Ranges* ranges, uintptr_t at) {
  const auto found = ranges->find(at);
  if (found == ranges->end()) return {};
  const Range range = found->second;
  ranges->erase(found);
  return range;
}

// Returns what an allocation takes of the device: whole pages, or a part of
// one.
uint64_t Footprint(uint64_t bytes) {
  constexpr uint64_t kDevicePage = uint64_t{2} << 20;
  return RoundUp(bytes,
                 bytes < kDevicePage / 2 ? kDeviceAlignment : kDevicePage);
}

// Copies on the stream, after checking device ranges. Copies of pageable host
// memory are done on return, as the driver stages them.
Result Copy(const char* symbol, uintptr_t to, bool to_device, uintptr_t from,
            bool from_device, size_t bytes, Stream stream) {
  State& state = GetState();
  bool pageable = false;
  {
    MutexLock lock(&state.mu);
    if (to_device && !state.IsDeviceMemory(to, bytes))
      return state.Violate(symbol,
                           fmt::format("{} bytes beyond device memory", bytes));
    if (from_device && !state.IsDeviceMemory(from, bytes))
      return state.Violate(symbol,
                           fmt::format("{} bytes beyond device memory", bytes));
    if (!to_device) pageable = !state.IsPinned(to, bytes);
    if (!from_device) pageable = !state.IsPinned(from, bytes);
    if (pageable) ++state.counts["pageable_copies"];
  }
  return Enqueue(symbol, stream,
                 {.run =
                      [=] {
                        std::memcpy(reinterpret_cast<void*>(to),
                                    reinterpret_cast<const void*>(from), bytes);
                      },
                  .reads = {{from, bytes}},
                  .writes = {{to, bytes}}},
                 pageable);
}

}  // namespace
}  // namespace leat::fake_cuda

using namespace leat::fake_cuda;  // NOLINT: what the C functions stand on

extern "C" {

Result cuMemAlloc_v2(DevicePtr* pointer, size_t bytes) {
  FAKE_ENTER_UNSAFE_CONTEXT(device);
  if (bytes == 0) return Result::kInvalidValue;
  State& state = GetState();
  MutexLock lock(&state.mu);
  if (!state.Take(device, Footprint(bytes))) return Result::kOutOfMemory;
  void* const memory = NewBlock(kDeviceAlignment, bytes);
  if (memory == nullptr) {
    state.used_bytes[device] -= Footprint(bytes);
    return Result::kOutOfMemory;
  }
  state.allocations[AddressOf(memory)] = {.bytes = bytes, .device = device};
  ++state.counts["allocations"];
  *pointer = AddressOf(memory);
  return Result::kSuccess;
}

Result cuMemFree_v2(DevicePtr pointer) {
  FAKE_ENTER_UNSAFE_CONTEXT(device);
  if (pointer == 0) return Result::kSuccess;
  DrainDevice(device);
  State& state = GetState();
  MutexLock lock(&state.mu);
  const Range range = TakeOut(&state.allocations, pointer);
  if (range.bytes == 0)
    return state.Violate(__func__, "memory that was not allocated");
  state.used_bytes[range.device] -= Footprint(range.bytes);
  --state.counts["allocations"];
  FreeBlock(reinterpret_cast<void*>(pointer), range.bytes);
  return Result::kSuccess;
}

Result cuMemHostAlloc(void** memory, size_t bytes, Flags flags) {
  FAKE_ENTER_UNSAFE_CONTEXT(device);
  if (bytes == 0 || flags > 7) return Result::kInvalidValue;
  State& state = GetState();
  {
    MutexLock lock(&state.mu);
    if (!state.TakePinned(bytes)) return Result::kOutOfMemory;
  }
  void* const made = NewBlock(kPage, bytes);
  MutexLock lock(&state.mu);
  if (made == nullptr) {
    state.pinned_bytes -= bytes;
    return Result::kOutOfMemory;
  }
  state.pinned[AddressOf(made)] = {.bytes = bytes, .device = device};
  ++state.counts["host_allocations"];
  *memory = made;
  return Result::kSuccess;
}

Result cuMemFreeHost(void* memory) {
  FAKE_ENTER_UNSAFE_CONTEXT(device);
  DrainDevice(device);
  State& state = GetState();
  MutexLock lock(&state.mu);
  const Range range = TakeOut(&state.pinned, AddressOf(memory));
  if (range.bytes == 0)
    return state.Violate(__func__, "memory that was not allocated");
  state.pinned_bytes -= range.bytes;
  --state.counts["host_allocations"];
  FreeBlock(memory, range.bytes);
  return Result::kSuccess;
}

Result cuMemHostRegister_v2(void* memory, size_t bytes, Flags flags) {
  FAKE_ENTER_UNSAFE_CONTEXT(device);
  if (memory == nullptr || bytes == 0 || flags > 15)
    return Result::kInvalidValue;
  State& state = GetState();
  // Like page-locking, but without a lock of the driver's.
  std::this_thread::sleep_for(
      std::chrono::milliseconds(fake_cuda_get("register_ms")));
  MutexLock lock(&state.mu);
  if (!state.TakePinned(bytes)) return Result::kOutOfMemory;
  const uintptr_t at = AddressOf(memory);
  for (const auto& [start, range] : state.registered)
    if (at < start + range.bytes && start < at + bytes) {
      state.pinned_bytes -= bytes;
      return Result::kHostMemoryAlreadyRegistered;
    }
  state.registered[at] = {.bytes = bytes, .device = device};
  ++state.counts["registrations"];
  return Result::kSuccess;
}

Result cuMemHostUnregister(void* memory) {
  FAKE_ENTER_UNSAFE_CONTEXT(device);
  State& state = GetState();
  // Callers may rely neither on its waiting nor on its not waiting.
  const bool trainer = fake_cuda_get("trainer") != 0;
  if (!trainer) DrainDevice(device);
  if (trainer && StreamTraffic().Touches({AddressOf(memory), 1})) {
    MutexLock lock(&state.mu);
    return state.Violate(__func__, "memory that queued work has still to use");
  }
  MutexLock lock(&state.mu);
  const Range range = TakeOut(&state.registered, AddressOf(memory));
  if (range.bytes == 0)
    return state.Violate(__func__, "memory that was not registered",
                         Result::kHostMemoryNotRegistered);
  state.pinned_bytes -= range.bytes;
  --state.counts["registrations"];
  return Result::kSuccess;
}

Result cuMemGetInfo_v2(size_t* free_bytes, size_t* total) {
  FAKE_ENTER_UNSAFE_CONTEXT(device);
  State& state = GetState();
  MutexLock lock(&state.mu);
  *total = state.settings["memory"];
  *free_bytes = *total - std::min<size_t>(*total, state.used_bytes[device]);
  return Result::kSuccess;
}

Result cuMemcpyHtoDAsync_v2(DevicePtr to, const void* from, size_t bytes,
                            Stream stream) {
  FAKE_ENTER_CONTEXT(device);
  return Copy(__func__, to, true, AddressOf(from), false, bytes, stream);
}

Result cuMemcpyDtoHAsync_v2(void* to, DevicePtr from, size_t bytes,
                            Stream stream) {
  FAKE_ENTER_CONTEXT(device);
  return Copy(__func__, AddressOf(to), false, from, true, bytes, stream);
}

Result cuMemcpyDtoDAsync_v2(DevicePtr to, DevicePtr from, size_t bytes,
                            Stream stream) {
  FAKE_ENTER_CONTEXT(device);
  return Copy(__func__, to, true, from, true, bytes, stream);
}

Result cuMemsetD8Async(DevicePtr to, unsigned char value, size_t bytes,
                       Stream stream) {
  FAKE_ENTER_CONTEXT(device);
  State& state = GetState();
  {
    MutexLock lock(&state.mu);
    if (!state.IsDeviceMemory(to, bytes))
      return state.Violate(__func__,
                           fmt::format("{} bytes beyond device memory", bytes));
  }
  return Enqueue(
      __func__, stream,
      {.run = [=] { std::memset(reinterpret_cast<void*>(to), value, bytes); },
       .reads = {},
       .writes = {{to, bytes}}});
}

}  // extern "C"
