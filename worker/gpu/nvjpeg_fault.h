// SPDX-License-Identifier: Apache-2.0
//
// Whose fault a failure of nvJPEG is: the one place that says what becomes of
// an image in class nvjpeg, whose bytes must depend on the image alone.
//
//   the image's    it will fail everywhere on this kind of GPU: it goes to the
//                  next backend (engines, CUDA, host), and so everywhere.
//   memory's       the same with fewer images; down to one, and then the group
//                  fails.
//   the worker's   may not happen again, nor elsewhere. The image is tried
//                  again, alone, by the same backend: another one would make
//                  other bytes of it. If that fails as well, libjpeg-turbo says
//                  who is to blame, by decoding all of the image: what it finds
//                  damaged goes to the host, as the image's fault; what is
//                  sound fails the group by kUnavailable, so that another
//                  worker takes the rows.
//
// Without the last step a damaged file that an engine answers by
// NVJPEG_STATUS_EXECUTION_FAILED would go from worker to worker for ever.
#pragma once

#include <cstdint>

#include "cuda/nvjpeg.h"

namespace leat::worker {

enum class NvjpegFault : uint8_t { kImage, kMemory, kWorker };

// Tries, of one image alone, for faults of the worker.
inline constexpr int kNvjpegTries = 2;

// REQUIRES: not kSuccess.
inline NvjpegFault FaultOf(cuda::NvjpegResult result) {
  using cuda::NvjpegResult;
  switch (result) {
    case NvjpegResult::kAllocatorFailure:
      return NvjpegFault::kMemory;
    case NvjpegResult::kBadJpeg:
    case NvjpegResult::kIncompleteBitstream:
    case NvjpegResult::kJpegNotSupported:
    case NvjpegResult::kImplementationNotSupported:
    // Found before anything runs, and arguments follow from the image's header.
    case NvjpegResult::kInvalidParameter:
    case NvjpegResult::kArchMismatch:
      return NvjpegFault::kImage;
    default:
      return NvjpegFault::kWorker;
  }
}

}  // namespace leat::worker
