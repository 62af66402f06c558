// SPDX-License-Identifier: Apache-2.0
//
// The pipeline that the jobs of tests/golden/generate.py have.
#pragma once

#include <string>

#include "core/pipeline/graph.h"

namespace leat {

inline Graph GoldenPipeline() {
  Graph graph;
  graph.nodes = {
      {"readers.image_folder",
       {},
       {{"path", Value(std::string("/data"))}, {"repeat", int64_t{1}}}},
      {"decode",
       {{0, 0}},
       {{"orient", true}, {"output", Value(std::string("rgb"))}}}};
  graph.outputs = {{"image", {1, 0}}, {"label", {0, 1}}};
  return graph;
}

}  // namespace leat
