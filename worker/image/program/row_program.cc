// SPDX-License-Identifier: Apache-2.0
#include "worker/image/program/row_program.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "core/observe/stages.h"
#include "core/status.h"
#include "worker/image/program/program.h"
#include "worker/image/program/scratch_state.h"
#include "worker/image/views/encoded_image.h"

namespace leat::worker {
namespace {

// Computes a row, or those values of its partner's row that it needs.
class Execution {
 public:
  // Without `outputs`, every value goes to `row`, which belongs to the scratch.
  Execution(const RowProgram::State& program, const RowInput& input,
            Scratch::State& scratch, RowValues& row,
            std::span<const std::span<std::byte>> outputs = {})
      : program_(program),
        input_(input),
        scratch_(scratch),
        row_(row),
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
    RETURN_IF_ERROR(Compute(program_.always));
    RETURN_IF_ERROR(RequireSound(program_.field_values));
    for (size_t f = 0; f < outputs_.size(); ++f) {
      const Tensor& value = Value(program_.field_values[f]);
      if (value.data != outputs_[f].data())
        memcpy(outputs_[f].data(), value.data, outputs_[f].size());
    }
    return absl::OkStatus();
  }

  // Computes values of a row for its partner, which may use all of them.
  absl::Status ComputePartnered() {
    RETURN_IF_ERROR(Compute(program_.partnered));
    return RequireSound(program_.partnered);
  }

  std::vector<NodeDraw> Draws() {
    Begin();
    const bool stored = !input_.fields.empty();
    const absl::Status store = stored ? Store() : absl::OkStatus();
    std::vector<NodeDraw> draws;
    for (const RandomNode& random : program_.random) {
      NodeDraw& draw = draws.emplace_back();
      draw.node = random.node;
      if (random.of == DrawOf::kElements)
        draw.unknown = "each element has a draw of its own";
      else if (random.of == DrawOf::kPartner)
        draw.unknown = "it depends on the row's partner";
      else if (random.of == DrawOf::kSample && !stored)
        draw.unknown = "it depends on the sample, which was not read";
      else if (const absl::Status status =
                   store.ok() ? DrawInto(random, &draw) : store;
               !status.ok())
        draw.unknown = Message(status);
    }
    return draws;
  }

 private:
  // Computes values of the row, and the values that they need.
  absl::Status Compute(std::span<const uint32_t> values) {
    Begin();
    RETURN_IF_ERROR(Store());
    return Need(values);
  }
  void Begin() {
    const size_t nodes = program_.places.size();
    row_.values.assign(nodes + program_.stored.size(), Tensor{});
    if (row_.buffers.size() < nodes) row_.buffers.resize(nodes);
    row_.damaged.clear();
  }
  absl::Status Store() {
    return SetInputValues(input_, program_.stored, program_.places.size(),
                          &row_.values, &row_.copies, &scratch_);
  }

  absl::Status DrawInto(const RandomNode& random, NodeDraw* draw) {
    const Step& step = program_.steps[random.step];
    if (const auto* kernel = std::get_if<KernelStep>(&step.what)) {
      draw->text =
          kernel->kernel->Drawn({{}, {}, Rng(step, kernel->per_batch)});
      if (!draw->text.empty()) return absl::OkStatus();
    }
    if (const auto* decode = std::get_if<DecodeStep>(&step.what)) {
      RETURN_IF_ERROR(Need(step.needs));
      const Tensor& encoded = Value(decode->input);
      ASSIGN_OR_RETURN(const EncodedImage image,
                       EncodedImage::Open({encoded.data, encoded.bytes()},
                                          decode->orient, scratch_));
      return DrawWindow(decode->ops, image.size(), draw);
    }
    if (const auto* image = std::get_if<ImageStep>(&step.what)) {
      RETURN_IF_ERROR(Need(step.needs));
      const Tensor& in = Value(image->input);
      return DrawWindow(image->ops, {in.dims[0], in.dims[1]}, draw);
    }
    RETURN_IF_ERROR(Need(step.node));
    float number = 0;
    Cast(Value(step.node), DType::kFloat32,
         reinterpret_cast<std::byte*>(&number));
    draw->values = {number};
    return absl::OkStatus();
  }

  // Makes the draws of the operator draw->node, after those of `ops` before it.
  absl::Status DrawWindow(const std::vector<ImageOp>& ops, ImageSize size,
                          NodeDraw* draw) {
    View view(size);
    for (const ImageOp& op : ops) {
      if (op.node == draw->node) {
        const Rect window = DrawnWindow(op, input_, view.size());
        for (const int64_t each :
             {window.y, window.x, window.height, window.width})
          draw->values.push_back(static_cast<double>(each));
        return absl::OkStatus();
      }
      RETURN_IF_ERROR(ComposeView({op}, input_, row_.values, &view));
    }
    return Internal("node {} is in no step", draw->node);
  }

