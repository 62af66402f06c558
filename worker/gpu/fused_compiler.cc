// SPDX-License-Identifier: Apache-2.0
//
// From a checked graph to a FusedProgram: each of the steps that the CPU's
// compiler makes is the host's, part of a chain or of a tail, or a stage's.
// What stages read of chains and tails is a head: a field behind the schema's,
// whose place is the slot's memory; or, of a chain whose size is the row's own,
// what a stage makes of the decoded pixels.
//
//   decode, resize, brightness, normalize; label, one_hot
//   chain ────────► head ► stage ► stage     host's values
#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>

#include "core/status.h"
#include "worker/gpu/fused_kernel.h"
#include "worker/gpu/fused_layout.h"
#include "worker/gpu/fused_program.h"
#include "worker/gpu/fused_tail.h"

namespace leat::worker {
namespace {

constexpr size_t kMaxPixelTables = size_t{1} << 20;
constexpr uint32_t kMaxViews = 64;
// Of a value that the host hands to kernels.
constexpr size_t kMaxHostBytes = size_t{16} << 10;

// The values that a step takes, but for its arguments.
std::vector<uint32_t> InputsOf(const Step& step) {
  if (const auto* kernel = std::get_if<KernelStep>(&step.what))
    return kernel->inputs;
  if (const auto* where = std::get_if<WhereStep>(&step.what))
    return {where->condition, where->a, where->b};
  if (const auto* decode = std::get_if<DecodeStep>(&step.what))
    return {decode->input};
  if (const auto* image = std::get_if<ImageStep>(&step.what))
    return {image->input};
  if (std::holds_alternative<CoinFlipStep>(step.what) ||
      std::holds_alternative<UniformStep>(step.what))
    return {};
  return {InputOf(step)};
}

}  // namespace

class FusedCompiler {
 public:
  explicit FusedCompiler(const CheckedGraph& graph)
      : graph_(graph), places_(NumValues(graph)), builder_(graph) {}

  absl::StatusOr<std::unique_ptr<FusedProgram>> Run(uint64_t seed,
                                                    const FusedLimits& limits) {
    program_.reset(new FusedProgram);
    program_->seed_ = seed;
    program_->limits_ = limits;
    program_->values_ = NumValues(graph_);
    KeepShapes();
    AddStoredValues();
    ASSIGN_OR_RETURN(std::vector<Step> steps, CompileSteps(graph_, true));
    for (Step& step : steps) RETURN_IF_ERROR(Sort(std::move(step)));
    RETURN_IF_ERROR(AddFields());
    if (program_->views_.empty())
      return Unimplemented("cannot be fused: no field is made of an image");
    program_->stages_ = std::make_unique<StageProgram>(
        std::move(builder_), program_->heads_, std::move(host_values_),
        limits.value_bytes);
    if (by_row_ && program_->stages_->most_elements() == 0)
      return Unimplemented(
          "cannot be fused: {} bytes of a row are too few for values whose "
          "size differs from sample to sample",
          limits.value_bytes);
    Finish();
    return std::move(program_);
  }

 private:
  // Where a value is: with the host, a chain's end, a step of a tail, a stage's
  // result; stored, but nothing that the host hands to kernels.
  struct Place {
    enum Kind : uint8_t { kNowhere, kHost, kChain, kTail, kStage } kind;
    size_t index = 0;
  };
  // Of one of the program's chains.
  struct ChainEnd {
    uint32_t node = 0;
    bool resampled = false, mirrored = false;
    std::optional<uint32_t> view;  // some field is made of it
  };
  struct ViewField {
    uint32_t view;
    FusedField field;
  };
  // What stages read of a chain or a tail.
  struct Head {
    uint32_t value;
    StageTensor tensor;
  };

  absl::Status CannotFuse(uint32_t node, const char* why) const {
    return Unimplemented("node {} ({}) cannot be fused: {}", node,
                         graph_.graph.nodes[node].op, why);
  }

