// SPDX-License-Identifier: Apache-2.0
//
// Whose fault a failure of a decoder is: what becomes of an image whose bytes
// must depend on the image alone.
//
//   the image's    it will fail everywhere on this kind of GPU: it goes to the
//                  next way (engines, processors, host), and so everywhere.
//   memory's       the same with fewer images; down to one, and then the group
//                  fails.
//   the worker's   may not happen again, nor elsewhere. The image is tried
//                  again, alone, the same way: another one would make other
//                  bytes of it. If that fails as well, libjpeg-turbo says
//                  where the fault is, by decoding all of the image: what it finds
//                  damaged goes to the host, as the image's fault; what is
//                  sound fails the group by kUnavailable, so that another
//                  worker takes the rows.
//
// Without the last step a damaged file that an engine answers by an error of
// its own would go from worker to worker for ever.
#pragma once

#include <cstdint>

namespace leat::worker {

enum class DecodeFault : uint8_t { kImage, kMemory, kWorker };

// Tries, of one image alone, for faults of the worker.
inline constexpr int kDecodeTries = 2;

}  // namespace leat::worker
