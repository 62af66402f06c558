// SPDX-License-Identifier: Apache-2.0
//
// Operators value by value: inputs arrive in blocks of one type, a loop
// computes a block, and the block is written to the result.
#include "worker/image/loops/arithmetic.h"

#include <algorithm>
#include <cstring>

#include "core/tensor/value_types.h"
#include "worker/image/loops/operand.h"
#include "worker/image/operators/args.h"

namespace leat::worker {
namespace {

// Writes the result in blocks: compute(at, count, out) makes `count` elements
// of `computed` at out, which is aligned.
template <class Compute>
absl::Status InBlocks(const Tensor& result, DType computed, size_t step,
                      Compute compute) {
  alignas(32) std::byte block[kBlock * 8];
  const size_t count = result.elements(), bytes = SizeOf(result.dtype);
  const bool in_place = ComputedAs(result.dtype) == computed &&
                        bytes == SizeOf(computed) &&
                        reinterpret_cast<uintptr_t>(result.data) % bytes == 0;
  for (size_t at = 0; at < count; at += step) {
    const size_t some = std::min(step, count - at);
    std::byte* const to = result.data + at * bytes;
    RETURN_IF_ERROR(compute(at, some, in_place ? to : block));
    if (in_place) continue;
    if (ComputedAs(result.dtype) == computed && bytes == SizeOf(computed))
      memcpy(to, block, some * bytes);
    else
      ConvertValues(block, computed, some, result.dtype, to);
  }
  return absl::OkStatus();
}

// Returns the most elements of a block that holds whole periods only. Periods
// are sizes of trailing axes, so the smaller one divides the larger.
size_t StepOf(size_t a, size_t b) {
  const size_t period = std::max(a, b);
  return kBlock / period * period;
}

bool HasZero(const void* values, DType dtype, size_t count) {
  const auto any = [&]<class T>(T) {
    const T* const first = static_cast<const T*>(values);
    return std::find(first, first + count, T{0}) != first + count;
  };
  if (dtype == DType::kUint8) return any(uint8_t{});
  return dtype == DType::kInt32 ? any(int32_t{}) : any(int64_t{});
}

class Binary : public OperatorKernel {
 public:
  // "gt" and "ge" are "lt" and "le" with swapped inputs.
  static KernelOr Make(const CheckedGraph& graph, uint32_t node) {
    auto kernel = std::make_shared<Binary>();
    std::string op = graph.graph.nodes[node].op;
    kernel->swapped_ = op == "gt" || op == "ge";
    if (op == "gt") op = "lt";
    if (op == "ge") op = "le";
    kernel->divides_ = op == "floordiv";
    kernel->op_ = op;
    const DType joined = PromotedType(InputType(graph, node, 0).dtype,
                                      InputType(graph, node, 1).dtype);
    kernel->type_ = op == "div" ? DType::kFloat32 : ComputedAs(joined);
    const bool bytes = graph.types[node][0].dtype == DType::kBool;
    kernel->computed_ = bytes ? DType::kUint8 : kernel->type_;
    kernel->loop_ = FindBinaryLoops(op, kernel->type_).best;
    if (kernel->loop_ == nullptr)
      return Internal("no loop {} of {}", op, Name(kernel->type_));
    return kernel;
  }

  absl::Status Shape(const OperatorCall& call, Tensor* result) const override {
    return BroadcastShape(call.inputs, result);
  }

  absl::Status Run(const OperatorCall& call,
                   const Tensor& result) const override {
    Operand a(*call.inputs[swapped_ ? 1 : 0], result, type_);
    Operand b(*call.inputs[swapped_ ? 0 : 1], result, type_);
    return InBlocks(result, computed_, StepOf(a.period(), b.period()),
                    [&](size_t at, size_t count, void* out) -> absl::Status {
                      const void* const divisor = b.Next(at, count);
                      if (divides_ && HasZero(divisor, type_, count))
                        return InvalidArgument("a divisor is 0");
                      loop_(a.Next(at, count), divisor, count, out);
                      return absl::OkStatus();
                    });
  }

  absl::StatusOr<DeviceForm> FormOf(const OperatorCall&) const override {
    return ArithmeticForm{.op = op_,
                          .type = type_,
                          .computed = computed_,
                          .swapped = swapped_,
                          .divides = divides_};
  }