  absl::Status CannotFuse(uint32_t node, const absl::Status& why) const {
    if (!absl::IsUnimplemented(why)) return why;
    return CannotFuse(node, std::string(Message(why)).c_str());
  }

  // What is stored and has one size is the host's.
  void AddStoredValues() {
    const std::vector<ValueType>& types = graph_.types[graph_.reader];
    for (uint32_t i = 0; i < types.size(); ++i) {
      const uint32_t value = ValueIndex(graph_, {graph_.reader, i});
      const size_t bytes = HostBytes(value);
      if (bytes == 0) continue;
      places_[value] = {Place::kHost};
      program_->stored_.push_back({i, value, types[i].dtype, bytes});
    }
  }

  // Of a value that the host may hold for kernels; 0: it may not.
  size_t HostBytes(uint32_t value) const {
    const ValueType& type = builder_.TypeOf(value);
    if (!builder_.IsStatic(value)) return 0;
    const StageTensor tensor{.dtype = type.dtype, .shape = type.shape};
    return tensor.bytes() <= kMaxHostBytes ? tensor.bytes() : 0;
  }

  absl::Status Sort(Step step) {
    const std::vector<uint32_t> inputs = InputsOf(step);
    for (const uint32_t value : step.needs)
      if (std::ranges::find(inputs, value) == inputs.end() &&
          places_[value].kind != Place::kHost)
        return CannotFuse(step.node, "an argument is computed of pixels");
    if (auto* decode = std::get_if<DecodeStep>(&step.what)) {
      if (!chains_.empty()) return CannotFuse(step.node, "a second decode");
      program_->encoded_ =
          decode->input - static_cast<uint32_t>(graph_.graph.nodes.size());
      program_->gray_ = decode->gray;
      program_->orient_ = decode->orient;
      if (decode->colours() == Colours::kYcbcr)
        return AddYcbcrDecode(step, std::move(decode->ops));
      program_->bgr_ = decode->colours() == Colours::kBgr;
      return AddChain(0, {.node = step.node}, std::move(decode->ops));
    }
    if (std::holds_alternative<PartnerStep>(step.what))
      return CannotFuse(step.node, "another row's value");
    if (IsTheHosts(step, inputs)) return AddHostStep(std::move(step));
    if (const auto* image = std::get_if<ImageStep>(&step.what))
      if (Extends(*image)) return Extend(step.node, *image);
    const Place::Kind from = places_[inputs[0]].kind;
    const bool tail = std::holds_alternative<NormalizeStep>(step.what) ||
                      std::holds_alternative<CastStep>(step.what) ||
                      std::holds_alternative<TransposeStep>(step.what);
    if (tail && builder_.IsStatic(step.node) &&
        (from == Place::kChain || from == Place::kTail)) {
      places_[step.node] = {Place::kTail, tail_.size()};
      tail_.push_back(std::move(step));
      return absl::OkStatus();
    }
    return AddStage(step, inputs);
  }

  // --- The host's -----------------------------------------------------------

  bool IsTheHosts(const Step& step, const std::vector<uint32_t>& inputs) const {
    if (std::holds_alternative<ImageStep>(step.what)) return false;
    const auto* kernel = std::get_if<KernelStep>(&step.what);
    const bool of_shapes = kernel != nullptr && (kernel->op == "cutmix_share" ||
                                                 kernel->op == "length");
    return std::ranges::all_of(inputs, [&](uint32_t value) {
      return places_[value].kind == Place::kHost ||
             (of_shapes && places_[value].kind != Place::kNowhere &&
              builder_.IsStatic(value));
    });
  }

  absl::Status AddHostStep(Step step) {
    if (HostBytes(step.node) == 0)
      return CannotFuse(step.node, "more than the host computes for a GPU");
    places_[step.node] = {Place::kHost};
    program_->host_steps_.push_back(std::move(step));
    return absl::OkStatus();
  }

  // --- The stages' ----------------------------------------------------------

