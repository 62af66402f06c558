// SPDX-License-Identifier: Apache-2.0
#include "client/device/gpu.h"

#include <array>
#include <utility>

#include "core/status.h"

namespace leat::client {
namespace {

using cuda::Result;

std::string Hex(const cuda::Uuid& uuid) {
  std::string text;
  for (const unsigned char byte : uuid.bytes)
    text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Gpu>> Gpu::Open(int ordinal) {
  absl::StatusOr<std::shared_ptr<const cuda::Driver>> driver =
      cuda::LoadDriver(cuda::LibrarySearch::FromEnvironment());
  if (!driver.ok())
    return FailedPrecondition("device {}: {}", ordinal,
                              Message(driver.status()));
  return Open(ordinal, *std::move(driver));
}

absl::StatusOr<std::shared_ptr<const Gpu>> Gpu::Open(
    int ordinal, std::shared_ptr<const cuda::Driver> driver) {
  std::shared_ptr<Gpu> gpu(new Gpu(std::move(driver), ordinal));
  if (absl::Status status = gpu->Init(); !status.ok())
    return FailedPrecondition("device {}: {}", ordinal, Message(status));
  return gpu;
}

absl::Status Gpu::Init() {
  const cuda::Driver& cuda = *driver_;
  RETURN_IF_ERROR(Check(cuda.Init(0), "cuInit"));
  const cuda::RelaxedCapture relaxed(cuda);
  int count = 0;
  RETURN_IF_ERROR(Check(cuda.DeviceGetCount(&count), "cuDeviceGetCount"));
  if (ordinal_ >= count)
    return FailedPrecondition("this process sees {} CUDA device{}", count,
                              count == 1 ? "" : "s");
  RETURN_IF_ERROR(Check(cuda.DeviceGet(&device_, ordinal_), "cuDeviceGet"));
  std::array<char, 256> name{};
  RETURN_IF_ERROR(
      Check(cuda.DeviceGetName(name.data(), name.size() - 1, device_),
            "cuDeviceGetName"));
  name_ = name.data();
  cuda::Uuid uuid{};
  RETURN_IF_ERROR(Check(cuda.DeviceGetUuid(&uuid, device_), "cuDeviceGetUuid"));
  uuid_ = Hex(uuid);
  not_shareable_ = NotShareable();
  RETURN_IF_ERROR(Check(cuda.DevicePrimaryCtxRetain(&context_, device_),
                        "cuDevicePrimaryCtxRetain"));
  const Scope scope(*this);
  RETURN_IF_ERROR(scope.status());
  // Not ordered with the default stream, which belongs to the trainer.
  return Check(cuda.StreamCreate(&stream_, cuda::kStreamNonBlocking),
               "cuStreamCreate");
}

std::string Gpu::NotShareable() const {
  if (!driver_->HasVirtualMemory())
    return fmt::format("the driver {} is older than virtual memory management",
                       driver_->path);
  const auto lacks = [this](cuda::DeviceAttribute attribute) {
    int has = 0;
    return driver_->DeviceGetAttribute(&has, attribute, device_) !=
               Result::kSuccess ||
           has == 0;
  };
  if (lacks(cuda::DeviceAttribute::kVirtualMemorySupported) ||
      lacks(cuda::DeviceAttribute::kPosixFileDescriptorSupported))
    return fmt::format("{} does not share memory by file descriptors", name_);
  return "";
}

Gpu::~Gpu() {
  const cuda::RelaxedCapture relaxed(*driver_);
  // The driver may already be unloaded when the process ends.
  if (stream_ != nullptr) {
    const Scope scope(*this);
    if (scope.status().ok()) driver_->StreamDestroy(stream_);
  }
  if (context_ != nullptr) driver_->DevicePrimaryCtxRelease(device_);
}

std::string Gpu::FreeMemory() const {
  size_t free = 0, total = 0;
  if (driver_->MemGetInfo(&free, &total) != Result::kSuccess)
    return "what is free is not known";
  return fmt::format("{} of {} bytes are free", free, total);
}

// A driver without this query is older than captures.
Gpu::Capture Gpu::CaptureOf(cuda::Stream stream) const {
  auto status = cuda::CaptureStatus::kNone;
  if (driver_->StreamIsCapturing == nullptr) return Capture::kNo;
  const Result result = driver_->StreamIsCapturing(stream, &status);
  if (result == Result::kCaptureImplicit) return Capture::kBarred;
  if (result != Result::kSuccess)
    return Capture::kNo;  // the next call says why
  return status == cuda::CaptureStatus::kNone ? Capture::kNo : Capture::kYes;
}

Gpu::Scope::Scope(const Gpu& gpu)
    : gpu_(gpu),
      relaxed_(*gpu.driver_),
      status_(gpu.Check(gpu.driver_->CtxPushCurrent(gpu.context_),
                        "cuCtxPushCurrent")) {}

Gpu::Scope::~Scope() {
  cuda::Context previous = nullptr;
  if (status_.ok()) gpu_.driver_->CtxPopCurrent(&previous);
}

}  // namespace leat::client
