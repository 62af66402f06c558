// SPDX-License-Identifier: Apache-2.0
//
// TryDecoder: a trial of a device's decoder, when a worker starts. Drawn
// pictures are decoded whole, as a region, reduced, and as luma alone, by its
// engines and by its processors, and compared with libjpeg. A library or a
// driver that makes wrong pixels is found here, not by a training; and modules
// that are loaded at their first use are loaded.
//
// The pictures' EXIF says that they are turned, which decoders must ignore, and
// the memory after each picture's room is checked.
#pragma once

#include "absl/status/status.h"
#include "worker/gpu/resources/slot.h"

namespace leat::worker {

// Decodes on the slot's queue and into its memory. OK: the decoder is right.
// Other errors, except IsPoisoned (device/error.h): it must not be used; the
// status says what is wrong. Takes tens of milliseconds of a host, and the
// device's own time. REQUIRES: the slot is idle and has a decoder; the device
// is current.
absl::Status TryDecoder(const Slot& slot);

}  // namespace leat::worker
