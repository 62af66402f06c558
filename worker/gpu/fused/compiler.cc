// SPDX-License-Identifier: Apache-2.0
//
// Makes a FusedProgram from a checked graph: each step of the CPU's compiler
// becomes the host's, a part of a chain or of a tail, or a stage. A chain or
// tail that stages read has a head: a field after the schema's, written to the
// slot's memory; or, if a chain's size differs from row to row, a value that a
// stage makes from the decoded pixels.
//
//   decode, resize, brightness, normalize; label, one_hot
//   chain ────────► head ► stage ► stage     host's values
//
// Everything upstream of `partner` is compiled for the partner's sample first,
// and then everything that the outputs need for the row's sample. There
// `partner` is the place of the other sample's value.
//
//   partner's   chain ► head ────┐
//   row's       chain ► head ► add ► …
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "core/pipeline/device_forms.h"
#include "core/status.h"
#include "worker/gpu/fused/chains.h"
#include "worker/gpu/fused/fields.h"
#include "worker/gpu/fused/program.h"
#include "worker/gpu/fused/sample_steps.h"
#include "worker/gpu/fused/tail.h"
#include "worker/gpu/layout/fused_layout.h"
#include "worker/gpu/layout/whose.h"

namespace leat::worker {

class FusedCompiler {
 public:
  explicit FusedCompiler(const CheckedGraph& graph)
      : graph_(graph), builder_(graph) {}

  absl::StatusOr<std::unique_ptr<FusedProgram>> Run(const FusedLimits& limits) {
    program_.reset(new FusedProgram);
    program_->limits_ = limits;
    program_->values_ = NumValues(graph_);
    program_->shapes_ = builder_.Shapes(program_->values_);
    for (const auto& [name, ref] : graph_.graph.outputs)
      program_->output_values_.push_back(ValueIndex(graph_, ref));
    ASSIGN_OR_RETURN(const std::vector<Step> steps, CompileSteps(graph_, true));
    const std::vector<uint32_t> partnered = PartneredBy(steps);
    program_->has_partner_ = !partnered.empty();
    RETURN_IF_ERROR(AddSample(Whose::kPartner, partnered, steps));
    RETURN_IF_ERROR(AddSample(Whose::kRow, program_->output_values_, steps));
    RETURN_IF_ERROR(AddFields());
    program_->chains_ = std::move(chains_.chains());
    program_->views_ = std::move(chains_.views());
    for (const Whose whose : {Whose::kRow, Whose::kPartner})
      program_->decodes_[whose] = chains_.decodes(whose);
    program_->dali_ = chains_.dali();
    if (program_->views_.empty())
      return Unimplemented("cannot be fused: no field is made of an image");
    program_->stages_ = std::make_unique<StageProgram>(
        std::move(builder_), program_->heads_, std::move(host_values_),
        limits.value_bytes);
    if (program_->has_own_sizes_ && program_->stages_->most_elements() == 0)
      return Unimplemented(
          "cannot be fused: {} bytes of a row are too few for values whose "
          "size differs from sample to sample",
          limits.value_bytes);
    program_->host_stride_ = fields_.host_stride();
    program_->LayOut(std::move(fields_.fields()), fields_.tables());
    return std::move(program_);
  }

 private:
  // Where a value is: on the host, at a chain's end, a step of a tail, a
  // stage's result; kNowhere: stored, but not a value that the host passes to
  // kernels.
  struct Place {
    enum Kind : uint8_t { kNowhere, kHost, kChain, kTail, kStage } kind;
    size_t index = 0;
  };
  // The field through which stages read a chain or a tail.
  struct Head {
    uint32_t value;
    Whose whose;
    StageTensor tensor;
  };
  // A step of a tail.
  struct TailStep {
    Step step;
    Whose whose;
  };

  absl::Status CannotFuse(uint32_t node, const char* why) const {
    return Unimplemented("node {} ({}) cannot be fused: {}", node,
                         graph_.graph.nodes[node].op, why);
  }

  absl::Status CannotFuse(uint32_t node, const absl::Status& why) const {
    if (!absl::IsUnimplemented(why)) return why;
    return CannotFuse(node, std::string(Message(why)).c_str());
  }

