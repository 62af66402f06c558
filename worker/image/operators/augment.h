// SPDX-License-Identifier: Apache-2.0
//
// Kernels of automatic augmentation. REQUIRES, for each: the node has that
// kernel's operator.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "worker/image/operators/kernel.h"

namespace leat::worker {

using KernelOr = absl::StatusOr<std::shared_ptr<const OperatorKernel>>;

KernelOr MakeAugment(const CheckedGraph& graph, uint32_t node);
KernelOr MakeAutoAugment(const CheckedGraph& graph, uint32_t node);
KernelOr MakeEqualize(const CheckedGraph& graph, uint32_t node);
KernelOr MakeRandAugment(const CheckedGraph& graph, uint32_t node);
KernelOr MakeTrivialAugment(const CheckedGraph& graph, uint32_t node);

}  // namespace leat::worker
