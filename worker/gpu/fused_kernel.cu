// SPDX-License-Identifier: Apache-2.0
//
// The kernels; their bodies are in fused_kernel.h.
#include "worker/gpu/fused_kernel.h"

namespace {

template <int kChannels>
__device__ void Run(uint64_t block) {
  leat::worker::FusedThread<kChannels>(reinterpret_cast<const uint8_t*>(block),
                                       blockIdx.x * blockDim.x + threadIdx.x,
                                       blockIdx.y);
}

}  // namespace

// At most 72 registers, so that seven blocks fit a multiprocessor.
extern "C" {

__global__ void __launch_bounds__(leat::worker::kFusedBlock)
    leat_fused_1(uint64_t block) {
  Run<1>(block);
}

__global__ void __launch_bounds__(leat::worker::kFusedBlock, 7)
    leat_fused_3(uint64_t block) {
  Run<3>(block);
}

}  // extern "C"
