// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu/fused/sample_steps.h"

#include <algorithm>
#include <variant>

#include "worker/gpu/fused/tail.h"

namespace leat::worker {

std::vector<uint32_t> InputsOf(const Step& step) {
  if (const auto* kernel = std::get_if<KernelStep>(&step.what))
    return kernel->inputs;
  if (const auto* where = std::get_if<WhereStep>(&step.what))
    return {where->condition, where->a, where->b};
  if (const auto* decode = std::get_if<DecodeStep>(&step.what))
    return {decode->input};
  if (const auto* image = std::get_if<ImageStep>(&step.what))
    return {image->input};
  if (std::holds_alternative<CoinFlipStep>(step.what) ||
      std::holds_alternative<UniformStep>(step.what) ||
      std::holds_alternative<PartnerStep>(step.what))
    return {};
  return {InputOf(step)};
}

std::vector<Step> StepsOf(const std::vector<uint32_t>& values,
                          size_t num_values, const std::vector<Step>& all) {
  std::vector<bool> wanted(num_values);
  const auto want = [&](const std::vector<uint32_t>& more) {
    for (const uint32_t value : more) wanted[value] = true;
  };
  want(values);
  std::vector<Step> steps;
  for (auto step = all.rbegin(); step != all.rend(); ++step) {
    if (!wanted[step->node]) continue;
    want(InputsOf(*step));
    want(step->needs);
    steps.push_back(*step);
  }
  std::ranges::reverse(steps);
  return steps;
}

std::vector<uint32_t> PartneredBy(const std::vector<Step>& steps) {
  std::vector<uint32_t> values;
  for (const Step& step : steps)
    if (const auto* partner = std::get_if<PartnerStep>(&step.what))
      values.push_back(partner->input);
  return values;
}

}  // namespace leat::worker
