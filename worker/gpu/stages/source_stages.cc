// SPDX-License-Identifier: Apache-2.0
//
// Stages that read the decoder's result without the fused kernel: views whose
// size differs from row to row, and the colours of decodes.
#include <cstring>
#include <memory>
#include <vector>

#include "worker/gpu/stages/builder.h"
#include "worker/gpu/stages/image_stages.h"

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

class YcbcrStage final : public Stage {
 public:
  YcbcrStage(const StageTensor& in, const StageTensor& out)
      : Stage(StageKind::kPixels, out, PixelThreadsFor(out)), in_(in) {}

  size_t descriptor_bytes() const override { return sizeof(PixelsRow); }
  std::vector<const StageTensor*> operands() const override { return {&in_}; }
  absl::Status Bind(const StageRow& row,
                    const StageMemory& memory) const override {
    const PixelsRow pixels{.head = HeadOf(PixelsOf(row.SizesOf(in_))),
                           .in = row.AddressOf(in_),
                           .ycbcr = true};
    memcpy(memory.descriptor, &pixels, sizeof pixels);
    return absl::OkStatus();
  }

 private:
  const StageTensor in_;
};

}  // namespace

size_t AddSource(uint32_t node, StageBuilder* builder) {
  builder->Add(std::make_unique<SourceStage>(builder->NewResult(node)));
  return builder->stages().size() - 1;
}

void AddYcbcr(uint32_t node, StageBuilder* builder) {
  const StageTensor rgb = builder->TensorOf(node);
  builder->Add(std::make_unique<YcbcrStage>(rgb, builder->NewResult(node)));
}

}  // namespace leat::worker
