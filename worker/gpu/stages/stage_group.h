// SPDX-License-Identifier: Apache-2.0
//
// StageGroup: what the stages read of a group of rows, while it is filled in.
// Part of a FusedGroup, whose rules on threads it follows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "worker/gpu/stages/stage_program.h"

namespace leat::worker {

// Where a group's memory is on the device.
struct StageDevice {
  uint64_t block = 0;   // the copy of the block
  uint64_t values = 0;  // StageProgram::ValueBytes
};

class StageGroup {
 public:
  // `block`: the whole block, whose bytes from `constants_at` on are the
  // program's constants and from `at` on the stages'. Borrowed, as `program`
  // is. Every row begins as left out.
  void Begin(const StageProgram& program, size_t rows, size_t fields,
             std::span<std::byte> block, uint64_t constants_at, uint64_t at,
             const StageDevice& device);

  // Of a value in the slot's memory: where the fused kernel writes a head.
  uint64_t AddressOf(size_t row, const StageTensor& tensor) const;

  // Sets the sizes of the row's values that are its own, and writes its
  // descriptors. `values`: of the row's nodes; data of those that the host
  // computes, sizes of those that are known and of what the decoder leaves.
  // Errors: SetSizes', Stage::Bind's.
  absl::Status PrepareRow(size_t row, uint64_t seed, const RowInput& input,
                          std::vector<Tensor>* values);
  // What `stage`, of AddSource, makes its value of: a view of that size, whose
  // tables are in the block.
  void BindSource(size_t row, size_t stage, ImageSize size,
                  const FusedRow& source);
  // 0: nothing is written there.
  void BindOutput(size_t row, size_t field, uint64_t address);
  // The launches compute the row, or nothing of it.
  void TakeRow(size_t row);
  void SkipRow(size_t row);

 private:
  StageHead* HeadOf(size_t stage, size_t row) const;

  const StageProgram* program_ = nullptr;
  std::span<std::byte> block_;
  size_t rows_ = 0, fields_ = 0;
  uint64_t constants_at_ = 0, at_ = 0;
  StageDevice device_;
  std::vector<uint64_t> outputs_;  // [rows][fields]
};

}  // namespace leat::worker