  absl::Status AddStage(const Step& step, const std::vector<uint32_t>& inputs) {
    for (const uint32_t value : inputs)
      RETURN_IF_ERROR(EnsureTensor(step.node, value));
    if (const absl::Status added = AddStages(step, inputs, &builder_);
        !added.ok())
      return CannotFuse(step.node, added);
    places_[step.node] = {Place::kStage};
    by_row_ = by_row_ || !builder_.IsStatic(step.node);
    return absl::OkStatus();
  }

  // YCbCr is rounded, so views are made of the whole image in it, as on the
  // CPU. The first operator is the colours', and the decode's node.
  absl::Status AddYcbcrDecode(const Step& step, std::vector<ImageOp> ops) {
    const uint32_t decode = ops[0].node;
    ops.erase(ops.begin());
    RETURN_IF_ERROR(AddChain(0, {.node = decode}, {}));
    RETURN_IF_ERROR(EnsureTensor(decode, decode));
    AddYcbcr(decode, &builder_);
    places_[decode] = {Place::kStage};
    if (ops.empty()) return absl::OkStatus();
    Step view{.node = step.node, .dtype = step.dtype};
    view.what = ImageStep{decode, std::move(ops)};
    return AddStage(view, {decode});
  }

  // A chain whose size is the row's own, which a stage makes.
  absl::Status AddSourceOf(uint32_t user, uint32_t value) {
    if (program_->views_.size() == kMaxViews)
      return CannotFuse(user, "too many views");
    program_->views_.push_back({.chain = places_[value].index,
                                .stage = AddSource(value, &builder_),
                                .value = value});
    by_row_ = true;
    return absl::OkStatus();
  }

  // The value is where stages can read it.
  absl::Status EnsureTensor(uint32_t user, uint32_t value) {
    if (builder_.Has(value)) return absl::OkStatus();
    const ValueType& type = builder_.TypeOf(value);
    if (places_[value].kind == Place::kHost) {
      const size_t bytes = HostBytes(value);
      const auto index = static_cast<uint32_t>(host_values_.size());
      host_values_.push_back({value, bytes, host_bytes_});
      host_bytes_ += Aligned(bytes);
      builder_.Put(value, {.in = StageTensor::In::kHost,
                           .index = index,
                           .dtype = type.dtype,
                           .shape = type.shape});
      return absl::OkStatus();
    }
    if (places_[value].kind == Place::kNowhere)
      return CannotFuse(user, "its input is no pixels, nor the host's");
    if (!builder_.IsStatic(value)) return AddSourceOf(user, value);
    heads_.push_back({value, builder_.NewResult(value)});
    return absl::OkStatus();
  }

  // Who writes the value writes the field, if nobody else wants the value; or
  // there is a copy.
  void AddStageField(uint32_t output, uint32_t value) {
    const StageTensor from = builder_.TensorOf(value);
    const StageTensor field{.in = StageTensor::In::kField,
                            .index = output,
                            .dtype = from.dtype,
                            .shape = from.shape};
    std::vector<Stage*> writers;
    bool only = true;
    for (const auto& stage : builder_.stages()) {
      if (IsSame(stage->out(), from)) {
        writers.push_back(stage.get());
        only = only && stage->out().shape == from.shape;
      }
      for (const StageTensor* operand : stage->operands())
        only = only && !IsSame(*operand, from);
    }
    size_t wanted = 0;
    for (const uint32_t other : program_->output_values_)
      wanted += builder_.Has(other) && IsSame(builder_.TensorOf(other), from);
    if (writers.empty() || !only || wanted > 1)
      return AddCopy(from, field, &builder_);
    for (Stage* writer : writers) writer->WriteTo(field);
  }
  static bool IsSame(const StageTensor& a, const StageTensor& b) {
    return a.in == b.in && a.index == b.index;
  }

  // --- Chains ---------------------------------------------------------------

