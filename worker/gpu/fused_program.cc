// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu/fused_program.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <variant>

#include "core/status.h"
#include "worker/gpu/fused_kernel.h"
#include "worker/gpu/fused_layout.h"
#include "worker/gpu/fused_tail.h"

namespace leat::worker {
namespace {

constexpr size_t kMaxPixelTables = size_t{1} << 20;

}  // namespace

class FusedCompiler {
 public:
  explicit FusedCompiler(const CheckedGraph& graph)
      : graph_(graph), behind_(graph.graph.nodes.size(), kHost) {}

  absl::StatusOr<std::unique_ptr<FusedProgram>> Run(uint64_t seed,
                                                    const FusedLimits& limits) {
    program_.reset(new FusedProgram);
    program_->seed_ = seed;
    program_->limits_ = limits;
    program_->reader_ = graph_.reader;
    program_->nodes_ = graph_.graph.nodes.size();
    ASSIGN_OR_RETURN(std::vector<Step> steps, CompileSteps(graph_, true));
    for (Step& step : steps) RETURN_IF_ERROR(Sort(std::move(step)));
    if (!image_node_)
      return Unimplemented("cannot be fused: there is no decode operator");
    const Shape& shape = graph_.types[*image_node_][0].shape;
    if (shape[0] <= 0 || shape[1] <= 0)
      return Unimplemented("node {} ({}) cannot be fused: its size differs",
                           *image_node_, Op(*image_node_));
    program_->size_ = {shape[0], shape[1]};
    for (size_t f = 0; f < graph_.graph.outputs.size(); ++f)
      RETURN_IF_ERROR(AddField(f));
    Finish();
    return std::move(program_);
  }

 private:
  // Where a node's value is: with the host, the view, or step i of the tail.
  static constexpr int kHost = -2, kView = -1;

  const std::string& Op(uint32_t node) const {
    return graph_.graph.nodes[node].op;
  }

  absl::Status Sort(Step step) {
    if (auto* decode = std::get_if<DecodeStep>(&step.what)) {
      if (image_node_)
        return Unimplemented(
            "node {} ({}) cannot be fused: it ends a second decode chain",
            step.node, Op(step.node));
      image_node_ = step.node;
      behind_[step.node] = kView;
      program_->decode_ = std::move(*decode);
      return absl::OkStatus();
    }
    if (const auto* image = std::get_if<ImageStep>(&step.what)) {
      const uint32_t node = image->ops[0].node;
      return Unimplemented(
          "node {} ({}) cannot be fused: its input is used elsewhere too, or "
          "no view of the decoded image",
          node, Op(node));
    }
    if (std::holds_alternative<CoinFlipStep>(step.what) ||
        std::holds_alternative<UniformStep>(step.what) ||
        behind_[InputOf(step)] == kHost) {
      if (!graph_.types[step.node][0].shape.empty())
        return Unimplemented("node {} ({}) cannot be fused: no scalar",
                             step.node, Op(step.node));
      program_->host_steps_.push_back(std::move(step));
      return absl::OkStatus();
    }
    behind_[step.node] = static_cast<int>(tail_.size());
    tail_.push_back(std::move(step));
    return absl::OkStatus();
  }

  absl::Status AddField(size_t f) {
    const uint32_t node = graph_.graph.outputs[f].second.node;
    program_->field_nodes_.push_back(node);
    if (behind_[node] == kHost) {
      const Field& schema = graph_.schema.fields[f];
      if (schema.row_bytes > sizeof(uint64_t))
        return Unimplemented("field \"{}\" cannot be fused: {} bytes of host",
                             schema.name, schema.row_bytes);
      program_->fields_.push_back(
          {.kind = FusedKind::kHost,
           .element_bytes = static_cast<uint32_t>(schema.row_bytes),
           .at = program_->host_stride_});
      program_->host_stride_ += sizeof(uint64_t);
      return absl::OkStatus();
    }
    std::vector<const Step*> path;
    for (int i = behind_[node]; i != kView; i = behind_[InputOf(tail_[i])])
      path.push_back(&tail_[i]);
    std::reverse(path.begin(), path.end());
    FusedTail tail = CompileTail(path, program_->size_, program_->channels());
    tail.field.at = static_cast<uint32_t>(tables_.size());
    tables_.insert(tables_.end(), tail.table.begin(), tail.table.end());
    tables_.resize(Aligned(tables_.size()));
    if (tables_.size() > kMaxPixelTables)
      return Unimplemented(
          "node {} ({}) cannot be fused: tables over the limit of {} bytes",
          node, Op(node), kMaxPixelTables);
    program_->fields_.push_back(tail.field);
    return absl::OkStatus();
  }

  // Lays out what every block begins with.
  void Finish() {
    FusedHeader& header = program_->header_;
    header.width = static_cast<uint32_t>(program_->size_.width);
    header.height = static_cast<uint32_t>(program_->size_.height);
    header.fields = static_cast<uint32_t>(program_->fields_.size());
    header.host_stride = program_->host_stride_;
    header.fields_at = static_cast<uint32_t>(Aligned(sizeof(FusedHeader)));
    const size_t field_bytes = program_->fields_.size() * sizeof(FusedField);
    const size_t tables_at = Aligned(header.fields_at + field_bytes);
    for (FusedField& field : program_->fields_)
      if (field.kind == FusedKind::kTable)
        field.at += static_cast<uint32_t>(tables_at);
    std::vector<std::byte>& prefix = program_->prefix_;
    prefix.resize(tables_at + tables_.size());
    memcpy(prefix.data() + header.fields_at, program_->fields_.data(),
           field_bytes);
    std::copy(tables_.begin(), tables_.end(),
              prefix.begin() + static_cast<ptrdiff_t>(tables_at));
  }

  const CheckedGraph& graph_;
  std::unique_ptr<FusedProgram> program_;
  std::optional<uint32_t> image_node_;  // the view
  std::vector<int> behind_;             // by node
  std::vector<Step> tail_;
  std::vector<std::byte> tables_;
};

absl::StatusOr<std::unique_ptr<FusedProgram>> FusedProgram::Compile(
    const CheckedGraph& graph, uint64_t seed, const FusedLimits& limits) {
  return FusedCompiler(graph).Run(seed, limits);
}

uint64_t FusedProgram::TablesAt(FusedHeader* header) const {
  const uint64_t rows = header->rows;
  const uint64_t rows_at = prefix_.size();
  const uint64_t outputs_at = Aligned(rows_at + rows * sizeof(FusedRow));
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
  uint64_t most = 0;
  for (const ImageOp& op : decode_.ops) {
    if (!op.Resamples()) continue;
    // What is kept of the resized image is no larger than it: no view shrinks
    // by more than from the largest side to its own.
    const auto taps = [&](int64_t size) {
      return ResampleTable::MostTaps(static_cast<int>(max_side),
                                     static_cast<int>(size), op.filter,
                                     op.antialias);
    };
    most = std::max(most, TableBytes(size_.width, taps(size_.width),
                                     size_.height, taps(size_.height)));
  }
  return most;
}

const char* FusedProgram::kernel() const {
  return channels() == 1 ? kFusedKernel1 : kFusedKernel3;
}

LaunchConfig FusedProgram::launch(size_t rows) const {
  return FusedLaunch(header_.width, header_.height,
                     static_cast<uint32_t>(rows));
}

}  // namespace leat::worker
