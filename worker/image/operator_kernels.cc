// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "worker/image/operator_kernel.h"
#include "worker/image/value_kernels.h"

namespace leat::worker {
namespace {

using Maker = absl::StatusOr<std::shared_ptr<const OperatorKernel>> (*)(
    const CheckedGraph& graph, uint32_t node);

struct Entry {
  std::string_view op;
  Maker make;
};

// By the operator's name.
constexpr Entry kKernels[] = {
    {"brightness", MakeBrightnessContrast},
    {"brightness_contrast", MakeBrightnessContrast},
    {"color_space_conversion", MakeColorSpaceConversion},
    {"color_twist", MakeColorTwist},
    {"contrast", MakeBrightnessContrast},
    {"hsv", MakeColorTwist},
    {"hue", MakeColorTwist},
    {"saturation", MakeColorTwist},
};

}  // namespace

absl::StatusOr<std::shared_ptr<const OperatorKernel>> MakeOperatorKernel(
    const CheckedGraph& graph, uint32_t node) {
  for (const Entry& entry : kKernels)
    if (entry.op == graph.graph.nodes[node].op) return entry.make(graph, node);
  return nullptr;
}

}  // namespace leat::worker
