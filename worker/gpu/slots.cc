// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu/slots.h"

#include <utility>

#include "core/status.h"

namespace leat::worker {
namespace {

constexpr uint64_t kSlotAlignment = 4096;

uint64_t AlignedInSlot(uint64_t bytes) {
  return (bytes + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Slots>> Slots::Create(
    const GpuConfig& config, const Gpu* gpu, const NvjpegDevice* nvjpeg) {
  RETURN_IF_ERROR(gpu->MakeCurrent());
  std::unique_ptr<Slots> slots(new Slots(gpu));
  RETURN_IF_ERROR(slots->Allocate(config, nvjpeg != nullptr));
  for (const std::unique_ptr<Slot>& slot : slots->slots_)
    RETURN_IF_ERROR(slots->Equip(slot.get(), nvjpeg, config.nvjpeg_bytes));
  return slots;
}

absl::Status Slots::Allocate(const GpuConfig& config, bool nvjpeg) {
  const cuda::Driver& d = gpu_.driver();
  const uint64_t pixels = AlignedInSlot(config.slot_bytes);
  const uint64_t results = AlignedInSlot(config.group_bytes);
  const uint64_t images = nvjpeg ? AlignedInSlot(config.decode_bytes) : 0;
  const uint64_t pinned = kSlotBlockBytes + pixels;
  const uint64_t device = pinned + results + images;
  const auto count = static_cast<uint64_t>(config.slots);
  RETURN_IF_ERROR(gpu_.Check(
      d.MemHostAlloc(&pinned_, count * pinned, cuda::kHostAllocPortable),
      fmt::format("cuMemHostAlloc of {} bytes for {} slots", count * pinned,
                  count)
          .c_str()));
  size_t free_bytes = 0, all_bytes = 0;
  d.MemGetInfo(&free_bytes, &all_bytes);
  RETURN_IF_ERROR(gpu_.Check(
      d.MemAlloc(&device_, count * device),
      fmt::format("cuMemAlloc of {} bytes for {} slots, where {} of {} bytes "
                  "are free (fewer --gpu-slots, or less --gpu-decode-bytes "
                  "and --gpu-slot-bytes, take less)",
                  count * device, count, free_bytes, all_bytes)
          .c_str()));
  own_bytes_ = count * device;
  most_device_bytes_ = own_bytes_ + (nvjpeg ? count * config.nvjpeg_bytes : 0);
  for (uint64_t i = 0; i < count; ++i) {
    auto slot = std::make_unique<Slot>();
    std::byte* const host = static_cast<std::byte*>(pinned_) + i * pinned;
    slot->index = static_cast<int>(i);
    slot->block = {host, kSlotBlockBytes};
    slot->pixels = {host + kSlotBlockBytes, pixels};
    slot->device_block = device_ + i * device;
    slot->device_pixels = slot->device_block + kSlotBlockBytes;
    slot->device_outputs = slot->device_pixels + pixels;
    slot->device_images = slot->device_outputs + results;
    slots_.push_back(std::move(slot));
  }
  return absl::OkStatus();
}

absl::Status Slots::Equip(Slot* slot, const NvjpegDevice* nvjpeg,
                          uint64_t nvjpeg_bytes) {
  const cuda::Driver& d = gpu_.driver();
  RETURN_IF_ERROR(
      gpu_.Check(d.StreamCreate(&slot->stream, cuda::kStreamNonBlocking),
                 "cuStreamCreate"));
  RETURN_IF_ERROR(gpu_.Check(
      d.EventCreate(&slot->done,
                    cuda::kEventBlockingSync | cuda::kEventDisableTiming),
      "cuEventCreate"));
  if (nvjpeg != nullptr) {
    ASSIGN_OR_RETURN(slot->nvjpeg, NvjpegSlot::Create(*nvjpeg, nvjpeg_bytes));
  }
  return absl::OkStatus();
}

// What fails here fails because the GPU is lost, and nothing can be done.
Slots::~Slots() {
  const cuda::Driver& d = gpu_.driver();
  (void)gpu_.MakeCurrent();
  for (const std::unique_ptr<Slot>& slot : slots_) {
    if (slot->stream != nullptr) d.StreamSynchronize(slot->stream);
    slot->nvjpeg.reset();
    if (slot->done != nullptr) d.EventDestroy(slot->done);
    if (slot->stream != nullptr) d.StreamDestroy(slot->stream);
  }
  if (device_ != 0) d.MemFree(device_);
  if (pinned_ != nullptr) d.MemFreeHost(pinned_);
}

uint64_t Slots::device_bytes() const {
  uint64_t bytes = own_bytes_;
  for (const std::unique_ptr<Slot>& slot : slots_)
    if (slot->nvjpeg != nullptr) bytes += slot->nvjpeg->device_bytes();
  return bytes;
}

std::vector<Slot*> Slots::all() {
  std::vector<Slot*> all;
  for (const std::unique_ptr<Slot>& slot : slots_) all.push_back(slot.get());
  return all;
}

}  // namespace leat::worker
