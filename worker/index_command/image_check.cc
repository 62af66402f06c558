// SPDX-License-Identifier: Apache-2.0
//
// Each image is made a few pixels wide, which decodes the whole file and keeps
// nothing.
#include "worker/index_command/image_check.h"

#include <string>
#include <utility>

#include "core/status.h"
#include "worker/image/program/scratch.h"

namespace leat::worker {

absl::StatusOr<ImageCheck> ImageCheck::Create(
    const Node& reader, std::span<const ValueType> types) {
  constexpr int64_t kSide = 8;
  Graph graph;
  graph.nodes.push_back(reader);
  for (uint32_t i = 0; i < types.size(); ++i) {
    if (types[i].kind != ValueType::Kind::kEncoded) continue;
    const auto node = static_cast<uint32_t>(graph.nodes.size());
    graph.nodes.push_back({"decode", {{0, i}}, {}});
    graph.nodes.push_back({"resize",
                           {{node, 0}},
                           {{"size", std::vector<int64_t>{kSide, kSide}}}});
    graph.outputs.push_back({fmt::format("image{}", i), {node + 1, 0}});
  }
  ImageCheck check;
  if (graph.outputs.empty()) return check;
  ASSIGN_OR_RETURN(const CheckedGraph checked, leat::Check(graph, types));
  for (const Field& field : checked.schema.fields)
    check.row_bytes_.push_back(field.row_bytes);
  ASSIGN_OR_RETURN(check.program_, RowProgram::Compile(checked));
  return check;
}

absl::Status ImageCheck::Check(const StoredSample& sample) const {
  if (program_ == nullptr) return absl::OkStatus();
  std::vector<std::vector<std::byte>> rows;
  std::vector<std::span<std::byte>> outputs;
  for (const size_t bytes : row_bytes_) rows.emplace_back(bytes);
  for (std::vector<std::byte>& row : rows) outputs.emplace_back(row);
  Scratch scratch{ImageLimits()};
  return program_->Run({.fields = sample.fields}, scratch, outputs);
}

}  // namespace leat::worker
