// SPDX-License-Identifier: Apache-2.0
#include "client/device/device_memory.h"

#include <unistd.h>

#include <utility>

#include "core/log.h"
#include "core/status.h"

namespace leat::client {
namespace {

using cuda::Result;

}  // namespace

absl::StatusOr<std::shared_ptr<BatchMemory>> DeviceMemory::Make(
    std::shared_ptr<const Gpu> gpu, size_t bytes) {
  std::shared_ptr<DeviceMemory> memory(new DeviceMemory(std::move(gpu), bytes));
  if (absl::Status status = memory->Init(); !status.ok())
    return MakeStatus(
        status.code(), "device {} ({}): memory for a batch: {} bytes: {}",
        memory->gpu().ordinal(), memory->gpu().name(), bytes, Message(status));
  return memory;
}

absl::Status DeviceMemory::Init() {
  const Gpu::Scope scope(*gpu_);
  RETURN_IF_ERROR(scope.status());
  absl::Status status = Unimplemented("{}", gpu_->not_shareable());
  if (gpu_->not_shareable().empty()) status = Map();
  if (!status.ok() && !absl::IsResourceExhausted(status)) {
    LOG_DEBUG("device.not_shared device={} reason=\"{}\"", gpu_->ordinal(),
              Message(status));
    Unmap();
    status =
        gpu_->Check(gpu_->driver().MemAlloc(&address_, bytes_), "cuMemAlloc");
    allocated_ = status.ok();
    mapped_bytes_ = bytes_;
  }
  if (!status.ok()) return Annotate(status, gpu_->FreeMemory());
  ASSIGN_OR_RETURN(staging_, MakeHostMemory(bytes_));
  Pin();
  return absl::OkStatus();
}

absl::Status DeviceMemory::Map() {
  const cuda::Driver& cuda = gpu_->driver();
  cuda::AllocationProperties prop;
  prop.handle_types = cuda::HandleType::kPosixFileDescriptor;
  prop.location.id = gpu_->ordinal();
  size_t granularity = 0;
  RETURN_IF_ERROR(
      gpu_->Check(cuda.MemGetAllocationGranularity(
                      &granularity, &prop, cuda::Granularity::kRecommended),
                  "cuMemGetAllocationGranularity"));
  if (granularity == 0) return Internal("a granularity of 0 bytes");
  mapped_bytes_ = (bytes_ + granularity - 1) / granularity * granularity;
  RETURN_IF_ERROR(gpu_->Check(cuda.MemCreate(&handle_, mapped_bytes_, &prop, 0),
                              "cuMemCreate"));
  created_ = true;
  RETURN_IF_ERROR(
      gpu_->Check(cuda.MemAddressReserve(&address_, mapped_bytes_, 0, 0, 0),
                  "cuMemAddressReserve"));
  reserved_ = true;
  RETURN_IF_ERROR(gpu_->Check(
      cuda.MemMap(address_, mapped_bytes_, 0, handle_, 0), "cuMemMap"));
  mapped_ = true;
  cuda::AccessDescription access;
  access.location = prop.location;
  RETURN_IF_ERROR(
      gpu_->Check(cuda.MemSetAccess(address_, mapped_bytes_, &access, 1),
                  "cuMemSetAccess"));
  return gpu_->Check(
      cuda.MemExportToShareableHandle(
          &fd_, handle_, cuda::HandleType::kPosixFileDescriptor, 0),
      "cuMemExportToShareableHandle");
}

// Copies from pinned memory are faster; they work without it, too.
void DeviceMemory::Pin() {
  const Result result = gpu_->driver().MemHostRegister(
      staging_->data(), staging_->mapped_bytes(), cuda::kHostRegisterPortable);
  pinned_ = result == Result::kSuccess;
  if (!pinned_)
    LOG_DEBUG("device.not_pinned device={} bytes={} {}", gpu_->ordinal(),
              staging_->mapped_bytes(),
              Message(gpu_->Check(result, "cuMemHostRegister")));
}

// Undoes Map in reverse order. Resources whose release fails are lost.
void DeviceMemory::Unmap() {
  const cuda::Driver& cuda = gpu_->driver();
  if (fd_ >= 0) close(std::exchange(fd_, -1));
  if (std::exchange(mapped_, false) &&
      !Freed(cuda.MemUnmap(address_, mapped_bytes_)))
    return;
  if (std::exchange(reserved_, false))
    Freed(cuda.MemAddressFree(address_, mapped_bytes_));
  if (std::exchange(created_, false)) Freed(cuda.MemRelease(handle_));
}

// At process exit the driver may have been unloaded first.
bool DeviceMemory::Freed(Result result) const {
  if (result == Result::kSuccess) return true;
  LOG_DEBUG("device.not_freed device={} {}", gpu_->ordinal(),
            Message(gpu_->Check(result, "freeing a batch")));
  return false;
}

DeviceMemory::~DeviceMemory() {
  const Gpu::Scope scope(*gpu_);
  const cuda::Driver& cuda = gpu_->driver();
  if (!scope.status().ok()) return;
  // Unmapping does not wait for the kernels of a replay.
  const bool unused = (!captured_ && !barred_) || Freed(cuda.CtxSynchronize());
  if (pending_) Freed(cuda.EventSynchronize(event_));
  if (bell_stream_ != nullptr) {
    Freed(cuda.StreamSynchronize(bell_stream_));
    Freed(cuda.StreamDestroy(bell_stream_));
  }
  if (event_ != nullptr) Freed(cuda.EventDestroy(event_));
  if (unused && allocated_) Freed(cuda.MemFree(address_));
  if (unused) Unmap();
  if (fd_ >= 0) close(fd_);
  if (pinned_) Freed(cuda.MemHostUnregister(staging_->data()));
}

std::byte* DeviceMemory::data() const {
  return static_cast<std::byte*>(cuda::AsPointer(address_));
}

int DeviceMemory::OrdinalOf(const BatchMemory& memory) {
  if (memory.kind() != Kind::kDevice) return -1;
  return static_cast<const DeviceMemory&>(memory).gpu().ordinal();
}

void DeviceMemory::Write(size_t offset, std::span<const std::byte> bytes) {
  staging_->Write(offset, bytes);
}

void DeviceMemory::CopyFrom(const BatchMemory& from, size_t offset,
                            size_t bytes) {
  const auto& other = static_cast<const DeviceMemory&>(from);
  staging_->CopyFrom(*other.staging_, offset, bytes);
  const Gpu::Scope scope(*gpu_);
  absl::Status status = scope.status();
  // The host would not wait by itself for a copy within a device.
  if (status.ok())
    status = gpu_->Check(
        gpu_->driver().MemcpyDtoDAsync(
            address_ + offset, other.address_ + offset, bytes, gpu_->stream()),
        "cuMemcpyDtoDAsync");
  if (status.ok())
    status = gpu_->Check(gpu_->driver().StreamSynchronize(gpu_->stream()),
                         "cuStreamSynchronize");
  if (status.ok()) return;
  MutexLock lock(&mu_);
  status_.Update(status);
}

absl::Status DeviceMemory::status() const {
  MutexLock lock(&mu_);
  return status_;
}

BatchMemory::Reuse DeviceMemory::reuse() {
  if (captured_) return Reuse::kKept;
  if (barred_) {
    const Gpu::Scope scope(*gpu_);
    if (gpu_->CaptureOf(*barred_) == Gpu::Capture::kBarred)
      return Reuse::kLater;
    // An error is recorded in spoilt_.
    Record(*std::exchange(barred_, std::nullopt)).IgnoreError();
  }
  if (spoilt_ || !status().ok()) return Reuse::kNever;
  if (!pending_) return Reuse::kNow;
  const Gpu::Scope scope(*gpu_);
  const Result result = gpu_->driver().EventQuery(event_);
  if (result == Result::kNotReady) return Reuse::kLater;
  pending_ = armed_ = false;
  spoilt_ = result != Result::kSuccess;
  return spoilt_ ? Reuse::kNever : Reuse::kNow;
}

void DeviceMemory::RingWhenFree(std::function<void()> ring) {
  if (!pending_ || armed_) return;
  const Gpu::Scope scope(*gpu_);
  const cuda::Driver& cuda = gpu_->driver();
  auto owned = std::make_unique<std::function<void()>>(std::move(ring));
  Result result = Result::kSuccess;
  if (bell_stream_ == nullptr)
    result = cuda.StreamCreate(&bell_stream_, cuda::kStreamNonBlocking);
  if (result == Result::kSuccess)
    result = cuda.StreamWaitEvent(bell_stream_, event_, 0);
  if (result == Result::kSuccess)
    result = cuda.LaunchHostFunc(
        bell_stream_,
        [](void* held) {
          const std::unique_ptr<std::function<void()>> call(
              static_cast<std::function<void()>*>(held));
          (*call)();
        },
        owned.get());
  armed_ = result == Result::kSuccess;
  if (armed_)
    owned.release();
  else
    LOG_DEBUG("device.no_bell device={} {}", gpu_->ordinal(),
              Message(gpu_->Check(result, "waiting for a batch")));
}

void DeviceMemory::UseOn(cuda::Stream stream) {
  const Gpu::Scope scope(*gpu_);
  if (scope.status().ok() && gpu_->CaptureOf(stream) == Gpu::Capture::kYes)
    captured_ = true;
}

absl::Status DeviceMemory::ReleaseAfter(cuda::Stream stream) {
  UseOn(stream);
  if (captured_) return absl::OkStatus();
  const Gpu::Scope scope(*gpu_);
  if (scope.status().ok() && gpu_->CaptureOf(stream) == Gpu::Capture::kBarred) {
    barred_ = stream;
    return absl::OkStatus();
  }
  return Record(stream);
}

absl::Status DeviceMemory::Record(cuda::Stream stream) {
  const cuda::Driver& cuda = gpu_->driver();
  const Gpu::Scope scope(*gpu_);
  absl::Status status = scope.status();
  if (status.ok() && event_ == nullptr)
    status =
        gpu_->Check(cuda.EventCreate(&event_, cuda::kEventBlockingSync |
                                                  cuda::kEventDisableTiming),
                    "cuEventCreate");
  if (status.ok())
    status = gpu_->Check(cuda.EventRecord(event_, stream), "cuEventRecord");
  pending_ = status.ok();
  if (pending_) return status;
  // Without an event, waits for the work here.
  if (cuda.StreamSynchronize(stream) == Result::kSuccess)
    return absl::OkStatus();
  spoilt_ = true;
  return Annotate(status, "giving a batch back on a stream");
}

}  // namespace leat::client
