// SPDX-License-Identifier: Apache-2.0
//
// The draws of a program's random operators.
#include <algorithm>
#include <cmath>
#include <string_view>
#include <variant>

#include "core/random/permutation.h"
#include "worker/image/program/program.h"

namespace leat::worker {
namespace {

// Salts MixKey, so that draws per batch differ from those per sample.
constexpr uint64_t kBatchSalt = 0x6261746368'000000;  // "batch"

bool Takes(const std::vector<ImageOp>& ops, uint32_t node) {
  return std::ranges::any_of(
      ops, [&](const ImageOp& op) { return op.node == node; });
}

// True if the step takes the draw of `node`.
bool Takes(const Step& step, uint32_t node) {
  if (const auto* decode = std::get_if<DecodeStep>(&step.what))
    return Takes(decode->ops, node);
  if (const auto* image = std::get_if<ImageStep>(&step.what))
    return Takes(image->ops, node);
  return step.node == node;
}

// Returns the inputs that the value of each node depends on.
std::vector<DrawOf> MadeOf(const CheckedGraph& checked) {
  const std::vector<Node>& nodes = checked.graph.nodes;
  std::vector<DrawOf> made_of(nodes.size(), DrawOf::kNothing);
  for (uint32_t i = 0; i < nodes.size(); ++i) {
    DrawOf& own = made_of[i];
    if (i == checked.stored) own = DrawOf::kSample;
    if (nodes[i].op == "partner") own = DrawOf::kPartner;
    for (const NodeRef& ref : nodes[i].inputs)
      own = std::max(own, made_of[ref.node]);
    for (const auto& [name, value] : nodes[i].args)
      if (const auto* ref = std::get_if<NodeRef>(&value))
        own = std::max(own, made_of[ref->node]);
  }
  return made_of;
}

// Returns the inputs of a random node's draw; `value`: those of its value.
DrawOf DrawOfStep(const Step& step, DrawOf value, bool scalar) {
  if (const auto* kernel = std::get_if<KernelStep>(&step.what)) {
    if (scalar) return value;
    const SampleRng any(0, 0, 0, step.node);
    return kernel->kernel->Drawn({{}, {}, any}).empty() ? DrawOf::kElements
                                                        : DrawOf::kNothing;
  }
  return value;
}

}  // namespace

std::vector<RandomNode> RandomNodes(const CheckedGraph& graph,
                                    std::span<const Step> steps) {
  const std::vector<Node>& nodes = graph.graph.nodes;
  const std::vector<DrawOf> made_of = MadeOf(graph);
  std::vector<RandomNode> random;
  for (uint32_t i = 0; i < nodes.size(); ++i) {
    const OperatorInfo* const info = FindOperator(nodes[i].op);
    if (info == nullptr || !info->random) continue;
    const auto step = std::ranges::find_if(
        steps, [&](const Step& each) { return Takes(each, i); });
    if (step == steps.end()) continue;
    random.push_back(
        {.node = i,
         .step = static_cast<uint32_t>(step - steps.begin()),
         .of = DrawOfStep(*step, made_of[i], graph.types[i][0].shape.empty())});
  }
  return random;
}

SampleRng DrawsOf(const RowInput& input, uint32_t node, bool per_batch) {
  if (per_batch)
    return SampleRng(MixKey(input.seed, 0, kBatchSalt), input.step_epoch,
                     input.step, node);
  return SampleRng(input.seed, input.epoch, input.sample, node);
}

bool Draw(const CoinFlipStep& coin, SampleRng rng) {
  return rng.NextDouble() < coin.probability;
}

float Draw(const UniformStep& uniform, SampleRng rng) {
  const float low = static_cast<float>(uniform.low);
  const float high = static_cast<float>(uniform.high);
  const double u = rng.NextDouble();
  const double exact = low + u * (static_cast<double>(high) - low);
  const float value = static_cast<float>(exact);
  // Rounding may reach the bound, which is excluded.
  return value >= high ? std::nextafter(high, low) : value;
}

}  // namespace leat::worker
