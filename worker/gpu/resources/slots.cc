// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu/resources/slots.h"

#include <cstdlib>
#include <utility>

#include "core/log.h"
#include "core/status.h"
#include "worker/gpu/device/error.h"

namespace leat::worker {
namespace {

constexpr uint64_t kSlotAlignment = 4096;

uint64_t AlignedInSlot(uint64_t bytes) {
  return (bytes + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Slots>> Slots::Create(const GpuConfig& config,
                                                     const Device* device,
                                                     bool decodes) {
  RETURN_IF_ERROR(device->MakeCurrent());
  std::unique_ptr<Slots> slots(new Slots(device, decodes));
  RETURN_IF_ERROR(slots->Allocate(config));
  for (const std::unique_ptr<Slot>& slot : slots->slots_)
    RETURN_IF_ERROR(slots->Equip(slot.get(), config));
  return slots;
}

absl::Status Slots::AllocateHost(uint64_t count, uint64_t bytes) {
  absl::Status refused;
  uint64_t ordinary = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const auto pinned = device_.AllocatePinned(bytes);
    HostMemory host{.memory = pinned.ok() ? *pinned : nullptr,
                    .pinned = pinned.ok()};
    if (!pinned.ok()) {
      if (!IsPoisoned(pinned.status()))
        host.memory =
            static_cast<std::byte*>(std::aligned_alloc(kSlotAlignment, bytes));
      if (host.memory == nullptr)
        return Annotate(pinned.status(),
                        fmt::format("page-locking {} bytes for each of {} "
                                    "slots",
                                    bytes, count));
      refused = pinned.status();
      ++ordinary;
    }
    host_.push_back(host);
  }
  if (ordinary > 0)
    LOG_WARN(
        "gpu.slots_not_pinned gpu={} slots={} of={} bytes={} error=\"{}\" "
        "note=\"these slots have ordinary memory, which takes longer to "
        "copy\"",
        device_.info().index, ordinary, count, bytes, Message(refused));
  return absl::OkStatus();
}

absl::Status Slots::Allocate(const GpuConfig& config) {
  const uint64_t pixels = AlignedInSlot(config.slot_bytes);
  const uint64_t results = AlignedInSlot(config.group_bytes);
  // Without a decoder, the room for images made from coefficients: their pixels
  // and half as many samples rarely exceed it.
  const uint64_t images =
      decodes_ ? AlignedInSlot(config.decode_bytes) : 2 * pixels;
  const uint64_t room = decodes_ ? kMostRoomBytes : 0;
  const uint64_t pinned = kSlotBlockBytes + pixels;
  const uint64_t on_device = pinned + results + images + room;
  const auto count = static_cast<uint64_t>(config.slots);
  RETURN_IF_ERROR(AllocateHost(count, pinned));
  const Device::MemoryInfo has = device_.memory();
  const auto memory = device_.Allocate(count * on_device);
  if (!memory.ok())
    return Annotate(
        memory.status(),
        fmt::format("allocating {} bytes for {} slots, where {} of {} bytes "
                    "are free (fewer --gpu-slots, or less --gpu-decode-bytes "
                    "and --gpu-slot-bytes, take less)",
                    count * on_device, count, has.free_bytes, has.all_bytes));
  memory_ = *memory;
  own_bytes_ = count * on_device;
  most_device_bytes_ =
      own_bytes_ + (decodes_ ? count * config.decoder_bytes : 0);
  for (uint64_t i = 0; i < count; ++i) {
    auto slot = std::make_unique<Slot>();
    std::byte* const first = host_[i].memory;
    slot->index = static_cast<int>(i);
    slot->block = {first, kSlotBlockBytes};
    slot->pixels = {first + kSlotBlockBytes, pixels};
    slot->device_block = memory_ + i * on_device;
    slot->device_pixels = slot->device_block + kSlotBlockBytes;
    slot->device_outputs = slot->device_pixels + pixels;
    slot->device_images = slot->device_outputs + results;
    slot->image_bytes = images;
    slots_.push_back(std::move(slot));
  }
  return absl::OkStatus();
}

absl::Status Slots::Equip(Slot* slot, const GpuConfig& config) {
  ASSIGN_OR_RETURN(slot->queue, device_.MakeQueue());
  if (decodes_) {
    const ImageDecoder* const beside =
        config.decoders_share ? slots_.front()->decoder.get() : nullptr;
    ASSIGN_OR_RETURN(slot->decoder,
                     slot->queue->MakeDecoder(config.decoder_bytes, beside));
  }
  return absl::OkStatus();
}

// Waiting fails only if the GPU is lost, and then nothing runs any more.
Slots::~Slots() {
  (void)device_.MakeCurrent();
  for (const std::unique_ptr<Slot>& slot : slots_) {
    if (slot->queue == nullptr) continue;
    (void)slot->queue->Wait();
    slot->decoder.reset();
    slot->queue.reset();
  }
  if (memory_) device_.Free(memory_);
  for (const HostMemory& host : host_)
    if (host.pinned)
      device_.FreePinned(host.memory);
    else
      std::free(host.memory);
}

uint64_t Slots::device_bytes() const {
  uint64_t bytes = own_bytes_;
  for (const std::unique_ptr<Slot>& slot : slots_)
    if (slot->decoder != nullptr) bytes += slot->decoder->device_bytes();
  return bytes;
}

std::vector<Slot*> Slots::all() const {
  std::vector<Slot*> all;
  for (const std::unique_ptr<Slot>& slot : slots_) all.push_back(slot.get());
  return all;
}

}  // namespace leat::worker