  const Tensor& Value(uint32_t index) const { return row_.values[index]; }

  absl::Status Need(std::span<const uint32_t> values) {
    for (const uint32_t value : values) RETURN_IF_ERROR(Need(value));
    return absl::OkStatus();
  }

  // Recurses as deep as the graph, whose nodes are bounded.
  absl::Status Need(uint32_t value) {
    if (value >= program_.places.size() || Value(value).data != nullptr)
      return absl::OkStatus();
    const Step& step = program_.steps[program_.step_of[value]];
    RETURN_IF_ERROR(Need(step.needs));
    // Geometry may leave lost rows out, and reports lost ones; others use all.
    if (!std::holds_alternative<ImageStep>(step.what))
      RETURN_IF_ERROR(RequireSound(step.needs));
    ++scratch_.steps_run;
    return std::visit([&](const auto& what) { return RunStep(step, what); },
                      step.what);
  }

  // Returns the damage of a value that shows a damaged image, or nullptr.
  const DamagedView* DamageOf(uint32_t value) const {
    for (const auto& [of, damage] : row_.damaged)
      if (of == value) return &damage;
    return nullptr;
  }
  absl::Status RequireSound(std::span<const uint32_t> values) {
    if (row_.damaged.empty()) return absl::OkStatus();
    for (const uint32_t value : values)
      if (const DamagedView* damage = DamageOf(value))
        RETURN_IF_ERROR(damage->Check(scratch_));
    return absl::OkStatus();
  }

  static bool IsAligned(const std::byte* memory, DType dtype) {
    return reinterpret_cast<uintptr_t>(memory) % SizeOf(dtype) == 0;
  }
  // Returns memory for the step's value: its place among the outputs, if that
  // is aligned for its type, or scratch.
  absl::StatusOr<std::byte*> Place(const Step& step,
                                   std::initializer_list<int64_t> dims) {
    Tensor tensor{step.dtype, static_cast<int>(dims.size()), {}, nullptr};
    std::copy(dims.begin(), dims.end(), tensor.dims.begin());
    return Place(step, tensor);
  }
  absl::StatusOr<std::byte*> Place(const Step& step, Tensor tensor) {
    tensor.dtype = step.dtype;
    const int field = outputs_.empty() ? -1 : program_.places[step.node];
    if (field >= 0 && tensor.bytes() != outputs_[field].size())
      return Internal("node {} gave {} bytes, want {}", step.node,
                      tensor.bytes(), outputs_[field].size());
    if (field >= 0 && IsAligned(outputs_[field].data(), step.dtype)) {
      tensor.data = outputs_[field].data();
    } else {  // Run copies fields that kernels cannot write to in place
      auto& buffer = row_.buffers[step.node];
      RETURN_IF_ERROR(scratch_.Reserve(tensor.bytes(), &buffer));
      tensor.data = buffer.data();
    }
    row_.values[step.node] = tensor;
    return tensor.data;
  }

