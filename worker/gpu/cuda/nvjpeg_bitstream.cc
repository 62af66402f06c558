// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu/cuda/nvjpeg_bitstream.h"

#include <utility>

#include "worker/gpu/cuda/device.h"
#include "worker/gpu/cuda/nvjpeg_fault.h"
#include "worker/gpu/cuda/nvjpeg_image.h"

namespace leat::worker {

using cuda::NvjpegResult;

absl::Status NvjpegBitstream::Open(cuda::NvjpegHandle nvjpeg_handle) {
  nvjpeg_handle_ = nvjpeg_handle;
  return cuda::Check(nvjpeg_.JpegStreamCreate(nvjpeg_handle_, &parsed_),
                     "nvjpegJpegStreamCreate");
}

void NvjpegBitstream::Close() {
  if (parsed_ == nullptr) return;
  gpu_.Released(nvjpeg_.JpegStreamDestroy(std::exchange(parsed_, nullptr)),
                "nvjpegJpegStreamDestroy");
}

NvjpegResult NvjpegBitstream::Parse(std::span<const std::byte> encoded) {
  if (parsed_ == nullptr) {
    const NvjpegResult made =
        nvjpeg_.JpegStreamCreate(nvjpeg_handle_, &parsed_);
    if (made != NvjpegResult::kSuccess) {
      parsed_ = nullptr;
      return DecodeFaultOf(made) == DecodeFault::kImage
                 ? NvjpegResult::kInternalError
                 : made;
    }
  }
  const NvjpegResult result = nvjpeg_.JpegStreamParse(
      nvjpeg_handle_, DataOf(encoded), encoded.size(), 0, 0, parsed_);
  if (result != NvjpegResult::kSuccess) Close();
  return result;
}

}  // namespace leat::worker
