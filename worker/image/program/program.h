// SPDX-License-Identifier: Apache-2.0
//
// What a RowProgram holds: a list of steps, each of which computes the value of
// one node.
//
// Steps run when an output, or another step, needs their values. A node that is
// an output is computed straight into its place, others into the scratch. A
// decode and the geometric operators behind it that nobody else looks at are
// one step.
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
  // At the smallest scale that the resize among `ops` bears. REQUIRES: there is
  // one.
  bool reduce = false;
  // Colours that are neither RGB nor gray are the first of them.
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

// The chosen one of two values, by a sample's flag; the other is not computed.
struct WhereStep {
  uint32_t condition = 0, a = 0, b = 0;
  Shape shape;  // -1: the chosen one's
  std::shared_ptr<const OperatorKernel> kernel;
};
// What another row's value is.
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
  bool per_batch = false;  // draws are the step's, not the sample's
};

struct Step {
  uint32_t node = 0;  // whose value it computes
  DType dtype = DType::kUint8;
  std::variant<DecodeStep, ImageStep, NormalizeStep, CastStep, TransposeStep,
               CoinFlipStep, UniformStep, WhereStep, PartnerStep, KernelStep>
      what;
  // Values to be computed before; not those of a WhereStep, which asks for them
  // itself, nor a PartnerStep's, which are another row's.
  std::vector<uint32_t> needs;
};

// A row's values: those of the nodes, and after them the reader's outputs.
// Inputs of steps count so.
uint32_t ValueIndex(const CheckedGraph& graph, const NodeRef& ref);
size_t NumValues(const CheckedGraph& graph);
// The reader's outputs of `input` as values, at values[nodes]. `copies` holds
// what is not aligned. kDataLoss: a field that is not of its type.
absl::Status SetStoredValues(const RowInput& input,
                             std::span<const ValueType> types, size_t nodes,
                             std::vector<Tensor>* values,
                             std::vector<std::vector<std::byte>>* copies);

// The steps of a graph, each after those that it needs; every node but the
// reader is in exactly one. `fuse` as RowProgram::Compile. kUnimplemented: an
// operator without a kernel.
absl::StatusOr<std::vector<Step>> CompileSteps(const CheckedGraph& graph,
                                               bool fuse);

// What a draw is made of, beside random words; what is further down includes
// what is above.
enum class DrawOf : uint8_t {
  kNothing,
  kSample,    // what is stored
  kPartner,   // another row's sample
  kElements,  // it is one of each element's
};
struct RandomNode {
  uint32_t node = 0;
  uint32_t step = 0;  // which takes it
  DrawOf of = DrawOf::kNothing;
};
// In the order of nodes. `steps`: the graph's.
std::vector<RandomNode> RandomNodes(const CheckedGraph& graph,
                                    std::span<const Step> steps);

// What the operator of `node` draws from, for a row; `per_batch`: of its step,
// not of its sample.
SampleRng DrawsOf(uint64_t seed, const RowInput& input, uint32_t node,
                  bool per_batch);

// A sample's draw.
bool Draw(const CoinFlipStep& coin, SampleRng rng);
float Draw(const UniformStep& uniform, SampleRng rng);

struct RowProgram::State {
  uint64_t seed = 0;
  std::vector<ValueType> stored;  // the reader's
  std::vector<Step> steps;
  std::vector<Field> fields;
  std::vector<uint32_t> field_values;  // field -> value
  std::vector<int> places;             // node -> first field, or -1
  std::vector<uint32_t> step_of;       // node -> its step, or kNoValue
  std::vector<uint32_t> always;        // nodes whose steps every row runs
  std::vector<uint32_t> partnered;     // values that rows want of partners
  std::vector<RandomNode> random;
};

}  // namespace leat::worker
