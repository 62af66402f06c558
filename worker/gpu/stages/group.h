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
#include "worker/gpu/device/address.h"
#include "worker/gpu/stages/program.h"

namespace leat::worker {

// Where a group's memory is on the device.
struct StageDevice {
  DeviceAddress block;   // the copy of the block
  DeviceAddress values;  // StageProgram::ValueBytes
};

class StageGroup {
 public:
  // `block`: the whole block, whose bytes from `constants_at` on are the
  // program's constants and from `at` on the stages'. Borrowed, as `program`
  // is. Every row begins as left out.
  void Begin(const StageProgram& program, size_t rows, size_t fields,
             std::span<std::byte> block, uint64_t constants_at, uint64_t at,
             const StageDevice& device);

  // Returns the address of a value, as descriptors have it: a head's is where
  // the fused kernel writes.
  uint64_t AddressOf(size_t row, const StageTensor& tensor) const;

  // Of the row's fault word. REQUIRES: the program may fail.
  uint64_t FaultAddressOf(size_t row) const;

  // Sets the sizes of values of one of the row's samples that are its own, and
  // writes the descriptors of the stages that compute the sample's values.
  // `values`: of its nodes; data of those that the host computes, sizes of
  // those that are known and of what the decoder leaves. Errors: SetSizes',
  // Stage::Bind's.
  absl::Status PrepareRow(size_t row, Whose whose, uint64_t seed,
                          const RowInput& input, std::vector<Tensor>* values);
  // What `stage`, of AddSource, makes its value of: a view of that size, whose
  // tables are in the block. TakeRow follows.
  void BindSource(size_t row, size_t stage, ImageSize size,
                  const FusedRow& source);
  // Sets where an output goes; a null address: it is not written.
  void BindOutput(size_t row, size_t field, DeviceAddress address);
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
