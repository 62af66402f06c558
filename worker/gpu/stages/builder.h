// SPDX-License-Identifier: Apache-2.0
//
// StageBuilder: the stages of a pipeline while it is compiled. Each family of
// operators has a function that adds them (…_stages.cc).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "worker/gpu/stages/row_sizes.h"
#include "worker/gpu/stages/stage.h"

namespace leat::worker {

// The bytes of a row's value, or those per element if its sizes differ from row
// to row.
struct PlaceBytes {
  uint64_t all = 0, each = 0;
};

class StageBuilder {
 public:
  explicit StageBuilder(const CheckedGraph& graph) : graph_(graph) {}

  const CheckedGraph& graph() const { return graph_; }

  // Sets the sample whose values and stages all other functions refer to.
  void BuildFor(Whose whose) { whose_ = whose; }

  // --- What there is --------------------------------------------------------

  // Returns the tensor of a value (ValueIndex), which has been put somewhere.
  StageTensor TensorOf(uint32_t value) const;
  // True if the value has been put somewhere.
  bool Has(uint32_t value) const;
  void Put(uint32_t value, StageTensor tensor);
  // True if all sizes of the value are known.
  bool IsStatic(uint32_t value) const;
  const ValueType& TypeOf(uint32_t value) const;
  // Returns, for each value and without data, the shape that the host and
  // kernels see of values on the device. Values whose sizes differ from row to
  // row have none.
  std::vector<Tensor> Shapes(size_t values) const;

  // --- What is added --------------------------------------------------------

  // Adds memory for a value of the row.
  StageTensor NewValue(DType dtype, Shape shape, uint32_t sized_by = kNoValue);
  // Adds one with the same sizes as another.
  StageTensor NewValueLike(DType dtype, const StageTensor& other) {
    return NewValue(dtype, other.shape, other.sized_by);
  }
  StageTensor NewConstant(std::span<const std::byte> bytes, DType dtype,
                          Shape shape);
  void Add(std::unique_ptr<Stage> stage);
  // Adds memory for a node's result, which later stages write.
  StageTensor NewResult(uint32_t node);
  // Adds a step that computes a row's sizes before its stages are bound.
  void AddSizes(const Step& step) {
    sized_steps_.push_back({step, whose_, TypeOf(step.node).shape});
  }
  // Adds a fault word, because a stage may find that the row has failed.
  void AddFault() { may_fail_ = true; }

  std::vector<std::unique_ptr<Stage>>& stages() { return stages_; }
  const std::vector<std::byte>& constants() const { return constants_; }
  const std::vector<PlaceBytes>& value_bytes() const { return value_bytes_; }
  std::vector<SizedStep>& sized_steps() { return sized_steps_; }
  bool may_fail() const { return may_fail_; }

 private:
  const CheckedGraph& graph_;
  Whose whose_ = Whose::kRow;
  OfBoth<std::vector<std::optional<StageTensor>>> tensors_;  // per value
  std::vector<PlaceBytes> value_bytes_;
  std::vector<SizedStep> sized_steps_;
  std::vector<std::byte> constants_;
  std::vector<std::unique_ptr<Stage>> stages_;
  bool may_fail_ = false;
};

// Adds the stages of a step whose inputs the builder has. kUnimplemented: why
// there are none.
absl::Status AddStages(const Step& step, const std::vector<uint32_t>& inputs,
                       StageBuilder* builder);

// Each function adds the steps of one family that AddStages passes to it.
using KernelFamily = absl::Status(const Step& step, const KernelStep& operation,
                                  StageBuilder* builder);
KernelFamily AddArithmetic;
KernelFamily AddLookup;
KernelFamily AddOneHot;
KernelFamily AddLinear;
KernelFamily AddMatrix;
KernelFamily AddBoxes;
KernelFamily AddPaste;
KernelFamily AddWarp;
KernelFamily AddBlur;
KernelFamily AddWindow;
KernelFamily AddNoise;
KernelFamily AddAugment;
KernelFamily AddStandard;
absl::Status AddReshape(const Step& step, uint32_t input,
                        StageBuilder* builder);
absl::Status AddView(const Step& step, const ImageStep& image,
                     StageBuilder* builder);
absl::Status AddNormalize(const Step& step, const NormalizeStep& normalize,
                          StageBuilder* builder);
absl::Status AddCast(const Step& step, uint32_t input, StageBuilder* builder);
absl::Status AddTranspose(const Step& step, const TransposeStep& transpose,
                          StageBuilder* builder);
absl::Status AddWhere(const Step& step, uint32_t condition, uint32_t a,
                      uint32_t b, StageBuilder* builder);
// Converts the value of a node from RGB to YCbCr, as a decode does.
void AddYcbcr(uint32_t node, StageBuilder* builder);
// Makes the value of a node from the decoder's result for the row: a view whose
// size differs from row to row. Returns the index of the stage.
size_t AddSource(uint32_t node, StageBuilder* builder);
// Adds a copy of `from`.
void AddCopy(const StageTensor& from, const StageTensor& to,
             StageBuilder* builder);
// Makes the value a field, after all computing stages are added. If nothing
// else needs the value, the stage that writes it writes the field; otherwise a
// copy is added. `outputs`: the values of all fields.
void AddFieldOf(uint32_t value, uint32_t output,
                const std::vector<uint32_t>& outputs, StageBuilder* builder);

}  // namespace leat::worker
