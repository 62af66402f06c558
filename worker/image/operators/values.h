// SPDX-License-Identifier: Apache-2.0
//
// Makers of the kernels of operators on values, for the table in all.cc.
// Contract: OperatorKernel.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "core/pipeline/operators.h"
#include "worker/image/operators/kernel.h"

namespace leat::worker {

using KernelOr = absl::StatusOr<std::shared_ptr<const OperatorKernel>>;

// color.cc
KernelOr MakeBrightnessContrast(const CheckedGraph& graph, uint32_t node);
KernelOr MakeColorTwist(const CheckedGraph& graph, uint32_t node);
KernelOr MakeColorSpaceConversion(const CheckedGraph& graph, uint32_t node);

// arithmetic.cc
KernelOr MakeBinary(const CheckedGraph& graph, uint32_t node);
KernelOr MakeUnary(const CheckedGraph& graph, uint32_t node);
KernelOr MakeWhere(const CheckedGraph& graph, uint32_t node);
KernelOr MakeConstant(const CheckedGraph& graph, uint32_t node);

// table.cc
KernelOr MakeLookup(const CheckedGraph& graph, uint32_t node);
KernelOr MakeOneHot(const CheckedGraph& graph, uint32_t node);
KernelOr MakeStandardize(const CheckedGraph& graph, uint32_t node);

// batch.cc
KernelOr MakeBeta(const CheckedGraph& graph, uint32_t node);
KernelOr MakeCutMix(const CheckedGraph& graph, uint32_t node);
KernelOr MakeCutMixShare(const CheckedGraph& graph, uint32_t node);

// random.cc
KernelOr MakeNormal(const CheckedGraph& graph, uint32_t node);
KernelOr MakeChoice(const CheckedGraph& graph, uint32_t node);
KernelOr MakeGaussianNoise(const CheckedGraph& graph, uint32_t node);
KernelOr MakeShotNoise(const CheckedGraph& graph, uint32_t node);
KernelOr MakeSaltAndPepper(const CheckedGraph& graph, uint32_t node);

}  // namespace leat::worker