 private:
  std::string op_;  // name of the loop
  bool swapped_ = false, divides_ = false;
  DType type_, computed_;
  BinaryLoop loop_ = nullptr;
};

class Unary : public OperatorKernel {
 public:
  static KernelOr Make(const CheckedGraph& graph, uint32_t node) {
    auto kernel = std::make_shared<Unary>();
    std::string op = graph.graph.nodes[node].op;
    const DType dtype = InputType(graph, node, 0).dtype;
    kernel->type_ = ComputedAs(dtype);
    if (op == "invert") {
      op = "bitwise_xor";
      kernel->second_.resize(
          kBlock * SizeOf(kernel->type_),
          dtype == DType::kBool ? std::byte{1} : std::byte{0xff});
    }
    kernel->loop_ = FindBinaryLoops(op, kernel->type_).best;
    if (kernel->loop_ == nullptr)
      return Internal("no loop {} of {}", op, Name(kernel->type_));
    kernel->op_ = op;
    return kernel;
  }

  absl::StatusOr<DeviceForm> FormOf(const OperatorCall&) const override {
    return ArithmeticForm{.op = op_,
                          .type = type_,
                          .computed = type_,
                          .unary = true,
                          .second = second_};
  }

  absl::Status Run(const OperatorCall& call,
                   const Tensor& result) const override {
    Operand a(*call.inputs[0], result, type_);
    return InBlocks(
        result, type_, kBlock, [&](size_t at, size_t count, void* out) {
          const void* const first = a.Next(at, count);
          loop_(first, second_.empty() ? first : second_.data(), count, out);
          return absl::OkStatus();
        });
  }

 private:
  std::string op_;  // name of the loop
  DType type_;
  // the second input, a block of one value; empty: none
  std::vector<std::byte> second_;
  BinaryLoop loop_ = nullptr;
};

class Where : public OperatorKernel {
 public:
  absl::Status Shape(const OperatorCall& call, Tensor* result) const override {
    return BroadcastShape(call.inputs, result);
  }

  absl::Status Run(const OperatorCall& call,
                   const Tensor& result) const override {
    const DType type = ComputedAs(result.dtype);
    const ChoiceLoop loop = FindChoiceLoop(SizeOf(type));
    Operand which(*call.inputs[0], result, DType::kUint8);
    Operand a(*call.inputs[1], result, type), b(*call.inputs[2], result, type);
    const size_t step =
        StepOf(which.period(), std::max(a.period(), b.period()));
    return InBlocks(result, type, step,
                    [&](size_t at, size_t count, void* out) {
                      loop(static_cast<const uint8_t*>(which.Next(at, count)),
                           a.Next(at, count), b.Next(at, count), count, out);
                      return absl::OkStatus();
                    });
  }
};

class Constant : public OperatorKernel {
 public:
  Constant(const CheckedGraph& graph, uint32_t node) {
    const auto& values =
        ConstantArg<std::vector<double>>(graph, node, "values");
    const ValueType& type = graph.types[node][0];
    shape_ = type.shape;
    bytes_.resize(values.size() * SizeOf(type.dtype));
    WithComputed(type.dtype, [&]<class T>(T) {
      for (size_t i = 0; i < values.size(); ++i) {
        const T stored = FromConstant<T>(values[i]);
        memcpy(&bytes_[i * sizeof(T)], &stored, sizeof stored);
      }
    });
  }

  absl::Status Shape(const OperatorCall&, Tensor* result) const override {
    result->rank = static_cast<int>(shape_.size());
    std::copy(shape_.begin(), shape_.end(), result->dims.begin());
    return absl::OkStatus();
  }

  absl::Status Run(const OperatorCall&, const Tensor& result) const override {
    memcpy(result.data, bytes_.data(), bytes_.size());
    return absl::OkStatus();
  }

 private:
  leat::Shape shape_;
  std::vector<std::byte> bytes_;
};

constexpr KernelMaker kArithmeticMakers[] = {
    {"add", Binary::Make},        {"sub", Binary::Make},
    {"mul", Binary::Make},        {"div", Binary::Make},
    {"floordiv", Binary::Make},   {"min", Binary::Make},
    {"max", Binary::Make},        {"lt", Binary::Make},
    {"le", Binary::Make},         {"gt", Binary::Make},
    {"ge", Binary::Make},         {"eq", Binary::Make},
    {"ne", Binary::Make},         {"bitwise_and", Binary::Make},
    {"bitwise_or", Binary::Make}, {"bitwise_xor", Binary::Make},
    {"abs", Unary::Make},         {"invert", Unary::Make},
    {"neg", Unary::Make},         {"where", Make<Where>},
    {"constant", Make<Constant>},
};

}  // namespace

constinit const KernelTable kArithmeticKernels = kArithmeticMakers;

}  // namespace leat::worker
