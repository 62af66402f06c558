// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu/cuda/jpeg_kind.h"

#include "worker/compute/gpu_worker.h"

namespace leat::worker {
namespace {

// The longest side that both NVJPG engines and nvJPEG's CUDA backend take.
constexpr int64_t kMaxSide = 16'384;

bool HasCommonSampling(const JpegDecoder::Header& header) {
  for (int i = 1; i < 3; ++i)
    if (header.h_samp[i] != 1 || header.v_samp[i] != 1) return false;
  return header.h_samp[0] >= 1 && header.h_samp[0] <= 2 &&
         header.v_samp[0] >= 1 && header.v_samp[0] <= 2;
}

}  // namespace

bool IsForNvjpeg(const JpegDecoder::Header& header) {
  if (header.progressive || !header.huffman || !header.one_scan) return false;
  const ImageSize& size = header.size;
  if (size.width > kMaxSide || size.height > kMaxSide ||
      static_cast<uint64_t>(size.width) * static_cast<uint64_t>(size.height) *
              3 >
          kMaxNvjpegImageBytes)
    return false;
  if (header.components == 1) return true;
  return header.components == 3 && header.ycc && HasCommonSampling(header);
}

}  // namespace leat::worker
