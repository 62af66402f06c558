// SPDX-License-Identifier: Apache-2.0
//
// DeviceQueue: work for a device, done in the order in which it is put on the
// queue. Calls return when the work is on the queue, not when it is done.
//
// Host memory that a copy reads or writes must stay until the copy is done; a
// copy of memory that is not page-locked may make the caller wait.
//
// One thread at a time puts work on a queue; others may wait for it meanwhile.
// The device is current on every calling thread. Errors: error.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/gpu/device/address.h"
#include "worker/gpu/device/image_decoder.h"
#include "worker/gpu/device/kernel_id.h"
#include "worker/gpu/layout/launch_config.h"

namespace leat::worker {

class DeviceQueue {
 public:
  // REQUIRES: the queue is empty, and its decoders are destroyed.
  virtual ~DeviceQueue() = default;

  virtual absl::Status ToDevice(DeviceAddress to, const void* from,
                                size_t bytes) = 0;
  virtual absl::Status ToHost(void* to, DeviceAddress from, size_t bytes) = 0;
  virtual absl::Status Fill(DeviceAddress to, uint8_t value, size_t bytes) = 0;
  // `parameters`: the address that the kernel receives: of a block, or of a
  // stage's descriptors in it.
  virtual absl::Status Launch(KernelId kernel, const LaunchConfig& config,
                              DeviceAddress parameters) = 0;

  // Marks the current end of the queue. There is one mark: the last.
  virtual absl::Status Mark() = 0;
  // Sleeps until all work before the mark is done.
  virtual absl::Status WaitMark() = 0;
  // Sleeps until the queue is empty.
  virtual absl::Status Wait() = 0;

  // Makes a decoder that puts its work on this queue, which outlives it. It
  // takes at most `most_bytes` of the device's memory to work in, and as much
  // page-locked memory. `beside`: a decoder of another queue of the device,
  // with which it shares what decoders can share; nullptr: it shares nothing.
  // REQUIRES: the device has a decoder_class().
  virtual absl::StatusOr<std::unique_ptr<ImageDecoder>> MakeDecoder(
      uint64_t most_bytes, const ImageDecoder* beside) = 0;

  // Counts the copies of host memory that is not page-locked. Thread-safe.
  virtual uint64_t pageable_copies() const = 0;
};

}  // namespace leat::worker