  // It can go on where another chain ends, and all are one.
  bool Extends(const ImageStep& image) const {
    const Place from = places_[image.input];
    if (from.kind != Place::kChain) return false;
    ChainEnd end = chains_[from.index];
    for (const ImageOp& op : image.ops) {
      if (!op.Extends(end.resampled, end.mirrored)) return false;
      Note(op, &end);
    }
    return true;
  }
  static void Note(const ImageOp& op, ChainEnd* end) {
    end->resampled |= op.Resamples();
    end->mirrored |= op.kind == ImageOp::Kind::kFlip;
  }
  absl::Status Extend(uint32_t node, const ImageStep& image) {
    const size_t from = places_[image.input].index;
    ChainEnd end = chains_[from];
    end.node = node;
    end.view.reset();
    return AddChain(from, end, image.ops);
  }
  absl::Status AddChain(size_t parent, ChainEnd end, std::vector<ImageOp> ops) {
    for (const ImageOp& op : ops) {
      program_->dali_ |= op.Resamples() && op.filters.dali;
      Note(op, &end);
    }
    places_[end.node] = {Place::kChain, chains_.size()};
    chains_.push_back(end);
    program_->chains_.push_back({parent, std::move(ops)});
    return absl::OkStatus();
  }

  absl::StatusOr<uint32_t> ViewOf(size_t chain) {
    ChainEnd& end = chains_[chain];
    if (end.view) return *end.view;
    const Shape& shape = graph_.types[end.node][0].shape;
    end.view = static_cast<uint32_t>(program_->views_.size());
    if (*end.view == kMaxViews) return CannotFuse(end.node, "too many views");
    program_->views_.push_back({chain, {shape[0], shape[1]}});
    return *end.view;
  }

  absl::Status AddFields() {
    for (const auto& [name, ref] : graph_.graph.outputs)
      program_->output_values_.push_back(ValueIndex(graph_, ref));
    const auto outputs = static_cast<uint32_t>(graph_.graph.outputs.size());
    for (uint32_t output = 0; output < outputs; ++output)
      RETURN_IF_ERROR(AddField(output));
    // Stages behind the fields may want more heads than were there.
    for (uint32_t head = 0; head < heads_.size(); ++head)
      RETURN_IF_ERROR(AddPixelField(heads_[head].value, outputs + head));
    program_->fields_of_schema_ = outputs;
    for (const Head& head : heads_) program_->heads_.push_back(head.tensor);
    return absl::OkStatus();
  }

  absl::Status AddField(uint32_t output) {
    const uint32_t value = program_->output_values_[output];
    switch (places_[value].kind) {
      case Place::kNowhere:
        return Unimplemented("field \"{}\" is stored, and no scalar",
                             graph_.schema.fields[output].name);
      case Place::kHost:
        if (graph_.schema.fields[output].shape.empty()) {
          AddHostField(output);
          return absl::OkStatus();
        }
        RETURN_IF_ERROR(EnsureTensor(value, value));
        break;
      case Place::kChain:
      case Place::kTail:
        return AddPixelField(value, output);
      case Place::kStage:
        break;
    }
    AddStageField(output, value);
    fields_.push_back({0, {.kind = FusedKind::kStage, .output = output}});
    return absl::OkStatus();
  }

  absl::Status AddPixelField(uint32_t node, uint32_t output) {
    std::vector<const Step*> path;
    Place place = places_[node];
    for (; place.kind == Place::kTail; place = places_[InputOf(*path.back())])
      path.push_back(&tail_[place.index]);
    std::reverse(path.begin(), path.end());
    ASSIGN_OR_RETURN(const uint32_t view, ViewOf(place.index));
    FusedTail tail =
        CompileTail(path, program_->views_[view].size, program_->channels());
    tail.field.output = output;
    tail.field.at = static_cast<uint32_t>(tables_.size());
    tables_.insert(tables_.end(), tail.table.begin(), tail.table.end());
    tables_.resize(Aligned(tables_.size()));
    if (tables_.size() > kMaxPixelTables)
      return CannotFuse(node, "tables of normalize and cast are too large");
    fields_.push_back({view, tail.field});
    return absl::OkStatus();
  }

  void AddHostField(uint32_t output) {
    fields_.push_back({0,
                       {.kind = FusedKind::kHost,
                        .output = output,
                        .element_bytes = static_cast<uint32_t>(
                            graph_.schema.fields[output].row_bytes),
                        .at = program_->host_stride_}});
    program_->host_stride_ += sizeof(uint64_t);
  }

