// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu/fused_program.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <tuple>
#include <utility>
#include <variant>

#include "core/status.h"
#include "worker/gpu/fused_kernel.h"
#include "worker/gpu/fused_layout.h"
#include "worker/gpu/fused_tail.h"

namespace leat::worker {
namespace {

constexpr size_t kMaxPixelTables = size_t{1} << 20;
constexpr uint32_t kMaxViews = 64;

}  // namespace

class FusedCompiler {
 public:
  explicit FusedCompiler(const CheckedGraph& graph)
      : graph_(graph), places_(NumValues(graph)) {}

  absl::StatusOr<std::unique_ptr<FusedProgram>> Run(uint64_t seed,
                                                    const FusedLimits& limits) {
    program_.reset(new FusedProgram);
    program_->seed_ = seed;
    program_->limits_ = limits;
    program_->values_ = NumValues(graph_);
    AddStoredScalars();
    ASSIGN_OR_RETURN(std::vector<Step> steps, CompileSteps(graph_, true));
    for (Step& step : steps) RETURN_IF_ERROR(Sort(std::move(step)));
    for (size_t output = 0; output < graph_.graph.outputs.size(); ++output)
      RETURN_IF_ERROR(AddField(output));
    if (program_->views_.empty())
      return Unimplemented("cannot be fused: no field is made of an image");
    Finish();
    return std::move(program_);
  }

 private:
  // Where a node's value is: with the host, a chain's end, a step of a tail.
  struct Place {
    enum Kind : uint8_t { kHost, kChain, kTail } kind = kHost;
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

  absl::Status CannotFuse(uint32_t node, const char* why) const {
    return Unimplemented("node {} ({}) cannot be fused: {}", node,
                         graph_.graph.nodes[node].op, why);
  }

  void AddStoredScalars() {
    const std::vector<ValueType>& types = graph_.types[graph_.reader];
    for (uint32_t i = 0; i < types.size(); ++i)
      if (types[i].kind == ValueType::Kind::kTensor && types[i].shape.empty())
        program_->stored_.push_back(
            {i, ValueIndex(graph_, {graph_.reader, i}), types[i].dtype});
  }

  absl::Status Sort(Step step) {
    if (auto* decode = std::get_if<DecodeStep>(&step.what)) {
      if (!chains_.empty()) return CannotFuse(step.node, "a second decode");
      program_->encoded_ =
          decode->input - static_cast<uint32_t>(graph_.graph.nodes.size());
      program_->gray_ = decode->gray;
      program_->orient_ = decode->orient;
      return AddChain(0, {.node = step.node}, std::move(decode->ops));
    }
    if (const auto* image = std::get_if<ImageStep>(&step.what))
      return Extend(step.node, *image);
    if (std::holds_alternative<KernelStep>(step.what) ||
        std::holds_alternative<WhereStep>(step.what) ||
        std::holds_alternative<PartnerStep>(step.what))
      return CannotFuse(step.node, "has no place in a GPU's launch");
    if (std::holds_alternative<CoinFlipStep>(step.what) ||
        std::holds_alternative<UniformStep>(step.what) ||
        places_[InputOf(step)].kind == Place::kHost) {
      if (!graph_.types[step.node][0].shape.empty())
        return CannotFuse(step.node, "no scalar");
      program_->host_steps_.push_back(std::move(step));
      return absl::OkStatus();
    }
    places_[step.node] = {Place::kTail, tail_.size()};
    tail_.push_back(std::move(step));
    return absl::OkStatus();
  }

