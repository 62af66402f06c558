// SPDX-License-Identifier: Apache-2.0
#include "core/plan/rounded_weight.h"

#include <cmath>

#include "core/plan/whole_weights.h"
#include "core/status.h"

namespace leat {
namespace {

constexpr uint32_t kHalf = 512;  // the least mantissa
// The least exponent of a double is that of 2^-1074; keys begin at 1.
constexpr int kLeastExponent = -1074 - 10;

}  // namespace

absl::Status CheckWeight(double weight, size_t number, std::string_view in) {
  if (weight >= 0 && weight <= kMaxWeight) return absl::OkStatus();
  return InvalidArgument("{}{}weights[{}] = {}; want a number of 0 to {}", in,
                         in.empty() ? "" : ": ", number, weight, kMaxWeight);
}

RoundedWeight RoundedWeight::Of(double weight) {
  if (weight == 0) return RoundedWeight(0);
  int exponent = 0;
  auto mantissa = static_cast<uint32_t>(
      std::floor(std::frexp(weight, &exponent) * 2 * kHalf + 0.5));
  if (mantissa == 2 * kHalf) {
    mantissa = kHalf;
    ++exponent;
  }
  const auto power = static_cast<uint32_t>(exponent - 10 - kLeastExponent);
  return RoundedWeight(power * kHalf + mantissa - kHalf + 1);
}

uint32_t RoundedWeight::mantissa() const { return (key_ - 1) % kHalf + kHalf; }
int RoundedWeight::exponent() const {
  return static_cast<int>((key_ - 1) / kHalf) + kLeastExponent;
}

double RoundedWeight::value() const {
  return is_zero() ? 0 : std::ldexp(mantissa(), exponent());
}

absl::StatusOr<std::vector<uint64_t>> RelativeWeights(
    std::span<const RoundedWeight> weights) {
  std::vector<uint64_t> whole;
  if (weights.empty()) return whole;
  const RoundedWeight& least = weights.front();
  if (weights.back().value() > least.value() * kMaxWeightSpread)
    return InvalidArgument(
        "weights are from {:.4g} to {:.4g}; want 0, or at least the largest / "
        "{}",
        least.value(), weights.back().value(), kMaxWeightSpread);
  for (const RoundedWeight& weight : weights)
    whole.push_back(uint64_t{weight.mantissa()}
                    << (weight.exponent() - least.exponent()));
  return whole;
}

}  // namespace leat
