// SPDX-License-Identifier: Apache-2.0
//
// NvjpegQuestions: asks nvJPEG which of its engines' shapes an image can be
// decoded in.
//
// nvJPEG reads all markers of the file for that, which takes tens of
// microseconds. So each call has handles of its own, and waits for no other.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/mutex.h"
#include "cuda/nvjpeg.h"
#include "worker/gpu/cuda/nvjpeg_bitstream.h"
#include "worker/gpu/device/jpeg_to_decode.h"

namespace leat::worker {

class CudaDevice;

// Thread-safe; the GPU's context is current.
class NvjpegQuestions {
 public:
  // Both outlive it.
  NvjpegQuestions(const cuda::Nvjpeg* nvjpeg, const CudaDevice* gpu)
      : nvjpeg_(*nvjpeg), gpu_(*gpu) {}
  ~NvjpegQuestions();

  // Makes the handles of a first call. `engines`, a handle of the backend for
  // engines, outlives it.
  absl::Status Open(cuda::NvjpegHandle engines);
  // As ImageDecoder::Choose. REQUIRES: Open has succeeded.
  absl::StatusOr<DecodeChoice> Choose(std::span<const std::byte> encoded,
                                      bool luma,
                                      std::span<const DecodeShape> shapes);
  // Destroys all handles. REQUIRES: no call runs.
  void Close();

 private:
  // The handles of one call at a time.
  struct Asker {
    Asker(const cuda::Nvjpeg* nvjpeg, const CudaDevice* gpu)
        : bitstream(nvjpeg, gpu) {}
    NvjpegBitstream bitstream;
    cuda::NvjpegParams params = nullptr;
  };

  // Never nullptr.
  absl::StatusOr<std::unique_ptr<Asker>> Take();
  void GiveBack(std::unique_ptr<Asker> asker);
  absl::Status Make(Asker* asker) const;
  void Destroy(Asker* asker) const;
  cuda::NvjpegResult Ask(std::span<const std::byte> encoded, bool luma,
                         std::span<const DecodeShape> shapes, Asker* asker,
                         DecodeChoice* choice) const;

  const cuda::Nvjpeg& nvjpeg_;
  const CudaDevice& gpu_;
  cuda::NvjpegHandle engines_ = nullptr;
  Mutex mu_;
  // As many as calls have run at the same time: one per decode thread.
  std::vector<std::unique_ptr<Asker>> free_ ABSL_GUARDED_BY(mu_);
};

}  // namespace leat::worker
