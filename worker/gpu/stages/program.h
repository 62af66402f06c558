// SPDX-License-Identifier: Apache-2.0
//
// StageProgram: the stages behind the fused kernel, in the order of their
// launches, and where everything that they read and write lies.
//
// In the block, behind what the fused kernel reads:
//   descriptors[stage][rows] | more of the stages[rows] | host's values[rows]
// In the slot's memory:
//   values[rows] | fault words[rows]
// Values have places (value_places.h). Those whose sizes differ from row to row
// have places of as many elements each as a row's share of the memory has room
// for; a row that needs more is the CPU's. Fault words are there if a stage may
// find that a row has failed: a uint32_t a row, which is 0 before the launches,
// and not 0 if the CPU must say what is wrong with the row.
// Immutable; thread-safe.
#pragma once

#include <memory>
#include <vector>

#include "worker/gpu/layout/launch_config.h"
#include "worker/gpu/stages/builder.h"
#include "worker/gpu/stages/stage.h"
#include "worker/gpu/stages/value_places.h"

namespace leat::worker {

// A value that the host computes and stages read.
struct StageHostValue {
  uint32_t value;  // ValueIndex
  Whose whose;
  size_t bytes;
  size_t at;  // among a row's
};

// A launch of a group.
struct StageLaunch {
  StageKind kind;
  LaunchConfig config;
  uint64_t rows_at;  // of the descriptors, in the block
};

class StageProgram {
 public:
  // `heads`: values that the fused kernel writes. `host`: with their bytes.
  // `value_bytes`: a row's share of the memory, which only values of the row's
  // own sizes heed.
  StageProgram(StageBuilder builder, const std::vector<StageTensor>& heads,
               std::vector<StageHostValue> host, uint64_t value_bytes);

  // Whether there is anything to do.
  bool empty() const { return stages_.empty(); }
  const std::vector<std::unique_ptr<Stage>>& stages() const { return stages_; }
  const ValuePlaces& places() const { return places_; }
  const std::vector<StageHostValue>& host_values() const { return host_; }
  // What gives values sizes of a row's own, in order; and how many elements
  // these may have. 0: there are such, and no room for them.
  const std::vector<SizedStep>& sized_steps() const { return sized_steps_; }
  uint64_t most_elements() const { return most_elements_; }
  // The same in every block.
  const std::vector<std::byte>& constants() const { return constants_; }

  // Bytes of the block behind the constants, and of the slot's memory.
  uint64_t BlockBytes(size_t rows) const;
  uint64_t ValueBytes(size_t rows) const {
    return FaultsAt(rows) + FaultBytes(rows);
  }
  // The fault words among those bytes, and their place; 0 bytes: there are
  // none.
  uint64_t FaultBytes(size_t rows) const {
    return may_fail_ ? rows * sizeof(uint32_t) : 0;
  }
  uint64_t FaultsAt(size_t rows) const { return rows * places_.row_bytes(); }

  // Offsets within those bytes of the block.
  uint64_t DescriptorAt(size_t stage, size_t rows, size_t row) const;
  uint64_t ExtraAt(size_t stage, size_t rows, size_t row) const;
  uint64_t HostAt(size_t rows, size_t row) const;
  // Its place in the block is `at`.
  StageLaunch Launch(size_t stage, size_t rows, uint64_t at) const;

 private:
  // With `elements` for values of a row's own sizes.
  ValuePlaces PlacesWith(uint64_t elements,
                         const std::vector<PlaceBytes>& values,
                         const std::vector<StageTensor>& heads) const;

  std::vector<std::unique_ptr<Stage>> stages_;
  std::vector<SizedStep> sized_steps_;
  uint64_t most_elements_ = 0;
  std::vector<std::byte> constants_;
  std::vector<StageHostValue> host_;
  ValuePlaces places_;
  bool may_fail_ = false;
  // The bytes of a row up to each stage; the last entry is for all stages.
  std::vector<size_t> descriptors_, extras_;
  size_t host_bytes_ = 0;
};

}  // namespace leat::worker
