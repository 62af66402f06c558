// SPDX-License-Identifier: Apache-2.0
//
// noise_gaussian, noise_shot, noise_salt_and_pepper.
#include <cstring>
#include <memory>
#include <vector>

#include "core/status.h"
#include "worker/gpu/stages/builder.h"
#include "worker/gpu/stages/row_stage.h"

namespace leat::worker {
namespace {

// The stage's memory holds one element each of salt and pepper.
constexpr size_t kElementRoom = 8;

absl::StatusOr<NoiseRow> NoiseRowOf(const Step& step, const StageTensor& in,
                                    const StageRow& row,
                                    const StageMemory& memory) {
  ASSIGN_OR_RETURN(const auto noise, FormFor<NoiseForm>(step, row));
  memcpy(memory.extra, noise.salt, kElementRoom);
  memcpy(memory.extra + kElementRoom, noise.pepper, kElementRoom);
  NoiseRow result{.head = HeadOf(ElementsOf(row.SizesOf(in))),
                  .in = row.AddressOf(in),
                  .kind = noise.kind,
                  .group = noise.group,
                  .mean = noise.mean,
                  .deviation = noise.deviation,
                  .factor = noise.factor,
                  .noisy = noise.noisy,
                  .salted = noise.salted,
                  .salt = memory.extra_at,
                  .pepper = memory.extra_at + kElementRoom};
  memcpy(result.counter, noise.origin.counter.data(), sizeof result.counter);
  memcpy(result.key, noise.origin.key.data(), sizeof result.key);
  return result;
}

}  // namespace

absl::Status AddNoise(const Step& step, const KernelStep& operation,
                      StageBuilder* builder) {
  const StageTensor in = builder->TensorOf(operation.inputs[0]);
  const StageTensor out = builder->NewResult(step.node);
  builder->Add(std::make_unique<RowStage<NoiseRow>>(
      StageKind::kNoise, std::vector{in}, out, ThreadsFor(out),
      [step, in](const StageRow& row, const StageMemory& memory) {
        return NoiseRowOf(step, in, row, memory);
      },
      2 * kElementRoom));
  return absl::OkStatus();
}

}  // namespace leat::worker
