// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu/fused/host_steps.h"

#include <cstring>
#include <variant>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "core/status.h"
#include "worker/gpu/fused/tail.h"

namespace leat::worker {
namespace {

// Runs an operator on values of the host, as RowProgram does.
absl::Status RunHostKernel(const OperatorKernel& kernel,
                           const OperatorCall& call, const Tensor& out) {
  Tensor result{out.dtype, 0, {}, out.data};
  RETURN_IF_ERROR(kernel.Shape(call, &result));
  if (result.bytes() != out.bytes())
    return Internal("a value of {} bytes, want {}", result.bytes(),
                    out.bytes());
  return kernel.Run(call, result);
}

// As in RowProgram, a chosen value of the result's type and shape is copied: a
// NaN of float16 keeps its bits.
absl::Status RunWhere(const WhereStep& where, const SampleRng& rng,
                      const std::vector<Tensor>& values, const Tensor& out) {
  const bool first = values[where.condition].data[0] != std::byte{0};
  const Tensor& chosen = values[first ? where.a : where.b];
  if (chosen.dtype == out.dtype && chosen.rank == out.rank &&
      chosen.dims == out.dims) {
    memcpy(out.data, chosen.data, out.bytes());
    return absl::OkStatus();
  }
  const Tensor* const inputs[] = {&values[where.condition], &values[where.a],
                                  &values[where.b]};
  return RunHostKernel(*where.kernel, {inputs, {}, rng}, out);
}

}  // namespace

std::byte* PlaceHostValue(uint32_t value, FusedScratch::Sample* sample) {
  Tensor& tensor = sample->values[value];
  std::vector<std::byte>& memory = sample->host[value];
  memory.resize(tensor.bytes());
  tensor.data = memory.data();
  return memory.data();
}

absl::Status RunHostStep(const Step& step, Whose whose, const RowInput& input,
                         FusedScratch* scratch) {
  std::byte* const out = PlaceHostValue(step.node, &scratch->samples[whose]);
  const std::vector<Tensor>& values = scratch->samples[whose].values;
  const SampleRng rng = DrawsOf(input, step.node, false);
  if (const auto* coin = std::get_if<CoinFlipStep>(&step.what)) {
    *out = std::byte{Draw(*coin, rng)};
  } else if (const auto* uniform = std::get_if<UniformStep>(&step.what)) {
    const float value = Draw(*uniform, rng);
    memcpy(out, &value, sizeof value);
  } else if (const auto* normalize = std::get_if<NormalizeStep>(&step.what)) {
    normalize->normalizer.Run(values[normalize->input], out);
  } else if (const auto* transpose = std::get_if<TransposeStep>(&step.what)) {
    Transpose(values[transpose->input], transpose->perm, out);
  } else if (const auto* partner = std::get_if<PartnerStep>(&step.what)) {
    const Tensor& of = scratch->samples[Whose::kPartner].values[partner->input];
    memcpy(out, of.data, of.bytes());
  } else if (const auto* where = std::get_if<WhereStep>(&step.what)) {
    return RunWhere(*where, rng, values, values[step.node]);
  } else if (const auto* kernel = std::get_if<KernelStep>(&step.what)) {
    absl::InlinedVector<const Tensor*, 4> inputs, args;
    for (const uint32_t value : kernel->inputs)
      inputs.push_back(&values[value]);
    for (const uint32_t value : kernel->args)
      args.push_back(value == kNoValue ? nullptr : &values[value]);
    return RunHostKernel(
        *kernel->kernel,
        {inputs, args, DrawsOf(input, step.node, kernel->per_batch)},
        values[step.node]);
  } else {
    Cast(values[InputOf(step)], step.dtype, out);
  }
  return absl::OkStatus();
}

}  // namespace leat::worker