  // What kernels and the host see of values that are on the device.
  void KeepShapes() {
    program_->shapes_.resize(program_->values_);
    for (uint32_t value = 0; value < program_->values_; ++value) {
      if (value == graph_.reader || !builder_.IsStatic(value)) continue;
      const ValueType& type = builder_.TypeOf(value);
      Tensor& tensor = program_->shapes_[value];
      tensor.dtype = type.dtype;
      tensor.rank = static_cast<int>(type.shape.size());
      std::ranges::copy(type.shape, tensor.dims.begin());
    }
  }

  // Lays out what every block begins with.
  void Finish() {
    std::sort(fields_.begin(), fields_.end(),
              [](const ViewField& a, const ViewField& b) {
                return std::tie(a.view, a.field.output) <
                       std::tie(b.view, b.field.output);
              });
    std::vector<FusedView> views;
    for (const FusedProgram::FusedImage& image : program_->views_) {
      const ImageSize size = image.stage ? ImageSize{1, 1} : image.size;
      views.push_back({.width = static_cast<uint32_t>(size.width),
                       .height = static_cast<uint32_t>(size.height)});
      program_->strips_ =
          std::max(program_->strips_,
                   FusedStrips(views.back().width, views.back().height));
    }
    FusedHeader& header = program_->header_;
    header.views = static_cast<uint32_t>(views.size());
    header.fields = static_cast<uint32_t>(fields_.size());
    header.host_stride = program_->host_stride_;
    const size_t view_bytes = views.size() * sizeof(FusedView);
    const size_t field_bytes = fields_.size() * sizeof(FusedField);
    const size_t views_at = Aligned(sizeof(FusedHeader));
    const size_t fields_at = Aligned(views_at + view_bytes);
    const size_t tables_at = Aligned(fields_at + field_bytes);
    header.views_at = static_cast<uint32_t>(views_at);
    header.fields_at = static_cast<uint32_t>(fields_at);
    program_->field_of_output_.resize(fields_.size());
    for (uint32_t f = 0; f < fields_.size(); ++f) {
      auto& [view, field] = fields_[f];
      if (views[view].end_field == 0) views[view].first_field = f;
      views[view].end_field = f + 1;
      if (field.kind == FusedKind::kTable)
        field.at += static_cast<uint32_t>(tables_at);
      program_->field_of_output_[field.output] = f;
      program_->fields_.push_back(field);
    }
    std::vector<std::byte>& prefix = program_->prefix_;
    const std::vector<std::byte>& constants = program_->stages_->constants();
    program_->constants_at_ = Aligned(tables_at + tables_.size());
    prefix.resize(Aligned(program_->constants_at_ + constants.size()));
    std::ranges::copy(constants, prefix.begin() + static_cast<ptrdiff_t>(
                                                      program_->constants_at_));
    memcpy(prefix.data() + views_at, views.data(), view_bytes);
    memcpy(prefix.data() + fields_at, program_->fields_.data(), field_bytes);
    std::copy(tables_.begin(), tables_.end(),
              prefix.begin() + static_cast<ptrdiff_t>(tables_at));
  }

  const CheckedGraph& graph_;
  std::unique_ptr<FusedProgram> program_;
  std::vector<Place> places_;  // by value
  std::vector<ChainEnd> chains_;
  std::vector<Step> tail_;
  StageBuilder builder_;
  std::vector<Head> heads_;
  std::vector<StageHostValue> host_values_;
  size_t host_bytes_ = 0;
  bool by_row_ = false;  // values of a size that is the row's own
  std::vector<ViewField> fields_;
  std::vector<std::byte> tables_;
};

absl::StatusOr<std::unique_ptr<FusedProgram>> FusedProgram::Compile(
    const CheckedGraph& graph, uint64_t seed, const FusedLimits& limits) {
  return FusedCompiler(graph).Run(seed, limits);
}

}  // namespace leat::worker
