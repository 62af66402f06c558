// SPDX-License-Identifier: Apache-2.0
#include "worker/image/row_program.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "core/status.h"
#include "worker/image/encoded_image.h"
#include "worker/image/program.h"
#include "worker/image/scratch.h"

namespace leat::worker {
namespace {

class Execution {
 public:
  Execution(const RowProgram::State& program, const RowInput& input,
            Scratch::State& scratch,
            std::span<const std::span<std::byte>> outputs)
      : program_(program),
        input_(input),
        scratch_(scratch),
        outputs_(outputs) {}

  absl::Status Run() {
    if (outputs_.size() != program_.fields.size())
      return Internal("{} outputs for {} fields", outputs_.size(),
                      program_.fields.size());
    for (size_t f = 0; f < outputs_.size(); ++f)
      if (outputs_[f].size() != program_.fields[f].row_bytes)
        return Internal("output \"{}\" has {} bytes, want {}",
                        program_.fields[f].name, outputs_[f].size(),
                        program_.fields[f].row_bytes);
    const size_t nodes = program_.places.size();
    scratch_.values.resize(nodes + program_.stored.size());
    if (scratch_.buffers.size() < nodes) scratch_.buffers.resize(nodes);
    RETURN_IF_ERROR(SetStoredValues(input_, program_.stored, nodes,
                                    &scratch_.values, &scratch_.copies));
    for (const Step& step : program_.steps)
      RETURN_IF_ERROR(std::visit(
          [&](const auto& what) { return RunStep(step, what); }, step.what));
    for (size_t f = 0; f < outputs_.size(); ++f) {
      const Tensor& value = scratch_.values[program_.field_values[f]];
      if (value.data != outputs_[f].data())
        memcpy(outputs_[f].data(), value.data, outputs_[f].size());
    }
    return absl::OkStatus();
  }

 private:
  const Tensor& Value(uint32_t index) const { return scratch_.values[index]; }

  // Memory for the step's value: its place among the outputs, or scratch.
  absl::StatusOr<std::byte*> Place(const Step& step,
                                   std::initializer_list<int64_t> dims) {
    Tensor tensor{step.dtype, static_cast<int>(dims.size()), {}, nullptr};
    std::copy(dims.begin(), dims.end(), tensor.dims.begin());
    return Place(step, tensor);
  }
  absl::StatusOr<std::byte*> Place(const Step& step, Tensor tensor) {
    tensor.dtype = step.dtype;
    const int field = program_.places[step.node];
    if (field >= 0) {
      if (tensor.bytes() != outputs_[field].size())
        return Internal("node {} gave {} bytes, want {}", step.node,
                        tensor.bytes(), outputs_[field].size());
      tensor.data = outputs_[field].data();
    } else {
      auto& buffer = scratch_.buffers[step.node];
      RETURN_IF_ERROR(scratch_.Reserve(tensor.bytes(), &buffer));
      tensor.data = buffer.data();
    }
    scratch_.values[step.node] = tensor;
    return tensor.data;
  }

  absl::Status RunStep(const Step& step, const DecodeStep& decode) {
    const Tensor& encoded = Value(decode.input);
    ASSIGN_OR_RETURN(const EncodedImage image,
                     EncodedImage::Open({encoded.data, encoded.bytes()},
                                        decode.orient, scratch_));
    View view(image.size());
    RETURN_IF_ERROR(
        ComposeView(decode.ops, program_.seed, input_, scratch_.values, &view));
    const Colours colours = decode.colours();
    ASSIGN_OR_RETURN(std::byte* const out,
                     Place(step, {view.size().height, view.size().width,
                                  ChannelsOf(colours)}));
    return image.Run(view, colours, decode.partial, scratch_, out);
  }

  absl::Status RunStep(const Step& step, const ImageStep& image) {
    const Tensor& in = Value(image.input);
    View view(ImageSize{in.dims[0], in.dims[1]});
    RETURN_IF_ERROR(
        ComposeView(image.ops, program_.seed, input_, scratch_.values, &view));
    ASSIGN_OR_RETURN(
        std::byte* const out,
        Place(step, {view.size().height, view.size().width, in.dims[2]}));
    return RunOnTensor(view, in, scratch_, out);
  }

  absl::Status RunStep(const Step& step, const NormalizeStep& normalize) {
    const Tensor& in = Value(normalize.input);
    ASSIGN_OR_RETURN(std::byte* const out, Place(step, in));
    normalize.normalizer.Run(in, out);
    return absl::OkStatus();
  }

  absl::Status RunStep(const Step& step, const CastStep& cast) {
    const Tensor& in = Value(cast.input);
    ASSIGN_OR_RETURN(std::byte* const out, Place(step, in));
    Cast(in, step.dtype, out);
    return absl::OkStatus();
  }