  // Adds the steps that compute these values of one of a row's samples.
  absl::Status AddSample(Whose whose, const std::vector<uint32_t>& values,
                         const std::vector<Step>& steps) {
    whose_ = whose;
    builder_.BuildFor(whose);
    places_[whose].resize(program_->values_);
    AddStoredValues();
    for (Step& step : StepsOf(values, program_->values_, steps))
      RETURN_IF_ERROR(Sort(std::move(step)));
    return absl::OkStatus();
  }

  Place& PlaceOf(uint32_t value) { return places_[whose_][value]; }
  const Place& PlaceOf(uint32_t value) const { return places_[whose_][value]; }

  // Makes stored values of one size the host's.
  void AddStoredValues() {
    const std::vector<ValueType>& types = graph_.types[graph_.stored];
    for (uint32_t i = 0; i < types.size(); ++i) {
      const uint32_t value = ValueIndex(graph_, {graph_.stored, i});
      const size_t bytes = HostBytes(value);
      if (bytes == 0) continue;
      PlaceOf(value) = {Place::kHost};
      if (whose_ == Whose::kRow)  // for both samples
        program_->stored_.push_back({i, value, types[i].dtype, bytes});
    }
  }

  // Returns the bytes of a value that the host may hold for kernels; 0: it may
  // not.
  size_t HostBytes(uint32_t value) const {
    const ValueType& type = builder_.TypeOf(value);
    if (!builder_.IsStatic(value)) return 0;
    const StageTensor tensor{.dtype = type.dtype, .shape = type.shape};
    return tensor.bytes() <= kMostHostValueBytes ? tensor.bytes() : 0;
  }

  absl::Status Sort(Step step) {
    const std::vector<uint32_t> inputs = InputsOf(step);
    for (const uint32_t value : step.needs)
      if (std::ranges::find(inputs, value) == inputs.end() &&
          PlaceOf(value).kind != Place::kHost)
        return CannotFuse(step.node, "an argument is computed of pixels");
    if (auto* decode = std::get_if<DecodeStep>(&step.what))
      return AddDecode(step, std::move(*decode));
    if (const auto* partner = std::get_if<PartnerStep>(&step.what))
      return AddPartner(step, partner->input);
    if (IsTheHosts(step, inputs)) return AddHostStep(std::move(step));
    if (auto* image = std::get_if<ImageStep>(&step.what)) {
      Extend(image);
      if (image->ops.empty()) return absl::OkStatus();
      return AddStage(step, {image->input});
    }
    const Place::Kind from = PlaceOf(inputs[0]).kind;
    const bool tail = std::holds_alternative<NormalizeStep>(step.what) ||
                      std::holds_alternative<CastStep>(step.what) ||
                      std::holds_alternative<TransposeStep>(step.what);
    if (tail && builder_.IsStatic(step.node) &&
        (from == Place::kChain || from == Place::kTail)) {
      PlaceOf(step.node) = {Place::kTail, tail_.size()};
      tail_.push_back({std::move(step), whose_});
      return absl::OkStatus();
    }
    return AddStage(step, inputs);
  }

  // Adds the one decode, which both samples share.
  absl::Status AddDecode(const Step& step, DecodeStep decode) {
    const auto nodes = static_cast<uint32_t>(graph_.graph.nodes.size());
    if (decode.input < nodes)
      return CannotFuse(step.node, "it decodes another row's image");
    if (decode_.value_or(step.node) != step.node)
      return CannotFuse(step.node, "a second decode");
    decode_ = step.node;
    program_->encoded_ = decode.input - nodes;
    program_->gray_ = decode.gray;
    program_->orient_ = decode.orient;
    program_->reduces_ = decode.reduce;
    if (decode.colours() == Colours::kYcbcr && decode.reduce)
      return CannotFuse(step.node, "YCbCr of an image of a smaller scale");
    if (decode.colours() == Colours::kYcbcr)
      return AddYcbcrDecode(step, std::move(decode.ops));
    program_->bgr_ = decode.colours() == Colours::kBgr;
    AddImage(step.node, std::move(decode.ops));
    return absl::OkStatus();
  }

