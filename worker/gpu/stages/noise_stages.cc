// SPDX-License-Identifier: Apache-2.0
//
// noise_gaussian, noise_shot, noise_salt_and_pepper.
#include <cstring>
#include <memory>
#include <utility>
#include <variant>

#include "core/status.h"
#include "worker/gpu/stages/builder.h"

namespace leat::worker {
namespace {

// The stage's memory holds one element each of salt and pepper.
constexpr size_t kElementRoom = 8;

class NoiseStage final : public Stage {
 public:
  NoiseStage(const Step& step, StageTensor in, const StageTensor& out)
      : Stage(StageKind::kNoise, out, ThreadsFor(out)),
        step_(step),
        in_(std::move(in)) {}

  size_t descriptor_bytes() const override { return sizeof(NoiseRow); }
  size_t extra_bytes() const override { return 2 * kElementRoom; }
  std::vector<const StageTensor*> operands() const override { return {&in_}; }
  absl::Status Bind(const StageRow& row,
                    const StageMemory& memory) const override {
    ASSIGN_OR_RETURN(DeviceForm form,
                     FormOf(step_, std::get<KernelStep>(step_.what), row));
    const auto* noise = std::get_if<NoiseForm>(&form);
    if (noise == nullptr)
      return Internal("node {} has another form", step_.node);
    memcpy(memory.extra, noise->salt, kElementRoom);
    memcpy(memory.extra + kElementRoom, noise->pepper, kElementRoom);
    NoiseRow result{.head = HeadOf(ElementsOf(row.SizesOf(in_))),
                    .in = row.AddressOf(in_),
                    .kind = noise->kind,
                    .group = noise->group,
                    .mean = noise->mean,
                    .deviation = noise->deviation,
                    .factor = noise->factor,
                    .noisy = noise->noisy,
                    .salted = noise->salted,
                    .salt = memory.extra_at,
                    .pepper = memory.extra_at + kElementRoom};
    memcpy(result.counter, noise->origin.counter.data(), sizeof result.counter);
    memcpy(result.key, noise->origin.key.data(), sizeof result.key);
    memcpy(memory.descriptor, &result, sizeof result);
    return absl::OkStatus();
  }

 private:
  const Step step_;
  const StageTensor in_;
};

}  // namespace

absl::Status AddNoise(const Step& step, const KernelStep& operation,
                      StageBuilder* builder) {
  const StageTensor in = builder->TensorOf(operation.inputs[0]);
  builder->Add(
      std::make_unique<NoiseStage>(step, in, builder->NewResult(step.node)));
  return absl::OkStatus();
}

}  // namespace leat::worker
