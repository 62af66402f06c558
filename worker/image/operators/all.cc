// SPDX-License-Identifier: Apache-2.0
#include "worker/image/operators/kernel.h"

namespace leat::worker {

KernelOr MakeOperatorKernel(const CheckedGraph& graph, uint32_t node) {
  for (const KernelTable& family :
       {kArithmeticKernels, kAugmentKernels, kBatchKernels, kColorKernels,
        kCropMirrorNormalizeKernels, kJpegDistortionKernels, kPeekKernels,
        kPlaceKernels, kRandomKernels, kTableKernels, kWarpKernels})
    for (const KernelMaker& kernel : family)
      if (kernel.op == graph.graph.nodes[node].op)
        return kernel.make(graph, node);
  return nullptr;
}

}  // namespace leat::worker
