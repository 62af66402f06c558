// SPDX-License-Identifier: Apache-2.0
//
// Stages that read the decoder's result without the fused kernel: views whose
// size differs from row to row, and the colours of decodes.
#include <memory>
#include <vector>

#include "worker/gpu/stages/builder.h"
#include "worker/gpu/stages/image_stages.h"
#include "worker/gpu/stages/row_stage.h"

namespace leat::worker {
namespace {

// StageGroup::BindSource writes its descriptor, since it knows where the pixels
// are.
class SourceStage final : public Stage {
 public:
  explicit SourceStage(const StageTensor& out)
      : Stage(StageKind::kResample, out, ThreadsFor(out)) {}

  size_t descriptor_bytes() const override { return sizeof(ResampleRow); }
  std::vector<const StageTensor*> operands() const override { return {}; }
  absl::Status Bind(const StageRow&, const StageMemory&) const override {
    return absl::OkStatus();
  }
};

}  // namespace

size_t AddSource(uint32_t node, StageBuilder* builder) {
  builder->Add(std::make_unique<SourceStage>(builder->NewResult(node)));
  return builder->stages().size() - 1;
}

void AddYcbcr(uint32_t node, StageBuilder* builder) {
  const StageTensor rgb = builder->TensorOf(node);
  const StageTensor out = builder->NewResult(node);
  builder->Add(std::make_unique<RowStage<PixelsRow>>(
      StageKind::kPixels, std::vector{rgb}, out, PixelThreadsFor(out),
      [rgb](const StageRow& row, const StageMemory&) {
        return PixelsRow{.head = HeadOf(PixelsOf(row.SizesOf(rgb))),
                         .in = row.AddressOf(rgb),
                         .ycbcr = true};
      }));
}

}  // namespace leat::worker