  absl::Status RunStep(const Step& step, const TransposeStep& transpose) {
    const Tensor& in = Value(transpose.input);
    Tensor turned = in;
    for (int i = 0; i < in.rank; ++i)
      turned.dims[i] = in.dims[transpose.perm[i]];
    ASSIGN_OR_RETURN(std::byte* const out, Place(step, turned));
    Transpose(in, transpose.perm, out);
    return absl::OkStatus();
  }

  SampleRng Rng(const Step& step) const {
    return SampleRng(program_.seed, input_.epoch, input_.sample, step.node);
  }

  absl::Status RunStep(const Step& step, const CoinFlipStep& coin) {
    ASSIGN_OR_RETURN(std::byte* const out, Place(step, Tensor{}));
    *out = std::byte{Draw(coin, Rng(step))};
    return absl::OkStatus();
  }

  absl::Status RunStep(const Step& step, const UniformStep& uniform) {
    ASSIGN_OR_RETURN(std::byte* const out, Place(step, Tensor{}));
    const float value = Draw(uniform, Rng(step));
    memcpy(out, &value, sizeof value);
    return absl::OkStatus();
  }

  absl::Status RunStep(const Step& step, const KernelStep& operation) {
    absl::InlinedVector<const Tensor*, 4> inputs, args;
    for (const uint32_t input : operation.inputs)
      inputs.push_back(&Value(input));
    for (const uint32_t arg : operation.args)
      args.push_back(arg == kNoValue ? nullptr : &Value(arg));
    const OperatorCall call{inputs, args, Rng(step)};
    Tensor result{step.dtype, 0, {}, nullptr};
    if (absl::Status status = operation.kernel->Shape(call, &result);
        !status.ok())
      return Annotate(status, operation.op);
    ASSIGN_OR_RETURN(result.data, Place(step, result));
    return Annotate(operation.kernel->Run(call, result), operation.op);
  }

  const RowProgram::State& program_;
  const RowInput& input_;
  Scratch::State& scratch_;
  const std::span<const std::span<std::byte>> outputs_;
};

}  // namespace

absl::Status SetStoredValues(const RowInput& input,
                             std::span<const ValueType> types, size_t nodes,
                             std::vector<Tensor>* values,
                             std::vector<std::vector<std::byte>>* copies) {
  if (input.fields.size() != types.size())
    return Internal("a stored sample of {} fields, want {}",
                    input.fields.size(), types.size());
  copies->resize(types.size());
  for (size_t i = 0; i < types.size(); ++i) {
    const StoredField& field = input.fields[i];
    const ValueType& type = types[i];
    const Shape& shape = field.shape.empty() ? type.shape : field.shape;
    const bool encoded = type.kind == ValueType::Kind::kEncoded;
    Tensor& value = (*values)[nodes + i];
    value = {type.dtype,
             encoded ? 1 : static_cast<int>(shape.size()),
             {},
             const_cast<std::byte*>(field.bytes.data())};
    if (encoded)
      value.dims[0] = static_cast<int64_t>(field.bytes.size());
    else
      std::copy(shape.begin(), shape.end(), value.dims.begin());
    if (shape.size() != type.shape.size() ||
        value.bytes() != field.bytes.size())
      return DataLoss(
          "output {} of the reader has {} bytes and {} axes, want "
          "{} bytes and {} axes",
          i, field.bytes.size(), shape.size(), value.bytes(),
          type.shape.size());
    if (reinterpret_cast<uintptr_t>(value.data) % SizeOf(type.dtype) != 0) {
      (*copies)[i].assign(field.bytes.begin(), field.bytes.end());
      value.data = (*copies)[i].data();
    }
  }
  return absl::OkStatus();
}

bool Draw(const CoinFlipStep& coin, SampleRng rng) {
  return rng.NextDouble() < coin.probability;
}

float Draw(const UniformStep& uniform, SampleRng rng) {
  const float low = static_cast<float>(uniform.low);
  const float high = static_cast<float>(uniform.high);
  const double u = rng.NextDouble();
  const double exact = low + u * (static_cast<double>(high) - low);
  const float value = static_cast<float>(exact);
  // Rounding may reach the bound, which is excluded.
  return value >= high ? std::nextafter(high, low) : value;
}

RowProgram::RowProgram(std::unique_ptr<State> state)
    : state_(std::move(state)) {}
RowProgram::~RowProgram() = default;

absl::Status RowProgram::Run(
    const RowInput& input, Scratch& scratch,
    std::span<const std::span<std::byte>> outputs) const {
  return Execution(*state_, input, *scratch.state(), outputs).Run();
}

}  // namespace leat::worker
