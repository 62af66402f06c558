// SPDX-License-Identifier: Apache-2.0
//
// Pipelines that GPU tests and measurements run.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/pipeline/graph.h"

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

// Image and label, with `last` after the image.
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

// Inverted before it is resized.
inline Graph OwnSizeGraph(int64_t size) {
  Graph graph = CropGraph(size);
  graph.nodes[2].inputs = {{2, 0}};
  graph.nodes.insert(graph.nodes.begin() + 2, {"invert", {{1, 0}}, {}});
  graph.outputs[0].second = {3, 0};
  return graph;
}

// An int32 for each channel of a pixel that is drawn from the decoded image:
// `seldom` if the byte is a multiple of 5, else `often`.
inline uint32_t AddPixel(double seldom, double often, Graph* graph) {
  std::vector<int64_t> keys;
  for (int64_t byte = 0; byte < 256; byte += 5) keys.push_back(byte);
  const auto pixel = static_cast<uint32_t>(graph->nodes.size());
  graph->nodes.push_back({"random_resized_crop",
                          {{1, 0}},
                          {{"size", std::vector<int64_t>{1, 1}}}});
  graph->nodes.push_back({"lookup_table",
                          {{pixel, 0}},
                          {{"keys", keys},
                           {"values", std::vector<double>(keys.size(), seldom)},
                           {"default_value", often},
                           {"dtype", std::string("int32")}}});
  return pixel + 1;
}
// CropGraph's image and, as another output, its quotient with a divisor that is
// sometimes 0: some rows fail.
inline Graph DividingGraph(int64_t size, const std::string& path = "/data") {
  Graph graph = CropGraph(size, path);
  const uint32_t divisor = AddPixel(0, 3, &graph);
  graph.nodes.push_back({"floordiv", {{2, 0}, {divisor, 0}}, {}});
  graph.outputs.push_back({"quotient", {divisor + 1, 0}});
  return graph;
}

// share × x + (1 - share) × partner(x); returns the node of the sum.
inline uint32_t AddBlend(uint32_t x, uint32_t share, Graph* graph) {
  const auto add = [graph](Node node) {
    graph->nodes.push_back(std::move(node));
    return static_cast<uint32_t>(graph->nodes.size() - 1);
  };
  const uint32_t own = add({"mul", {{share, 0}, {x, 0}}, {}});
  const uint32_t one =
      add({"constant", {}, {{"values", std::vector<double>{1}}}});
  const uint32_t rest = add({"sub", {{one, 0}, {share, 0}}, {}});
  const uint32_t other = add({"partner", {{x, 0}}, {}});
  const uint32_t theirs = add({"mul", {{rest, 0}, {other, 0}}, {}});
  return add({"add", {{own, 0}, {theirs, 0}}, {}});
}

// CropGraph's image and label, blended with the partner's as by fn.mixup.
inline Graph MixupGraph(int64_t size, const std::string& path = "/data") {
  Graph graph = CropGraph(size, path);
  graph.nodes.push_back({"one_hot", {{0, 1}}, {{"num_classes", int64_t{40}}}});
  graph.nodes.push_back(
      {"beta",
       {},
       {{"alpha", 0.4}, {"beta", 0.4}, {"per", std::string("batch")}}});
  graph.outputs = {{"image", {AddBlend(2, 4, &graph), 0}},
                   {"label", {AddBlend(3, 4, &graph), 0}}};
  return graph;
}

// The same as by fn.cutmix.
inline Graph CutMixGraph(int64_t size, const std::string& path = "/data") {
  Graph graph = CropGraph(size, path);
  graph.nodes.push_back({"one_hot", {{0, 1}}, {{"num_classes", int64_t{40}}}});
  for (int i = 0; i < 3; ++i) graph.nodes.push_back({"beta", {}, {}});
  const std::map<std::string, Value> box = {{"lam", NodeRef{4, 0}},
                                            {"center_y", NodeRef{5, 0}},
                                            {"center_x", NodeRef{6, 0}}};
  graph.nodes.push_back({"partner", {{2, 0}}, {}});
  graph.nodes.push_back({"cutmix_paste", {{2, 0}, {7, 0}}, box});
  graph.nodes.push_back({"cutmix_share", {{2, 0}}, box});
  graph.outputs = {{"image", {8, 0}}, {"label", {AddBlend(3, 9, &graph), 0}}};
  return graph;
}

}  // namespace leat::worker
