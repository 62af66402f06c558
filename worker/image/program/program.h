// SPDX-License-Identifier: Apache-2.0
//
// RowProgram::State: a list of steps. Each step computes the value of one node.
//
// A step runs when an output, or another step, needs its value. A node that is
// an output is computed straight into its place, others into the scratch. A
// decode and the geometric operators that follow it are one step, if no other
// operator uses the values between them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "core/pipeline/operators.h"
#include "core/random/philox.h"
#include "worker/image/base/working_memory.h"
#include "worker/image/loops/tensor.h"
#include "worker/image/operators/kernel.h"
#include "worker/image/program/row_program.h"
#include "worker/image/views/image_ops.h"

namespace leat::worker {

struct DecodeStep {
  uint32_t input = 0;
  bool gray = false;
  bool orient = true;
  bool partial = true;
  // Decodes at the smallest scale that the resize among `ops` permits.
  // REQUIRES: there is one.
  bool reduce = false;
  // If its colours are neither RGB nor gray, the first operator sets them.
  std::vector<ImageOp> ops;

  Colours colours() const {
    if (!ops.empty() && ops[0].kind == ImageOp::Kind::kColours)
      return ops[0].colours;
    return gray ? Colours::kGray : Colours::kRgb;
  }
};
struct ImageStep {
  uint32_t input = 0;
  std::vector<ImageOp> ops;
};
struct NormalizeStep {
  uint32_t input = 0;
  Normalizer normalizer;
};
struct CastStep {
  uint32_t input = 0;
};
struct TransposeStep {
  uint32_t input = 0;
  std::vector<int64_t> perm;
};
struct CoinFlipStep {
  double probability = 0.5;
};
struct UniformStep {
  double low = 0, high = 1;
};

// Takes one of two values, by a sample's flag; the other is not computed.
struct WhereStep {
  uint32_t condition = 0, a = 0, b = 0;
  Shape shape;  // -1: the chosen value's size
  std::shared_ptr<const OperatorKernel> kernel;
};
// Takes a value of the partner's row.
struct PartnerStep {
  uint32_t input = 0;
};

// An operator that is none of those above.
inline constexpr uint32_t kNoValue = ~uint32_t{0};
struct KernelStep {
  std::string op;  // for messages
  std::vector<uint32_t> inputs;
  std::vector<uint32_t> args;  // per sample; kNoValue: a constant
  std::shared_ptr<const OperatorKernel> kernel;
  bool per_batch = false;  // draws are per step, not per sample
};

struct Step {
  uint32_t node = 0;  // the node whose value it computes
  DType dtype = DType::kUint8;
  std::variant<DecodeStep, ImageStep, NormalizeStep, CastStep, TransposeStep,
               CoinFlipStep, UniformStep, WhereStep, PartnerStep, KernelStep>
      what;
  // Values to be computed before it. A WhereStep has none, because it requests
  // its values itself, nor has a PartnerStep, whose values are another row's.
  std::vector<uint32_t> needs;
};

// Indices of a row's values: first those of the nodes, then the reader's
// outputs. Inputs of steps are such indices.
uint32_t ValueIndex(const CheckedGraph& graph, const NodeRef& ref);
size_t NumValues(const CheckedGraph& graph);
// Sets the reader's outputs in `input` as values, from values[nodes] on.
// `copies` holds copies of unaligned fields, in the row's working memory.
// kDataLoss: a field does not have its type. Others: of WorkingMemory::Reserve.
absl::Status SetInputValues(const RowInput& input,
                            std::span<const ValueType> types, size_t nodes,
                            std::vector<Tensor>* values,
                            std::vector<std::vector<std::byte>>* copies,
                            WorkingMemory* memory);

// Returns the steps of a graph, each after those that it needs; every node
// except the reader is in exactly one. `fuse` as in RowProgram::Compile.
// kUnimplemented: an operator without a kernel.
absl::StatusOr<std::vector<Step>> CompileSteps(const CheckedGraph& graph,
                                               bool fuse);

// The inputs of a draw, beside random words; each value includes those before
// it.
enum class DrawOf : uint8_t {
  kNothing,
  kSample,    // the stored sample
  kPartner,   // another row's sample
  kElements,  // each element has its own draw
};
struct RandomNode {
  uint32_t node = 0;
  uint32_t step = 0;  // the step that takes the draw
  DrawOf of = DrawOf::kNothing;
};
// Returns the random nodes in their order. `steps`: those of the graph.
std::vector<RandomNode> RandomNodes(const CheckedGraph& graph,
                                    std::span<const Step> steps);

// Returns the generator of the operator of `node` for a row; `per_batch`: it is
// keyed by the row's step, not by its sample.
SampleRng DrawsOf(const RowInput& input, uint32_t node, bool per_batch);

// Makes a sample's draw.
bool Draw(const CoinFlipStep& coin, SampleRng rng);
float Draw(const UniformStep& uniform, SampleRng rng);

struct RowProgram::State {
  std::vector<ValueType> stored;  // of the reader
  std::vector<Step> steps;
  std::vector<Field> fields;
  std::vector<uint32_t> field_values;  // field -> value
  std::vector<int> places;             // node -> first field, or -1
  std::vector<uint32_t> step_of;       // node -> its step, or kNoValue
  std::vector<uint32_t> always;        // nodes whose steps every row runs
  std::vector<uint32_t> partnered;  // values that rows need from their partners
  std::vector<RandomNode> random;
};

}  // namespace leat::worker
