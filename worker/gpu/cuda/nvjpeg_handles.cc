// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu/cuda/nvjpeg_handles.h"

#include <algorithm>
#include <utility>

#include "core/status.h"
#include "worker/gpu/cuda/device.h"

namespace leat::worker {
namespace {

thread_local NvjpegMemory* in_use = nullptr;

}  // namespace

NvjpegHandles::Use::Use(NvjpegMemory* memory)
    : before_(std::exchange(in_use, memory)) {}

NvjpegHandles::Use::~Use() { in_use = before_; }

template <KeptBlocks& (NvjpegMemory::*kBlocks)()>
int NvjpegHandles::Take(void* handles, void** memory, size_t bytes,
                        cuda::Stream) {
  auto& self = *static_cast<NvjpegHandles*>(handles);
  NvjpegMemory* from = in_use;
  if (from == nullptr) {
    MutexLock lock(&self.mu_);
    from = self.memories_.front().get();
  }
  *memory = (from->*kBlocks)().Take(bytes);
  return *memory == nullptr;
}

// A block goes back to the memory that it was taken from, on any thread.
template <KeptBlocks& (NvjpegMemory::*kBlocks)()>
int NvjpegHandles::GiveBack(void* handles, void* memory, size_t, cuda::Stream) {
  auto& self = *static_cast<NvjpegHandles*>(handles);
  MutexLock lock(&self.mu_);
  return std::none_of(self.memories_.begin(), self.memories_.end(),
                      [memory](const std::unique_ptr<NvjpegMemory>& owner) {
                        return ((*owner).*kBlocks)().GiveBack(memory);
                      });
}

NvjpegHandles::NvjpegHandles(const NvjpegDevice& device)
    : device_(device),
      device_allocator_{Take<&NvjpegMemory::device_blocks>,
                        GiveBack<&NvjpegMemory::device_blocks>, this},
      pinned_allocator_{Take<&NvjpegMemory::pinned_blocks>,
                        GiveBack<&NvjpegMemory::pinned_blocks>, this} {}

absl::StatusOr<std::shared_ptr<NvjpegHandles>> NvjpegHandles::Create(
    const NvjpegDevice& device, uint64_t most_bytes, NvjpegMemory** first) {
  std::shared_ptr<NvjpegHandles> handles(new NvjpegHandles(device));
  *first = handles->AddMemory(most_bytes);
  if (device.engines)
    RETURN_IF_ERROR(
        handles->Open(cuda::NvjpegBackend::kHardware, &handles->engines_));
  RETURN_IF_ERROR(
      handles->Open(cuda::NvjpegBackend::kDefault, &handles->cuda_));
  return handles;
}

NvjpegHandles::~NvjpegHandles() {
  for (const cuda::NvjpegHandle handle : {engines_, cuda_})
    if (handle != nullptr)
      device_.gpu->Released(device_.nvjpeg->Destroy(handle), "nvjpegDestroy");
}

absl::Status NvjpegHandles::Open(cuda::NvjpegBackend backend,
                                 cuda::NvjpegHandle* handle) {
  const cuda::Nvjpeg& n = *device_.nvjpeg;
  return cuda::Check(n.CreateExV2(backend, &device_allocator_,
                                  &pinned_allocator_, NvjpegFlags(n), handle),
                     "nvjpegCreateExV2");
}

NvjpegMemory* NvjpegHandles::AddMemory(uint64_t most_bytes) {
  MutexLock lock(&mu_);
  memories_.push_back(
      std::make_unique<NvjpegMemory>(device_.gpu, most_bytes, most_bytes));
  return memories_.back().get();
}

}  // namespace leat::worker
