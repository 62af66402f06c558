// SPDX-License-Identifier: Apache-2.0
//
// StageProgram: the stages after the fused kernel, in the order of their
// launches, and the places of everything that they read and write.
//
// In the block, after the fused kernel's input:
//   descriptors[stage][rows] | more of the stages[rows] | host's values[rows]
// In the slot's memory:
//   values[rows] | fault words[rows]
// Values have places (value_places.h). A value whose sizes differ from row to
// row has a place for as many elements as a row's share of the memory has room
// for; the CPU computes a row that needs more. Fault words exist if a stage may
// find that a row has failed: a uint32_t per row, which is 0 before the
// launches, and not 0 afterwards if the CPU must find out what is wrong with
// the row. Immutable; thread-safe.
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
  size_t at;  // offset among a row's values
};

// One launch for a group.
struct StageLaunch {
  StageKind kind;
  LaunchConfig config;
  uint64_t rows_at;  // offset of the descriptors in the block
};

class StageProgram {
 public:
  // `heads`: values that the fused kernel writes. `host`: with their bytes.
  // `value_bytes`: a row's share of the memory, which bounds only values whose
  // sizes differ from row to row.
  StageProgram(StageBuilder builder, const std::vector<StageTensor>& heads,
               std::vector<StageHostValue> host, uint64_t value_bytes);

  // True if there is nothing to do.
  bool empty() const { return stages_.empty(); }
  const std::vector<std::unique_ptr<Stage>>& stages() const { return stages_; }
  const ValuePlaces& places() const { return places_; }
  const std::vector<StageHostValue>& host_values() const { return host_; }
  // The steps whose values have sizes that differ from row to row, in order;
  // and how many elements these may have. 0: there are such values, and no
  // room.
  const std::vector<SizedStep>& sized_steps() const { return sized_steps_; }
  uint64_t most_elements() const { return most_elements_; }
  // The same in every block.
  const std::vector<std::byte>& constants() const { return constants_; }

  // Bytes of the block after the constants, and of the slot's memory.
  uint64_t BlockBytes(size_t rows) const;
  uint64_t ValueBytes(size_t rows) const {
    return FaultsAt(rows) + FaultBytes(rows);
  }
  // The fault words among those bytes, and their offset; 0 bytes: there are
  // none.
  uint64_t FaultBytes(size_t rows) const {
    return may_fail_ ? rows * sizeof(uint32_t) : 0;
  }
  uint64_t FaultsAt(size_t rows) const { return rows * places_.row_bytes(); }

  // Offsets within those bytes of the block.
  uint64_t DescriptorAt(size_t stage, size_t rows, size_t row) const;
  uint64_t ExtraAt(size_t stage, size_t rows, size_t row) const;
  uint64_t HostAt(size_t rows, size_t row) const;
  // `at`: the offset of those bytes in the block.
  StageLaunch Launch(size_t stage, size_t rows, uint64_t at) const;

 private:
  // Places with `elements` for each value whose size differs from row to row.
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
