// SPDX-License-Identifier: Apache-2.0
//
// Makers of the kernels of operators on values, for the table in
// operator_kernels.cc. Contract: OperatorKernel.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "core/operators.h"
#include "worker/image/operator_kernel.h"

namespace leat::worker {

using KernelOr = absl::StatusOr<std::shared_ptr<const OperatorKernel>>;

// color_kernels.cc
KernelOr MakeBrightnessContrast(const CheckedGraph& graph, uint32_t node);
KernelOr MakeColorTwist(const CheckedGraph& graph, uint32_t node);
KernelOr MakeColorSpaceConversion(const CheckedGraph& graph, uint32_t node);

// arithmetic_kernels.cc
KernelOr MakeBinary(const CheckedGraph& graph, uint32_t node);
KernelOr MakeUnary(const CheckedGraph& graph, uint32_t node);
KernelOr MakeWhere(const CheckedGraph& graph, uint32_t node);
KernelOr MakeConstant(const CheckedGraph& graph, uint32_t node);

}  // namespace leat::worker
