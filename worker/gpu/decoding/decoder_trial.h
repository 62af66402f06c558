// SPDX-License-Identifier: Apache-2.0
//
// A trial of a device's decoder, when a worker starts: drawn pictures, whole,
// as a region, smaller, and as luma alone, by its engines and by its
// processors, against libjpeg. A library or a driver that makes wrong pixels is
// found out here, not by a training; and what is loaded at its first use is
// loaded.
//
// The pictures say by EXIF that they are turned, which no decoder may do, and
// the memory behind each picture's room is looked at.
#pragma once

#include "absl/status/status.h"
#include "worker/gpu/resources/slot.h"

namespace leat::worker {

// Decodes on the slot's queue and into its memory. OK: the decoder is right.
// Others, but IsPoisoned (device/error.h): it must not be used; the status says
// what is wrong. Takes tens of milliseconds of a host, and what the device
// takes. REQUIRES: the slot is idle and has a decoder; the device is current.
absl::Status TryDecoder(const Slot& slot);

}  // namespace leat::worker
