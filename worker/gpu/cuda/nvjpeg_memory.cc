// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu/cuda/nvjpeg_memory.h"

#include <algorithm>
#include <bit>

#include "worker/gpu/cuda/device.h"

namespace leat::worker {
namespace {

constexpr size_t kLeastBlock = size_t{64} << 10;

// Returns up to a quarter more than `bytes`, so that images of similar sizes
// share blocks.
size_t BlockBytes(size_t bytes) {
  if (bytes <= kLeastBlock) return kLeastBlock;
  const size_t step = std::bit_floor(bytes) / 4;
  return (bytes + step - 1) / step * step;
}

int TakeBlock(void* blocks, void** memory, size_t bytes, cuda::Stream) {
  *memory = static_cast<KeptBlocks*>(blocks)->Take(bytes);
  return *memory == nullptr;
}

int GiveBackBlock(void* blocks, void* memory, size_t, cuda::Stream) {
  return !static_cast<KeptBlocks*>(blocks)->GiveBack(memory);
}

}  // namespace

KeptBlocks::KeptBlocks(Kind kind, const CudaDevice* gpu, uint64_t most_bytes)
    : kind_(kind), gpu_(*gpu), most_bytes_(most_bytes) {}

KeptBlocks::~KeptBlocks() {
  MutexLock lock(&mu_);
  for (const auto& [memory, bytes] : taken_) Free(memory);
  for (const auto& [bytes, memory] : given_back_) Free(memory);
  for (const auto& [bytes, memory] : kept_) Free(memory);
}

void* KeptBlocks::Take(size_t bytes) {
  if (bytes > most_bytes_) return nullptr;
  const size_t block = std::min<uint64_t>(BlockBytes(bytes), most_bytes_);
  std::vector<void*> unused;
  bool booked = false;
  {
    MutexLock lock(&mu_);
    if (void* const kept = TakeKept(block)) return kept;
    booked = Book(block, &unused);
  }
  for (void* const memory : unused) Free(memory);
  void* const memory = booked ? Obtain(block) : nullptr;
  MutexLock lock(&mu_);
  if (memory != nullptr)
    taken_[memory] = block;
  else if (booked)
    held_bytes_ -= block;
  return memory;
}

void* KeptBlocks::Obtain(size_t bytes) {
  if (void* const memory = Allocate(bytes)) return memory;
  std::multimap<size_t, void*> unused;
  {
    MutexLock lock(&mu_);
    unused.swap(kept_);
    for (const auto& [size, memory] : unused) held_bytes_ -= size;
  }
  for (const auto& [size, memory] : unused) Free(memory);
  return Allocate(bytes);
}

// Takes the smallest block that is large enough, and not much too large.
void* KeptBlocks::TakeKept(size_t bytes) {
  const auto found = kept_.lower_bound(bytes);
  if (found == kept_.end() || found->first / 2 > bytes) return nullptr;
  void* const memory = found->second;
  taken_[memory] = found->first;
  kept_.erase(found);
  return memory;
}

bool KeptBlocks::Book(size_t bytes, std::vector<void*>* unused) {
  while (held_bytes_ + bytes > most_bytes_ && !kept_.empty()) {
    const auto largest = std::prev(kept_.end());
    held_bytes_ -= largest->first;
    unused->push_back(largest->second);
    kept_.erase(largest);
  }
  if (held_bytes_ + bytes > most_bytes_) return false;
  held_bytes_ += bytes;
  return true;
}

bool KeptBlocks::GiveBack(void* memory) {
  if (memory == nullptr) return true;
  MutexLock lock(&mu_);
  const auto found = taken_.find(memory);
  if (found == taken_.end()) return false;
  given_back_.emplace_back(found->second, memory);
  taken_.erase(found);
  return true;
}

void KeptBlocks::Reclaim() {
  MutexLock lock(&mu_);
  for (const auto& [bytes, memory] : given_back_) kept_.emplace(bytes, memory);
  given_back_.clear();
}

uint64_t KeptBlocks::held_bytes() const {
  MutexLock lock(&mu_);
  return held_bytes_;
}

// nvJPEG reports a failure, with the call that caused it.
void* KeptBlocks::Allocate(size_t bytes) const {
  if (!gpu_.MakeCurrent().ok()) return nullptr;
  if (kind_ == Kind::kPinned)
    return gpu_.AllocatePinned(bytes).value_or(nullptr);
  return cuda::AsPointer(
      gpu_.Allocate(bytes).value_or(DeviceAddress()).number());
}

void KeptBlocks::Free(void* memory) const {
  (void)gpu_.MakeCurrent();
  if (kind_ == Kind::kDevice)
    gpu_.Free(DeviceAddress(reinterpret_cast<uintptr_t>(memory)));
  else
    gpu_.FreePinned(static_cast<std::byte*>(memory));
}

NvjpegMemory::NvjpegMemory(const CudaDevice* gpu, uint64_t most_device_bytes,
                           uint64_t most_pinned_bytes)
    : device_(KeptBlocks::Kind::kDevice, gpu, most_device_bytes),
      pinned_(KeptBlocks::Kind::kPinned, gpu, most_pinned_bytes),
      device_allocator_{TakeBlock, GiveBackBlock, &device_},
      pinned_allocator_{TakeBlock, GiveBackBlock, &pinned_} {}

void NvjpegMemory::Reclaim() {
  device_.Reclaim();
  pinned_.Reclaim();
}

}  // namespace leat::worker
