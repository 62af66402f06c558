// SPDX-License-Identifier: Apache-2.0
//
// StageGroup: the stages' input for a group of rows, while it is written. Part
// of a FusedGroup, whose rules on threads it follows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "worker/gpu/device/address.h"
#include "worker/gpu/stages/program.h"

namespace leat::worker {

// The addresses of a group's memory on the device.
struct StageDevice {
  DeviceAddress block;   // the copy of the block
  DeviceAddress values;  // StageProgram::ValueBytes
};

class StageGroup {
 public:
  // `block`: the whole block; the program's constants are at `constants_at`,
  // the stages' bytes at `at`. `block` and `program` are borrowed. Every row
  // begins as left out.
  void Begin(const StageProgram& program, size_t rows, size_t fields,
             std::span<std::byte> block, uint64_t constants_at, uint64_t at,
             const StageDevice& device);

  // Returns the address of a value for descriptors; for a head it is the
  // address that the fused kernel writes to.
  uint64_t AddressOf(size_t row, const StageTensor& tensor) const;

  // Returns the address of the row's fault word. REQUIRES: the program may
  // fail.
  uint64_t FaultAddressOf(size_t row) const;

  // Sets the sizes of values that differ from row to row, for one of the row's
  // samples, and writes the descriptors of the stages that compute the sample's
  // values. `values`: of its nodes; with data if the host computes them, with
  // sizes if these are known or come from the decoder. Errors: those of
  // SetSizes and Stage::Bind.
  absl::Status PrepareRow(size_t row, Whose whose, const RowInput& input,
                          std::vector<Tensor>* values);
  // Sets the source of `stage`, added by AddSource: a view of that size, whose
  // tables are in the block. TakeRow follows.
  void BindSource(size_t row, size_t stage, ImageSize size,
                  const FusedRow& source);
  // Sets where an output is written; a null address: it is not written.
  void BindOutput(size_t row, size_t field, DeviceAddress address);
  // Make the launches compute the row, or nothing of it.
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