  // Makes an existing value, which stays valid, the value of the step.
  absl::Status Take(const Step& step, const Tensor& value) {
    if (outputs_.empty() || program_.places[step.node] < 0) {
      row_.values[step.node] = value;
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(std::byte* const out, Place(step, value));
    memcpy(out, value.data, value.bytes());
    return absl::OkStatus();
  }

  absl::Status RunStep(const Step& step, const DecodeStep& decode) {
    const StageScope decoding(Stage::kDecode);
    const Tensor& encoded = Value(decode.input);
    ASSIGN_OR_RETURN(EncodedImage image,
                     EncodedImage::Open({encoded.data, encoded.bytes()},
                                        decode.orient, scratch_, input_.forms,
                                        decode.reduce ? DecodeClass::kReduced
                                                      : DecodeClass::kFull));
    View view(image.size());
    RETURN_IF_ERROR(ComposeView(decode.ops, input_, row_.values, &view));
    if (decode.reduce) image.Reduce(scratch_, &view);
    const Colours colours = decode.colours();
    ASSIGN_OR_RETURN(std::byte* const out,
                     Place(step, {view.size().height, view.size().width,
                                  ChannelsOf(colours)}));
    std::optional<DamagedView> damage;
    RETURN_IF_ERROR(
        image.Run(view, colours, decode.partial, scratch_, out, &damage));
    if (damage) {
      damage->Note(decode.ops);
      row_.damaged.emplace_back(step.node, *std::move(damage));
    }
    return absl::OkStatus();
  }

  absl::Status RunStep(const Step& step, const ImageStep& image) {
    const Tensor& in = Value(image.input);
    View view(ImageSize{in.dims[0], in.dims[1]});
    RETURN_IF_ERROR(ComposeView(image.ops, input_, row_.values, &view));
    ASSIGN_OR_RETURN(
        std::byte* const out,
        Place(step, {view.size().height, view.size().width, in.dims[2]}));
    if (const DamagedView* of = DamageOf(image.input)) {
      DamagedView damage = *of;
      bool damaged = false;
      RETURN_IF_ERROR(
          damage.Extend(image.ops, input_, row_.values, scratch_, &damaged));
      if (damaged) row_.damaged.emplace_back(step.node, std::move(damage));
    }
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

  SampleRng Rng(const Step& step, bool per_batch = false) const {
    return DrawsOf(input_, step.node, per_batch);
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

  absl::Status RunStep(const Step& step, const WhereStep& where) {
    RETURN_IF_ERROR(Need(where.condition));
    const uint32_t side =
        Value(where.condition).data[0] != std::byte{0} ? where.a : where.b;
    RETURN_IF_ERROR(Need(side));
    RETURN_IF_ERROR(RequireSound(std::span(&side, 1)));
    const Tensor chosen = Value(side);
    Tensor result{
        step.dtype, static_cast<int>(where.shape.size()), {}, nullptr};
    bool same = chosen.dtype == step.dtype && chosen.rank == result.rank;
    for (int axis = 0; axis < result.rank; ++axis) {
      const int own = axis - (result.rank - chosen.rank);
      const int64_t size = own < 0 ? 1 : chosen.dims[own];
      result.dims[axis] = where.shape[axis] < 0 ? size : where.shape[axis];
      if (size != result.dims[axis] && size != 1)
        return InvalidArgument(
            "where: the chosen value has the size {} on an "
            "axis of {}",
            size, result.dims[axis]);
      same = same && size == result.dims[axis];
    }
    if (same) return Take(step, chosen);
    const std::array inputs = {&Value(where.condition), &chosen, &chosen};
    ASSIGN_OR_RETURN(result.data, Place(step, result));
    return Annotate(where.kernel->Run({inputs, {}, Rng(step)}, result),
                    "where");
  }

  absl::Status RunStep(const Step& step, const PartnerStep& partner) {
    if (!has_partner_) {
      if (input_.partner == nullptr)
        return Internal("a row without a partner, which node {} wants",
                        step.node);
      RETURN_IF_ERROR(input_.partner->With([&](const RowInput& input) {
        return Execution(program_, input, scratch_, scratch_.partner)
            .ComputePartnered();
      }));
      has_partner_ = true;
    }
    return Take(step, scratch_.partner.values[partner.input]);
  }

  absl::Status RunStep(const Step& step, const KernelStep& operation) {
    absl::InlinedVector<const Tensor*, 4> inputs, args;
    for (const uint32_t input : operation.inputs)
      inputs.push_back(&Value(input));
    for (const uint32_t arg : operation.args)
      args.push_back(arg == kNoValue ? nullptr : &Value(arg));
    const OperatorCall call{inputs, args, Rng(step, operation.per_batch),
                            scratch_.limits().formats};
    Tensor result{step.dtype, 0, {}, nullptr};
    if (absl::Status status = operation.kernel->Shape(call, &result);
        !status.ok())
      return Annotate(status, operation.op);
    ASSIGN_OR_RETURN(result.data, Place(step, result));
    RETURN_IF_ERROR(scratch_.ChargeOperator(operation.kernel->WorkBytes(call)));
    return Annotate(operation.kernel->Run(call, result), operation.op);
  }

  const RowProgram::State& program_;
  const RowInput& input_;
  Scratch::State& scratch_;
  RowValues& row_;
  const std::span<const std::span<std::byte>> outputs_;
  bool has_partner_ = false;
};

}  // namespace

RowProgram::RowProgram(std::unique_ptr<State> state)
    : state_(std::move(state)) {}
RowProgram::~RowProgram() = default;

absl::Status RowProgram::Run(
    const RowInput& input, Scratch& scratch,
    std::span<const std::span<std::byte>> outputs) const {
  const StageScope augmenting(Stage::kAugment);
  while (true) {
    RETURN_IF_ERROR(scratch.BeginRow());
    Scratch::State& state = *scratch.state();
    absl::Status status =
        Execution(*state_, input, state, state.row, outputs).Run();
    if (!scratch.EndRow()) return status;
  }
}

std::vector<NodeDraw> RowProgram::Draws(const RowInput& input,
                                        Scratch& scratch) const {
  std::vector<NodeDraw> draws =
      Execution(*state_, input, *scratch.state(), scratch.state()->row).Draws();
  scratch.EndRow();
  return draws;
}

bool RowProgram::draws_need_fields() const {
  return std::ranges::any_of(state_->random, [](const RandomNode& random) {
    return random.of == DrawOf::kSample;
  });
}

}  // namespace leat::worker