  // YCbCr is rounded, so views are made from the whole image in it, as on the
  // CPU. The first operator converts the colours, and has the decode's node.
  absl::Status AddYcbcrDecode(const Step& step, std::vector<ImageOp> ops) {
    const uint32_t decode = ops[0].node;
    ops.erase(ops.begin());
    AddImage(decode, {});
    RETURN_IF_ERROR(EnsureTensor(decode, decode));
    AddYcbcr(decode, &builder_);
    PlaceOf(decode) = {Place::kStage};
    if (ops.empty()) return absl::OkStatus();
    Step view{.node = step.node, .dtype = step.dtype};
    view.what = ImageStep{decode, std::move(ops)};
    return AddStage(view, {decode});
  }

  // Gives the value the place that it has for the partner's sample.
  absl::Status AddPartner(const Step& step, uint32_t input) {
    const Place from = places_[Whose::kPartner][input];
    if (from.kind == Place::kNowhere)
      return CannotFuse(step.node, "another row's stored value");
    if (from.kind == Place::kHost) return AddHostStep(step);
    if (!builder_.IsStatic(step.node))
      return CannotFuse(
          step.node,
          "another row's value, whose size differs from sample to sample");
    PlaceOf(step.node) = from;
    builder_.BuildFor(Whose::kPartner);
    std::optional<StageTensor> tensor;
    if (builder_.Has(input)) tensor = builder_.TensorOf(input);
    builder_.BuildFor(whose_);
    if (tensor) builder_.Put(step.node, *std::move(tensor));
    return absl::OkStatus();
  }

  // --- The host's -----------------------------------------------------------

  bool IsTheHosts(const Step& step, const std::vector<uint32_t>& inputs) const {
    if (std::holds_alternative<ImageStep>(step.what)) return false;
    const auto* kernel = std::get_if<KernelStep>(&step.what);
    const bool of_shapes = kernel != nullptr && (kernel->op == "cutmix_share" ||
                                                 kernel->op == "length");
    return std::ranges::all_of(inputs, [&](uint32_t value) {
      return PlaceOf(value).kind == Place::kHost ||
             (of_shapes && PlaceOf(value).kind != Place::kNowhere &&
              builder_.IsStatic(value));
    });
  }

  absl::Status AddHostStep(Step step) {
    if (HostBytes(step.node) == 0)
      return CannotFuse(step.node, "more than the host computes for a GPU");
    PlaceOf(step.node) = {Place::kHost};
    program_->host_steps_[whose_].push_back(std::move(step));
    return absl::OkStatus();
  }

  // --- The stages' ----------------------------------------------------------

  absl::Status AddStage(const Step& step, const std::vector<uint32_t>& inputs) {
    for (const uint32_t value : inputs)
      RETURN_IF_ERROR(EnsureTensor(step.node, value));
    if (const absl::Status added = AddStages(step, inputs, &builder_);
        !added.ok())
      return CannotFuse(step.node, added);
    PlaceOf(step.node) = {Place::kStage};
    program_->has_own_sizes_ |= !builder_.IsStatic(step.node);
    return absl::OkStatus();
  }

  // Adds a stage for a chain whose size differs from row to row.
  absl::Status AddSourceOf(uint32_t user, uint32_t value) {
    if (!chains_.AddSource(PlaceOf(value).index, AddSource(value, &builder_),
                           value))
      return CannotFuse(user, "too many views");
    program_->has_own_sizes_ = true;
    return absl::OkStatus();
  }

  // Ensures that stages can read the value.
  absl::Status EnsureTensor(uint32_t user, uint32_t value) {
    if (builder_.Has(value)) return absl::OkStatus();
    const ValueType& type = builder_.TypeOf(value);
    if (PlaceOf(value).kind == Place::kHost) {
      const size_t bytes = HostBytes(value);
      const auto index = static_cast<uint32_t>(host_values_.size());
      host_values_.push_back({value, whose_, bytes, host_bytes_});
      host_bytes_ += Aligned(bytes);
      builder_.Put(value, {.in = StageTensor::In::kHost,
                           .index = index,
                           .dtype = type.dtype,
                           .shape = type.shape});
      return absl::OkStatus();
    }
    if (PlaceOf(value).kind == Place::kNowhere)
      return CannotFuse(user, "its input is no pixels, nor the host's");
    if (!builder_.IsStatic(value)) return AddSourceOf(user, value);
    heads_.push_back({value, whose_, builder_.NewResult(value)});
    return absl::OkStatus();
  }

  // --- Chains ---------------------------------------------------------------

