// SPDX-License-Identifier: Apache-2.0
#include "client/device/uploader.h"

#include <utility>

#include "core/status.h"
#include "core/thread.h"

namespace leat::client {
namespace {

absl::Status Stopped() { return Cancelled("the iterator has ended"); }

}  // namespace

absl::StatusOr<std::unique_ptr<Uploader>> Uploader::Create(
    std::shared_ptr<const Gpu> gpu) {
  std::unique_ptr<Uploader> uploader(new Uploader(std::move(gpu)));
  RETURN_IF_ERROR(uploader->Init());
  RETURN_IF_ERROR(StartThread(
      "uploader", [self = uploader.get()] { self->Run(); },
      &uploader->thread_));
  return uploader;
}

absl::Status Uploader::Init() {
  const Gpu::Scope scope(*gpu_);
  RETURN_IF_ERROR(scope.status());
  // Not ordered with the default stream, which belongs to the trainer.
  RETURN_IF_ERROR(gpu_->Check(
      gpu_->driver().StreamCreate(&stream_, cuda::kStreamNonBlocking),
      "cuStreamCreate"));
  return gpu_->Check(
      gpu_->driver().EventCreate(
          &event_, cuda::kEventBlockingSync | cuda::kEventDisableTiming),
      "cuEventCreate");
}

void Uploader::Stop() {
  {
    MutexLock lock(&mu_);
    stopping_ = true;
    wanted_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

Uploader::~Uploader() {
  Stop();
  const Gpu::Scope scope(*gpu_);
  if (!scope.status().ok()) return;
  if (event_ != nullptr) gpu_->driver().EventDestroy(event_);
  if (stream_ != nullptr) gpu_->driver().StreamDestroy(stream_);
}

void Uploader::Add(Job job) {
  {
    MutexLock lock(&mu_);
    if (!stopping_) {
      jobs_.push_back(std::move(job));
      wanted_.NotifyOne();
      return;
    }
  }
  job.done(Stopped());
}

void Uploader::Run() {
  const Gpu::Scope scope(*gpu_);
  while (true) {
    Job job;
    bool stopping;
    {
      MutexLock lock(&mu_);
      while (jobs_.empty() && !stopping_) wanted_.Wait(&mu_);
      if (jobs_.empty()) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
      stopping = stopping_;
    }
    if (stopping)
      job.done(Stopped());
    else
      job.done(scope.status().ok() ? Perform(job.copies) : scope.status());
  }
}

absl::Status Uploader::Perform(const std::vector<Copy>& copies) {
  const cuda::Driver& cuda = gpu_->driver();
  absl::Status status;
  for (const Copy& copy : copies) {
    status = gpu_->Check(
        cuda.MemcpyHtoDAsync(reinterpret_cast<cuda::DevicePtr>(copy.to),
                             copy.from, copy.bytes, stream_),
        "cuMemcpyHtoDAsync");
    if (!status.ok()) break;
  }
  if (status.ok())
    status = gpu_->Check(cuda.EventRecord(event_, stream_), "cuEventRecord");
  if (status.ok())
    status = gpu_->Check(cuda.EventSynchronize(event_), "cuEventSynchronize");
  // The memory is released after an error too, so started copies must be over.
  if (!status.ok()) cuda.StreamSynchronize(stream_);
  return status.ok()
             ? status
             : Annotate(status, fmt::format("device {} ({})", gpu_->ordinal(),
                                            gpu_->name()));
}

}  // namespace leat::client
