// SPDX-License-Identifier: Apache-2.0
//
// NvjpegBitstream: the handle into which nvJPEG parses a file's headers.
//
// A parse that fails may leave nvJPEG's handle unusable: nvImageCodec reports
// this for ParseHeader up to nvJPEG 13.2. The next image would then be refused,
// and be decoded in another way, to other bytes. So the handle is recreated
// after every parse that fails.
#pragma once

#include <cstddef>
#include <span>

#include "absl/status/status.h"
#include "cuda/nvjpeg.h"

namespace leat::worker {

class CudaDevice;

// Thread-compatible; the GPU's context is current.
class NvjpegBitstream {
 public:
  // Both outlive it.
  NvjpegBitstream(const cuda::Nvjpeg* nvjpeg, const CudaDevice* gpu)
      : nvjpeg_(*nvjpeg), gpu_(*gpu) {}
  ~NvjpegBitstream() { Close(); }
  NvjpegBitstream(const NvjpegBitstream&) = delete;
  NvjpegBitstream& operator=(const NvjpegBitstream&) = delete;

  // Makes the first handle from nvJPEG's handle, which outlives all of them.
  absl::Status Open(cuda::NvjpegHandle nvjpeg_handle);
  void Close();

  // Reads all markers. If a handle cannot be recreated, that is no image's
  // fault, whatever nvJPEG reports. REQUIRES: Open has succeeded.
  cuda::NvjpegResult Parse(std::span<const std::byte> encoded);
  // Returns the stream of the image that was parsed last, which is valid until
  // the next Parse. REQUIRES: that parse succeeded.
  cuda::NvjpegStream parsed() const { return parsed_; }

 private:
  const cuda::Nvjpeg& nvjpeg_;
  const CudaDevice& gpu_;
  cuda::NvjpegHandle nvjpeg_handle_ = nullptr;
  cuda::NvjpegStream parsed_ = nullptr;  // nullptr: the last parse failed
};

}  // namespace leat::worker
