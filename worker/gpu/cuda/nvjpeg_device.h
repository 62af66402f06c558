// SPDX-License-Identifier: Apache-2.0
//
// NvjpegDevice: nvJPEG's abilities on a GPU.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "cuda/nvjpeg.h"
#include "worker/compute/gpu_worker.h"

namespace leat::worker {

class CudaDevice;

struct NvjpegDevice {
  NvjpegDevice(const cuda::Nvjpeg* its_nvjpeg, const CudaDevice* its_gpu,
               bool has_engines)
      : nvjpeg(its_nvjpeg), gpu(its_gpu), engines(has_engines) {}

  // Makes nvJPEG decode on the GPU and asks for its engines. Both arguments
  // outlive the result. The GPU's context is current. Adds to `info`: a GPU
  // without engines is no error, and info->no_engines says why it has none.
  static absl::StatusOr<std::unique_ptr<const NvjpegDevice>> Open(
      const cuda::Nvjpeg* nvjpeg, const CudaDevice* gpu, GpuInfo* info);

  const cuda::Nvjpeg* const nvjpeg;
  const CudaDevice* const gpu;
  const bool engines;
};

// Returns the flags of every handle: chroma is interpolated as by
// libjpeg-turbo's fancy upsampling, which nvJPEG has from 12.1 on.
cuda::Flags NvjpegFlags(const cuda::Nvjpeg& nvjpeg);

}  // namespace leat::worker
