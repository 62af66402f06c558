// SPDX-License-Identifier: Apache-2.0
//
// MapStage: a stage that works element by element (kernels/map.h).
#pragma once

#include <array>
#include <functional>
#include <vector>

#include "worker/gpu/stages/stage.h"

namespace leat::worker {

class MapStage final : public Stage {
 public:
  // Sets the fields that differ from row to row; operands have their addresses.
  using Adjust = std::function<absl::Status(
      const StageRow& row, const StageMemory& memory, MapRow* map)>;

  // Operands have the result's shape or broadcast to it, except those whose
  // steps `adjust` sets. `map`: the operation and its constants.
  MapStage(const StageTensor& out, std::vector<StageTensor> operands,
           const MapRow& map, Adjust adjust = {}, size_t extra_bytes = 0);

  size_t descriptor_bytes() const override { return sizeof(MapRow); }
  size_t extra_bytes() const override { return extra_bytes_; }
  std::vector<const StageTensor*> operands() const override;
  absl::Status Bind(const StageRow& row,
                    const StageMemory& memory) const override;

 private:
  const std::vector<StageTensor> operands_;
  const MapRow map_;
  const Adjust adjust_;
  const size_t extra_bytes_;
};

// Returns the steps of dense memory with these sizes.
std::array<int64_t, kStageAxes> DenseSteps(Sizes sizes);

}  // namespace leat::worker
