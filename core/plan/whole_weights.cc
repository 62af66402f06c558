// SPDX-License-Identifier: Apache-2.0
#include "core/plan/whole_weights.h"

#include <cmath>

#include "core/status.h"

namespace leat {
namespace {

constexpr double kScale = 4294967296.0;  // 2^32

}  // namespace

absl::StatusOr<std::vector<uint64_t>> WholeWeights(
    std::span<const double> weights, std::span<const std::string> names,
    std::string_view field) {
  const auto name = [&](size_t i) {
    return names.empty() ? fmt::format("{}[{}]", field, i)
                         : fmt::format("{}[\"{}\"]", field, names[i]);
  };
  double sum = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (!(weights[i] >= 0))
      return InvalidArgument("{} = {}; want a number of 0 or more", name(i),
                             weights[i]);
    if (weights[i] > kMaxWeight)
      return InvalidArgument("{} = {}; want at most {}", name(i), weights[i],
                             kMaxWeight);
    sum += weights[i];
  }
  if (weights.empty())
    return InvalidArgument("{} has no numbers; want at least one", field);
  if (sum == 0)
    return InvalidArgument("{}: all are 0; want at least one over 0", field);
  std::vector<uint64_t> whole(weights.size());
  for (size_t i = 0; i < weights.size(); ++i) {
    const double scaled = weights[i] * kScale / sum;
    if (weights[i] > 0 && scaled < 1)
      return InvalidArgument(
          "{} = {}; want 0, or at least {:.3g}, which is 2^-32 of the sum",
          name(i), weights[i], sum / kScale);
    whole[i] = static_cast<uint64_t>(std::floor(scaled + 0.5));
  }
  return whole;
}

}  // namespace leat
