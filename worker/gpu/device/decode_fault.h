// SPDX-License-Identifier: Apache-2.0
//
// DecodeFault: the cause of a decoder's failure. It determines how the image is
// treated, whose bytes must depend on the image alone.
//
//   kImage    it will fail everywhere on this kind of GPU: the image takes the
//             next way (engines, processors, host), here and everywhere.
//   kMemory   the group is decoded again with fewer images; if even one is too
//             many, the group fails.
//   kWorker   it may not happen again, nor elsewhere. The image is tried again,
//             alone, in the same way: another way would give other bytes. If
//             that fails as well, libjpeg-turbo finds the cause by decoding all
//             of the image. If it is damaged, the host takes it, as a fault of
//             the image; if it is sound, the group fails with kUnavailable, so
//             that another worker takes the rows.
//
// Without the last step a damaged file to which an engine responds with an
// internal error would go from worker to worker for ever.
#pragma once

#include <cstdint>

namespace leat::worker {

enum class DecodeFault : uint8_t { kImage, kMemory, kWorker };

// Attempts on one image alone, for faults of the worker.
inline constexpr int kDecodeTries = 2;

}  // namespace leat::worker
