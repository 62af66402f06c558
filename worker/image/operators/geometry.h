// SPDX-License-Identifier: Apache-2.0
//
// Kernels of the operators on place and shape. REQUIRES, for each: the node has
// that kernel's operator.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "worker/image/operators/kernel.h"

namespace leat::worker {

using KernelOr = absl::StatusOr<std::shared_ptr<const OperatorKernel>>;

KernelOr MakeCropMirrorNormalize(const CheckedGraph& graph, uint32_t node);
KernelOr MakeErase(const CheckedGraph& graph, uint32_t node);
KernelOr MakeGaussianBlur(const CheckedGraph& graph, uint32_t node);
KernelOr MakeJpegDistortion(const CheckedGraph& graph, uint32_t node);
KernelOr MakeLength(const CheckedGraph& graph, uint32_t node);
KernelOr MakePeekShape(const CheckedGraph& graph, uint32_t node);
KernelOr MakePad(const CheckedGraph& graph, uint32_t node);
KernelOr MakeReshape(const CheckedGraph& graph, uint32_t node);
KernelOr MakeRotate(const CheckedGraph& graph, uint32_t node);
KernelOr MakeSlice(const CheckedGraph& graph, uint32_t node);
KernelOr MakeStoredBytes(const CheckedGraph& graph, uint32_t node);
KernelOr MakeWarpAffine(const CheckedGraph& graph, uint32_t node);

}  // namespace leat::worker