  // A chain that goes on where another one ends, if all can be one.
  absl::Status Extend(uint32_t node, const ImageStep& image) {
    const Place from = places_[image.input];
    if (from.kind != Place::kChain)
      return CannotFuse(image.ops[0].node, "its input is no view of the image");
    ChainEnd end = chains_[from.index];
    end.node = node;
    end.view.reset();
    return AddChain(from.index, end, image.ops);
  }
  absl::Status AddChain(size_t parent, ChainEnd end, std::vector<ImageOp> ops) {
    for (const ImageOp& op : ops) {
      if (!op.Extends(end.resampled, end.mirrored))
        return CannotFuse(op.node, "its input was resampled or mirrored");
      if (op.Resamples() && op.filters.dali)
        return CannotFuse(op.node, "rule \"dali\" is computed on the host");
      end.resampled |= op.Resamples();
      end.mirrored |= op.kind == ImageOp::Kind::kFlip;
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
    if (shape[0] <= 0 || shape[1] <= 0)
      return CannotFuse(end.node, "its size differs from sample to sample");
    end.view = static_cast<uint32_t>(program_->views_.size());
    if (*end.view == kMaxViews) return CannotFuse(end.node, "too many views");
    program_->views_.push_back({chain, {shape[0], shape[1]}});
    return *end.view;
  }

  absl::Status AddField(size_t output) {
    const uint32_t node =
        ValueIndex(graph_, graph_.graph.outputs[output].second);
    program_->output_values_.push_back(node);
    if (places_[node].kind == Place::kHost) return AddHostField(output);
    std::vector<const Step*> path;
    Place place = places_[node];
    for (; place.kind == Place::kTail; place = places_[InputOf(*path.back())])
      path.push_back(&tail_[place.index]);
    std::reverse(path.begin(), path.end());
    ASSIGN_OR_RETURN(const uint32_t view, ViewOf(place.index));
    FusedTail tail =
        CompileTail(path, program_->views_[view].size, program_->channels());
    tail.field.output = static_cast<uint32_t>(output);
    tail.field.at = static_cast<uint32_t>(tables_.size());
    tables_.insert(tables_.end(), tail.table.begin(), tail.table.end());
    tables_.resize(Aligned(tables_.size()));
    if (tables_.size() > kMaxPixelTables)
      return CannotFuse(node, "tables of normalize and cast are too large");
    fields_.push_back({view, tail.field});
    return absl::OkStatus();
  }

  absl::Status AddHostField(size_t output) {
    const Field& schema = graph_.schema.fields[output];
    if (!schema.shape.empty())
      return Unimplemented(
          "field \"{}\" cannot be fused: no scalar, nor an image", schema.name);
    fields_.push_back(
        {0,
         {.kind = FusedKind::kHost,
          .output = static_cast<uint32_t>(output),
          .element_bytes = static_cast<uint32_t>(schema.row_bytes),
          .at = program_->host_stride_}});
    program_->host_stride_ += sizeof(uint64_t);
    return absl::OkStatus();
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
      views.push_back({.width = static_cast<uint32_t>(image.size.width),
                       .height = static_cast<uint32_t>(image.size.height)});
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
    prefix.resize(tables_at + tables_.size());
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
  std::vector<ViewField> fields_;
  std::vector<std::byte> tables_;
};

absl::StatusOr<std::unique_ptr<FusedProgram>> FusedProgram::Compile(
    const CheckedGraph& graph, uint64_t seed, const FusedLimits& limits) {
  return FusedCompiler(graph).Run(seed, limits);
}

uint64_t FusedProgram::TablesAt(FusedHeader* header) const {
  const uint64_t rows = header->rows;
  const uint64_t rows_at = prefix_.size();
  const uint64_t outputs_at =
      Aligned(rows_at + rows * views_.size() * sizeof(FusedRow));
  const uint64_t host_values_at =
      Aligned(outputs_at + rows * fields_.size() * sizeof(uint64_t));
  header->rows_at = static_cast<uint32_t>(rows_at);
  header->outputs_at = static_cast<uint32_t>(outputs_at);
  header->host_values_at = static_cast<uint32_t>(host_values_at);
  return Aligned(host_values_at + rows * host_stride_);
}

uint64_t FusedProgram::BlockBytes(size_t rows) const {
  FusedHeader header = header_;
  header.rows = static_cast<uint32_t>(rows);
  return TablesAt(&header) + rows * Aligned(limits_.max_table_bytes);
}

uint64_t FusedProgram::TableBytesBound(int64_t max_side) const {
  uint64_t sum = 0;
  for (const FusedImage& view : views_) {
    // What is kept of the resized image is no larger than it: no view shrinks
    // by more than from the largest side to its own; twice that, if its region
    // is stretched for a side that is rounded up from a half.
    const auto taps = [&](const ImageOp& op, int64_t size) {
      ResampleAxis axis = ResampleAxis::Whole(
          static_cast<int>(max_side), static_cast<int>(size), op.filters.shrink,
          op.filters.antialias);
      if (op.resize.subpixel_scale) axis.end *= 2;
      const int shrunk = ResampleTable::MostTaps(axis);
      axis.filter = op.filters.other;
      axis.end = axis.out;
      return std::max(shrunk, ResampleTable::MostTaps(axis));
    };
    uint64_t most = 0;
    for (size_t chain = view.chain;; chain = chains_[chain].parent) {
      for (const ImageOp& op : chains_[chain].ops)
        if (op.Resamples())
          most = std::max(
              most, TableBytes(view.size.width, taps(op, view.size.width),
                               view.size.height, taps(op, view.size.height)));
      if (chain == 0) break;
    }
    sum += most;
  }
  return sum;
}

const char* FusedProgram::kernel() const {
  return channels() == 1 ? kFusedKernel1 : kFusedKernel3;
}

LaunchConfig FusedProgram::launch(size_t rows) const {
  return FusedLaunch(strips_, static_cast<uint32_t>(rows * views_.size()));
}

}  // namespace leat::worker