  void AddImage(uint32_t node, std::vector<ImageOp> ops) {
    PlaceOf(node) = {Place::kChain,
                     chains_.AddImage(whose_, node, std::move(ops))};
  }

  // Extends the chain that the operators follow by as many of the first ones as
  // possible; `image` keeps the others.
  void Extend(ImageStep* image) {
    const Place from = PlaceOf(image->input);
    if (from.kind != Place::kChain) return;
    const size_t count = chains_.Extending(from.index, whose_, image->ops);
    if (count == 0) return;
    const auto rest = image->ops.begin() + static_cast<ptrdiff_t>(count);
    image->input = image->ops[count - 1].node;
    PlaceOf(image->input) = {
        Place::kChain, chains_.Extend(from.index, {image->ops.begin(), rest})};
    image->ops.erase(image->ops.begin(), rest);
  }

  absl::StatusOr<uint32_t> ViewOf(size_t chain) {
    const uint32_t node = chains_.node(chain);
    const Shape& shape = graph_.types[node][0].shape;
    const std::optional<uint32_t> view =
        chains_.ViewOf(chain, {shape[0], shape[1]});
    if (!view) return CannotFuse(node, "too many views");
    return *view;
  }

  // --- Fields ---------------------------------------------------------------

  absl::Status AddFields() {
    const auto outputs = static_cast<uint32_t>(graph_.graph.outputs.size());
    for (uint32_t output = 0; output < outputs; ++output)
      RETURN_IF_ERROR(AddField(output));
    // Stages after the fields may need further heads.
    for (uint32_t head = 0; head < heads_.size(); ++head)
      RETURN_IF_ERROR(AddPixelField(heads_[head].value, heads_[head].whose,
                                    outputs + head));
    program_->fields_of_schema_ = outputs;
    for (const Head& head : heads_) program_->heads_.push_back(head.tensor);
    return absl::OkStatus();
  }

  absl::Status AddField(uint32_t output) {
    const uint32_t value = program_->output_values_[output];
    switch (PlaceOf(value).kind) {
      case Place::kNowhere:
        return Unimplemented("field \"{}\" is stored, and no scalar",
                             graph_.schema.fields[output].name);
      case Place::kHost:
        if (graph_.schema.fields[output].shape.empty()) {
          fields_.AddHost(output, static_cast<uint32_t>(
                                      graph_.schema.fields[output].row_bytes));
          return absl::OkStatus();
        }
        RETURN_IF_ERROR(EnsureTensor(value, value));
        break;
      case Place::kChain:
      case Place::kTail:
        return AddPixelField(value, whose_, output);
      case Place::kStage:
        break;
    }
    AddFieldOf(value, output, program_->output_values_, &builder_);
    fields_.AddStage(output);
    return absl::OkStatus();
  }

  absl::Status AddPixelField(uint32_t node, Whose whose, uint32_t output) {
    std::vector<const Step*> path;
    Place place = places_[whose][node];
    while (place.kind == Place::kTail) {
      const TailStep& tail = tail_[place.index];
      path.push_back(&tail.step);
      place = places_[tail.whose][InputOf(tail.step)];
    }
    std::reverse(path.begin(), path.end());
    ASSIGN_OR_RETURN(const uint32_t view, ViewOf(place.index));
    FusedTail tail =
        CompileTail(path, chains_.size_of(view), program_->channels());
    if (!fields_.AddTail(output, view, std::move(tail)))
      return CannotFuse(node, "tables of normalize and cast are too large");
    return absl::OkStatus();
  }

  const CheckedGraph& graph_;
  std::unique_ptr<FusedProgram> program_;
  Whose whose_ = Whose::kRow;          // the sample whose values have places
  OfBoth<std::vector<Place>> places_;  // per value
  std::optional<uint32_t> decode_;     // node of the step
  FusedChains chains_;
  std::vector<TailStep> tail_;
  StageBuilder builder_;
  std::vector<Head> heads_;
  std::vector<StageHostValue> host_values_;
  size_t host_bytes_ = 0;
  FusedFields fields_;
};

absl::StatusOr<std::unique_ptr<FusedProgram>> FusedProgram::Compile(
    const CheckedGraph& graph, const FusedLimits& limits) {
  return FusedCompiler(graph).Run(limits);
}

}  // namespace leat::worker
