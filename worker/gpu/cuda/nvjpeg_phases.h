// SPDX-License-Identifier: Apache-2.0
//
// NvjpegPhases: nvJPEG's CUDA backends, which decode one whole image after the
// other.
//
// The host's part of an image (its Huffman codes, if they are few) runs while
// the GPU works on the image before. So everything that the GPU still reads
// when the host goes on exists twice.
#pragma once

#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuda/nvjpeg.h"
#include "worker/gpu/cuda/nvjpeg_bitstream.h"
#include "worker/gpu/device/jpeg_to_decode.h"

namespace leat::worker {

class CudaDevice;
class NvjpegMemory;

// The GPU decodes the Huffman codes of images with more pixels, the host those
// of the others: the GPU becomes faster at about a million pixels (the
// threshold of nvImageCodec). The image alone decides, since the backends need
// not give the same pixels.
inline constexpr int64_t kGpuHuffmanPixels = 1'000'000;

// Thread-compatible; the GPU's context is current.
class NvjpegPhases {
 public:
  // All arguments outlive the phases. `handle`'s allocators belong to `memory`.
  static absl::StatusOr<std::unique_ptr<NvjpegPhases>> Create(
      const cuda::Nvjpeg* nvjpeg, const CudaDevice* gpu,
      cuda::NvjpegHandle handle, NvjpegMemory* memory);
  // REQUIRES: no stream holds any of its work.
  ~NvjpegPhases();

  // Puts the image on the stream, after the host's part, and waits there for
  // the image before. `waited`: the result of that wait, as Device's errors.
  cuda::NvjpegResult Decode(const JpegToDecode& image, cuda::Stream stream,
                            absl::Status* waited);

 private:
  // decodes the Huffman codes
  enum Backend : uint8_t { kHost, kGpu, kBackends };

  struct Page {
    NvjpegBitstream bitstream;
    cuda::NvjpegState states[kBackends] = {};
    cuda::NvjpegPinnedBuffer pinned = nullptr;
    cuda::NvjpegDeviceBuffer device = nullptr;
  };

  NvjpegPhases(const cuda::Nvjpeg* nvjpeg, const CudaDevice* gpu,
               cuda::NvjpegHandle handle, NvjpegMemory* memory)
      : nvjpeg_(*nvjpeg),
        gpu_(*gpu),
        handle_(handle),
        memory_(*memory),
        pages_{{.bitstream{nvjpeg, gpu}}, {.bitstream{nvjpeg, gpu}}} {}
  absl::Status CreateAll();
  absl::Status CreatePage(Page* page);
  cuda::NvjpegResult Choose(const JpegToDecode& image, cuda::NvjpegStream,
                            cuda::NvjpegParams, Backend* backend) const;

  const cuda::Nvjpeg& nvjpeg_;
  const CudaDevice& gpu_;
  const cuda::NvjpegHandle handle_;
  NvjpegMemory& memory_;
  cuda::NvjpegDecoder decoders_[kBackends] = {};
  cuda::NvjpegParams as_rgb_ = nullptr, as_luma_ = nullptr;
  Page pages_[2];
  size_t next_ = 0;
};

}  // namespace leat::worker
