// SPDX-License-Identifier: Apache-2.0
//
// The kernels that every device has: the variants of the fused one, those of
// stages, and those that make pixels from a JPEG's coefficients.
#pragma once

#include <cstddef>
#include <iterator>

#include "worker/gpu/device/kernel_id.h"
#include "worker/gpu/kernels/fused.h"
#include "worker/gpu/kernels/jpeg.h"
#include "worker/gpu/kernels/stages.h"

namespace leat::worker {

inline constexpr size_t kFusedVariants = std::size(kFusedKernels);
inline constexpr size_t kFirstJpegKernel = kFusedVariants + kStageKinds;
inline constexpr size_t kNumKernels = kFirstJpegKernel + kJpegKernelCount;

// `variant`: the index in kFusedKernels.
constexpr KernelId FusedKernelId(size_t variant) {
  return static_cast<KernelId>(variant);
}
constexpr KernelId StageKernelId(StageKind kind) {
  return static_cast<KernelId>(kFusedVariants + static_cast<size_t>(kind));
}
constexpr KernelId JpegKernelId(JpegKernel kernel) {
  return static_cast<KernelId>(kFirstJpegKernel + static_cast<size_t>(kernel));
}

constexpr size_t IndexOf(KernelId kernel) {
  return static_cast<size_t>(kernel);
}
// Returns the name of the compiled kernel. REQUIRES: IndexOf(kernel) <
// kNumKernels.
constexpr const char* NameOf(KernelId kernel) {
  const size_t index = IndexOf(kernel);
  return index < kFusedVariants     ? kFusedKernels[index]
         : index < kFirstJpegKernel ? kStageKernels[index - kFusedVariants]
                                    : kJpegKernels[index - kFirstJpegKernel];
}

}  // namespace leat::worker
