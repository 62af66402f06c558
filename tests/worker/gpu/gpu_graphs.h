// SPDX-License-Identifier: Apache-2.0
//
// Pipelines that GPU tests and measurements run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/graph.h"

namespace leat::worker {

// decode, random_resized_crop to size × size; image and label.
inline Graph CropGraph(int64_t size, const std::string& path = "/data") {
  Graph graph;
  graph.nodes = {{"readers.image_folder", {}, {{"path", path}}},
                 {"decode", {{0, 0}}, {}},
                 {"random_resized_crop",
                  {{1, 0}},
                  {{"size", std::vector<int64_t>{size, size}}}}};
  graph.outputs = {{"image", {2, 0}}, {"label", {0, 1}}};
  return graph;
}

// The pixels of the middle, as decoded.
inline Graph CenterGraph(int64_t size) {
  Graph graph;
  graph.nodes = {
      {"readers.image_folder", {}, {{"path", std::string("/data")}}},
      {"decode", {{0, 0}}, {}},
      {"crop", {{1, 0}}, {{"size", std::vector<int64_t>{size, size}}}}};
  graph.outputs = {{"image", {2, 0}}};
  return graph;
}

}  // namespace leat::worker
