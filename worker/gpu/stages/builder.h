// SPDX-License-Identifier: Apache-2.0
//
// StageBuilder: the stages of a pipeline while it is compiled. Operators of a
// family are added by a function of their own (…_stages.cc).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "worker/gpu/stages/row_sizes.h"
#include "worker/gpu/stages/stage.h"

namespace leat::worker {

// The bytes of a value of the row's, or those of an element, if it has sizes of
// the row's own.
struct PlaceBytes {
  uint64_t all = 0, each = 0;
};

class StageBuilder {
 public:
  explicit StageBuilder(const CheckedGraph& graph) : graph_(graph) {}

  const CheckedGraph& graph() const { return graph_; }

  // Whose values and stages all others speak of, from now on.
  void BuildFor(Whose whose) { whose_ = whose; }

  // --- What there is --------------------------------------------------------

  // The tensor of a value (ValueIndex), which has been put somewhere.
  StageTensor TensorOf(uint32_t value) const;
  // The value is somewhere.
  bool Has(uint32_t value) const;
  void Put(uint32_t value, StageTensor tensor);
  // Whether all sizes of the value are known.
  bool IsStatic(uint32_t value) const;
  const ValueType& TypeOf(uint32_t value) const;
  // Returns, for each value, without data, what the host and kernels see of
  // values that are on the device. Those whose sizes are the rows' own have
  // none.
  std::vector<Tensor> Shapes(size_t values) const;

  // --- What is added --------------------------------------------------------

  // Memory for a value of the row's.
  StageTensor NewValue(DType dtype, Shape shape, uint32_t sized_by = kNoValue);
  // One of the same sizes as another.
  StageTensor NewValueLike(DType dtype, const StageTensor& other) {
    return NewValue(dtype, other.shape, other.sized_by);
  }
  StageTensor NewConstant(std::span<const std::byte> bytes, DType dtype,
                          Shape shape);
  void Add(std::unique_ptr<Stage> stage);
  // Memory for a node's result, which the stages to come write.
  StageTensor NewResult(uint32_t node);
  // A row's sizes are known before its stages are bound.
  void AddSizes(const Step& step) {
    sized_steps_.push_back({step, whose_, TypeOf(step.node).shape});
  }
  // A stage may find that the row has failed: there is a fault word.
  void AddFault() { may_fail_ = true; }

  std::vector<std::unique_ptr<Stage>>& stages() { return stages_; }
  const std::vector<std::byte>& constants() const { return constants_; }
  const std::vector<PlaceBytes>& value_bytes() const { return value_bytes_; }
  std::vector<SizedStep>& sized_steps() { return sized_steps_; }
  bool may_fail() const { return may_fail_; }

 private:
  const CheckedGraph& graph_;
  Whose whose_ = Whose::kRow;
  OfBoth<std::vector<std::optional<StageTensor>>> tensors_;  // by value
  std::vector<PlaceBytes> value_bytes_;
  std::vector<SizedStep> sized_steps_;
  std::vector<std::byte> constants_;
  std::vector<std::unique_ptr<Stage>> stages_;
  bool may_fail_ = false;
};

// Adds the stages of a step whose inputs the builder has.
// kUnimplemented: why there are none.
absl::Status AddStages(const Step& step, const std::vector<uint32_t>& inputs,
                       StageBuilder* builder);

// One function a family adds the steps that AddStages gives it.
absl::Status AddArithmetic(const Step& step, const KernelStep& operation,
                           StageBuilder* builder);
absl::Status AddLookup(const Step& step, const KernelStep& operation,
                       StageBuilder* builder);
absl::Status AddOneHot(const Step& step, const KernelStep& operation,
                       StageBuilder* builder);
absl::Status AddLinear(const Step& step, const KernelStep& operation,
                       StageBuilder* builder);
absl::Status AddMatrix(const Step& step, const KernelStep& operation,
                       StageBuilder* builder);
absl::Status AddBoxes(const Step& step, const KernelStep& operation,
                      StageBuilder* builder);
absl::Status AddPaste(const Step& step, const KernelStep& operation,
                      StageBuilder* builder);
absl::Status AddWarp(const Step& step, const KernelStep& operation,
                     StageBuilder* builder);
absl::Status AddBlur(const Step& step, const KernelStep& operation,
                     StageBuilder* builder);
absl::Status AddWindow(const Step& step, const KernelStep& operation,
                       StageBuilder* builder);
absl::Status AddNoise(const Step& step, const KernelStep& operation,
                      StageBuilder* builder);
absl::Status AddAugment(const Step& step, const KernelStep& operation,
                        StageBuilder* builder);
absl::Status AddStandard(const Step& step, const KernelStep& operation,
                         StageBuilder* builder);
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
// Makes the value of a node, which is RGB, YCbCr, as a decode does.
void AddYcbcr(uint32_t node, StageBuilder* builder);
// Makes the value of a node of what the decoder has left of the row: a view
// whose size is the row's own. Returns the number of the stage.
size_t AddSource(uint32_t node, StageBuilder* builder);
// A copy of `from`.
void AddCopy(const StageTensor& from, const StageTensor& to,
             StageBuilder* builder);
// The value becomes a field, once all stages that compute are there. Who writes
// the value writes the field, if nobody else wants the value, or there is a
// copy. `outputs`: the values of all fields.
void AddFieldOf(uint32_t value, uint32_t output,
                const std::vector<uint32_t>& outputs, StageBuilder* builder);

}  // namespace leat::worker
