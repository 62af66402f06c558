// SPDX-License-Identifier: Apache-2.0
//
// Pipelines that GPU tests and measurements run.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
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

// Image and label; `last` behind the image.
inline Graph WithLast(Graph graph, Node last) {
  last.inputs = {graph.outputs[0].second};
  graph.nodes.push_back(std::move(last));
  graph.outputs[0].second.node = static_cast<uint32_t>(graph.nodes.size() - 1);
  return graph;
}
// An operator without a kernel.
inline Graph UnfusedGraph() {
  return WithLast(CropGraph(32), {"jpeg_compression_distortion", {}, {}});
}
// Resized twice: a stage.
inline Graph StagedGraph() {
  return WithLast(CropGraph(16),
                  {"resize", {}, {{"size", std::vector<int64_t>{32, 32}}}});
}

}  // namespace leat::worker
