// SPDX-License-Identifier: Apache-2.0
//
// DecodeFaultOf: maps an error of nvJPEG to its cause (decode_fault.h). It
// alone decides how an image is treated in class nvjpeg.
// NVJPEG_STATUS_EXECUTION_FAILED is the engines' response to damaged files as
// well as to faults of their own.
#pragma once

#include "cuda/nvjpeg.h"
#include "worker/gpu/device/decode_fault.h"

namespace leat::worker {

// REQUIRES: not kSuccess.
inline DecodeFault DecodeFaultOf(cuda::NvjpegResult result) {
  using cuda::NvjpegResult;
  switch (result) {
    case NvjpegResult::kAllocatorFailure:
      return DecodeFault::kMemory;
    case NvjpegResult::kBadJpeg:
    case NvjpegResult::kIncompleteBitstream:
    case NvjpegResult::kJpegNotSupported:
    case NvjpegResult::kImplementationNotSupported:
    // Reported before anything runs; the arguments follow from the image's
    // header.
    case NvjpegResult::kInvalidParameter:
    case NvjpegResult::kArchMismatch:
      return DecodeFault::kImage;
    default:
      return DecodeFault::kWorker;
  }
}

}  // namespace leat::worker
