// SPDX-License-Identifier: Apache-2.0
//
// Shared by the tests of worker/image.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/pipeline/operators.h"
#include "core/status.h"
#include "gtest/gtest.h"
#include "tests/support/test_data.h"
#include "tests/worker/image/base/stored_image.h"
#include "worker/image/program/row_program.h"
#include "worker/image/program/scratch.h"

namespace leat::worker {

inline std::span<const std::byte> AsSpan(const std::string& text) {
  return std::as_bytes(std::span(text));
}

// A program, memory for its outputs, and a way to run it.
class Runner {
 public:
  Runner(const Graph& graph, uint64_t seed, bool fuse = true) : seed(seed) {
    auto checked = Check(graph);
    if (!checked.ok()) ADD_FAILURE() << Message(checked.status());
    schema = checked->schema;
    auto compiled = RowProgram::Compile(*checked, fuse);
    if (!compiled.ok()) ADD_FAILURE() << Message(compiled.status());
    program = *std::move(compiled);
    for (const Field& field : schema.fields)
      outputs.emplace_back(field.row_bytes);
    for (auto& output : outputs) spans.emplace_back(output);
  }

  absl::Status Run(const std::string& jpeg, Scratch& scratch,
                   uint64_t sample = 0, uint64_t epoch = 0,
                   PartnerRow* partner = nullptr) {
    stored_.fields[0].bytes = AsSpan(jpeg);
    return program->Run({.seed = seed,
                         .epoch = epoch,
                         .sample = sample,
                         .fields = stored_.fields,
                         .step_epoch = epoch,
                         .partner = partner},
                        scratch, spans);
  }

  const uint64_t seed;
  BatchSchema schema;
  std::unique_ptr<RowProgram> program;
  std::vector<std::vector<std::byte>> outputs;
  std::vector<std::span<std::byte>> spans;

 private:
  StoredSample stored_ = StoredImage({}, 7);
};

// readers.image_folder, decode, and `last` operators one after the other; the
// output is "image".
inline Graph ChainOf(std::vector<Node> last, bool gray = false) {
  Graph graph;
  graph.nodes = {
      {"readers.image_folder", {}, {{"path", Value(std::string("/data"))}}},
      {"decode",
       {{0, 0}},
       {{"output", Value(std::string(gray ? "gray" : "rgb"))}}}};
  for (Node& node : last) {
    node.inputs = {{static_cast<uint32_t>(graph.nodes.size()) - 1, 0}};
    graph.nodes.push_back(std::move(node));
  }
  graph.outputs = {
      {"image", {static_cast<uint32_t>(graph.nodes.size()) - 1, 0}}};
  return graph;
}

}  // namespace leat::worker
