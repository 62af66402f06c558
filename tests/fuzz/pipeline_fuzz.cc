// SPDX-License-Identifier: Apache-2.0
//
// A leat.v1.Graph that passes Check is computed on one small photo: with the
// same bytes, or an error that says why, whether operators are fused or not.
#include <vector>

#include "core/status.h"
#include "google/protobuf/stubs/logging.h"
#include "rpc/convert.h"
#include "tests/fuzz/pipelines.h"
#include "tests/fuzz/target.h"
#include "tests/support/jpeg_maker.h"
#include "worker/image/row_program.h"

namespace leat::worker::pipeline_fuzz {
namespace {

constexpr size_t kMaxRowBytes = 1 << 18;
constexpr int64_t kMaxNumber = 500;  // of integers: or images grow too large

bool IsSmall(int64_t number) {
  return number >= -kMaxNumber && number <= kMaxNumber;
}

bool IsSmall(const Graph& graph) {
  if (graph.nodes.size() > 60) return false;
  for (const Node& node : graph.nodes)
    for (const auto& [name, value] : node.args) {
      if (const auto* one = std::get_if<int64_t>(&value))
        if (!IsSmall(*one)) return false;
      if (const auto* many = std::get_if<std::vector<int64_t>>(&value))
        for (const int64_t each : *many)
          if (!IsSmall(each)) return false;
    }
  return true;
}

struct Result {
  absl::Status status;
  std::vector<std::vector<std::byte>> outputs;
};

Result Compute(const CheckedGraph& graph, bool fuse) {
  static const std::string& photo =
      *new std::string(testing::MakeJpeg({.width = 9, .height = 7}));
  static const int32_t kLabel = 3;
  const StoredField fields[] = {
      {std::as_bytes(std::span(photo)), {}},
      {std::as_bytes(std::span(&kLabel, 1)), {}},
  };
  Result result;
  const auto program = RowProgram::Compile(graph, 5, fuse);
  result.status = program.status();
  if (!program.ok()) return result;
  std::vector<std::span<std::byte>> outputs;
  for (const Field& field : graph.schema.fields)
    result.outputs.emplace_back(field.row_bytes);
  for (auto& output : result.outputs) outputs.emplace_back(output);
  Scratch scratch({.max_pixels = 1'000'000, .max_scratch_bytes = 64 << 20});
  result.status = (*program)->Run({.epoch = 1, .sample = 2, .fields = fields},
                                  scratch, outputs);
  return result;
}

void Run(std::string_view bytes) {
  const google::protobuf::LogSilencer silent;  // of text that is not UTF-8
  v1::Graph proto;
  if (!proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return;
  const auto graph = rpc::FromProto(proto);
  if (!graph.ok() || !IsSmall(*graph)) return;
  const auto checked = Check(*graph, fuzz::Stored());
  if (!checked.ok() || !checked->typed) return;
  size_t row_bytes = 0;
  for (const Field& field : checked->schema.fields)
    row_bytes += field.row_bytes;
  if (row_bytes > kMaxRowBytes) return;
  const Result fused = Compute(*checked, true);
  const Result plain = Compute(*checked, false);
  fuzz::Require(fused.status.ok() == plain.status.ok());
  if (fused.status.ok())
    fuzz::Require(fused.outputs == plain.outputs);
  else
    fuzz::Require(!Message(fused.status).empty());
}

std::vector<std::string> Seeds() {
  std::vector<std::string> seeds;
  for (const JobSpec& spec : {fuzz::WithAllOperators(), fuzz::WithDraws()})
    seeds.push_back(rpc::ToProto(spec.pipeline).SerializeAsString());
  // Each operator by itself.
  JobSpec all = fuzz::WithAllOperators();
  for (const auto& output : std::vector(all.pipeline.outputs)) {
    all.pipeline.outputs = {output};
    const auto one = CheckSpec(all, fuzz::Stored());
    fuzz::Require(one.ok());
    seeds.push_back(rpc::ToProto(one->graph).SerializeAsString());
  }
  return seeds;
}

const fuzz::Target kTarget(
    {.name = "pipeline", .run = Run, .seeds = Seeds, .runs = 300});

}  // namespace
}  // namespace leat::worker::pipeline_fuzz
