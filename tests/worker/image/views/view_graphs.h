// SPDX-License-Identifier: Apache-2.0
//
// Pipelines with one and with several views of an image, as used in training.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/pipeline/graph.h"

namespace leat::worker {

// Appends nodes to readers.image_folder and decode (node 1).
class ViewGraph {
 public:
  using Ints = std::vector<int64_t>;
  using Floats = std::vector<double>;
  using Args = std::map<std::string, Value>;

  explicit ViewGraph(const char* colours = "rgb") {
    graph.nodes = {
        {"readers.image_folder", {}, {{"path", Value(std::string("/data"))}}},
        {"decode", {{0, 0}}, {{"output", Value(std::string(colours))}}}};
  }
  uint32_t Add(const char* op, std::vector<uint32_t> inputs, Args args = {}) {
    Node node{op, {}, std::move(args)};
    for (const uint32_t input : inputs) node.inputs.push_back({input, 0});
    graph.nodes.push_back(std::move(node));
    return static_cast<uint32_t>(graph.nodes.size()) - 1;
  }
  void Output(uint32_t node) {
    graph.outputs.push_back(
        {"f" + std::to_string(graph.outputs.size()), {node, 0}});
  }
  // Adds a view of the decoded image as an output.
  uint32_t Crop(int64_t size, Floats area, Args args = {}) {
    args["size"] = Ints{size, size};
    args["area"] = std::move(area);
    return Add("random_resized_crop", {1}, std::move(args));
  }
  uint32_t At(double pos_y, int64_t size) {
    return Add("crop", {1},
               {{"size", Ints{size, size}}, {"pos_y", Value(pos_y)}});
  }

  Graph graph;
};

// One random crop, mirrored by a coin, normalised.
inline Graph OneView() {
  ViewGraph g;
  const uint32_t coin = g.Add("coin_flip", {});
  const uint32_t flip = g.Add("flip", {g.Crop(24, {0.05, 0.5})},
                              {{"horizontal", NodeRef{coin, 0}}});
  g.Output(g.Add(
      "normalize", {flip},
      {{"mean", ViewGraph::Floats{100}}, {"std", ViewGraph::Floats{50}}}));
  return g.graph;
}
// Two random crops of one size.
inline Graph TwoViews() {
  ViewGraph g;
  for (int i = 0; i < 2; ++i)
    g.Output(g.Add("flip", {g.Crop(20, {0.05, 0.4})},
                   {{"vertical", Value(i == 1)}}));
  return g.graph;
}
// Two large crops and a small one.
inline Graph ThreeViews() {
  ViewGraph g;
  g.Output(g.Crop(24, {0.4, 1}));
  g.Output(g.Crop(24, {0.4, 0.6}));
  g.Output(g.Crop(9, {0.02, 0.1}));
  return g.graph;
}
// Gray: a region, resized, and the top.
inline Graph GrayRegion() {
  ViewGraph g("gray");
  g.Output(g.Add("resize", {1},
                 {{"size", ViewGraph::Ints{12, 14}},
                  {"roi_start", ViewGraph::Floats{0.1, 0.2}},
                  {"roi_end", ViewGraph::Floats{0.6, 0.9}},
                  {"roi_relative", Value(true)}}));
  g.Output(g.At(0, 30));
  return g.graph;
}
// Views that end at the stored image's last row, at its first ones, and
// between.
inline Graph TopAndMiddle() {
  ViewGraph g;
  g.Output(g.At(0, 40));
  g.Output(g.At(0.3, 40));
  return g.graph;
}
// Two outputs use the same crop, so the crop is a separate value.
inline Graph ViewsOfAView() {
  ViewGraph g;
  const uint32_t crop =
      g.Add("random_crop", {1}, {{"area", ViewGraph::Floats{0.2, 0.6}}});
  const uint32_t resize =
      g.Add("resize", {crop}, {{"size", ViewGraph::Ints{40, 40}}});
  g.Output(g.Add("crop", {resize},
                 {{"size", ViewGraph::Ints{12, 15}}, {"pos_y", Value(0.0)}}));
  g.Output(g.Add("crop", {resize},
                 {{"size", ViewGraph::Ints{7, 15}}, {"pos_y", Value(0.4)}}));
  g.Output(g.Add("crop", {crop}, {{"size", ViewGraph::Ints{8, 8}}}));
  return g.graph;
}

// Pipelines that GPUs fuse.
inline std::vector<Graph> FusedViewGraphs() {
  return {OneView(),    TwoViews(),     ThreeViews(),
          GrayRegion(), TopAndMiddle(), ViewsOfAView()};
}

// Operators on values whose size differs per sample.
inline std::vector<Graph> OwnSizeGraphs() {
  using Ints = ViewGraph::Ints;
  std::vector<Graph> graphs;
  {  // of all of the image
    ViewGraph g;
    const uint32_t invert = g.Add("invert", {1});
    g.Output(g.Add("resize", {invert}, {{"size", Ints{12, 14}}}));
    g.Output(g.At(0, 20));
    graphs.push_back(g.graph);
  }
  {  // of a part; the result's size depends on the part's
    ViewGraph g("ycbcr");
    const uint32_t part =
        g.Add("random_crop", {1}, {{"area", ViewGraph::Floats{0.1, 0.4}}});
    const uint32_t turned =
        g.Add("rotate", {part},
              {{"angle", Value(30.0)}, {"keep_size", Value(false)}});
    g.Output(g.Add("resize", {turned}, {{"size", Ints{16, 16}}}));
    graphs.push_back(g.graph);
  }
  {  // of the image made smaller; of its top alone
    ViewGraph g("gray");
    const uint32_t small = g.Add("resize", {1}, {{"shorter", Value(40.0)}});
    const uint32_t bright =
        g.Add("brightness", {small}, {{"brightness", Value(1.5)}});
    const uint32_t crop = g.Add(
        "crop", {bright}, {{"size", Ints{24, 24}}, {"pos_y", Value(0.0)}});
    g.Output(g.Add("standardize", {crop}));
    g.Output(
        g.Add("crop", {small}, {{"size", Ints{9, 9}}, {"pos_y", Value(0.0)}}));
    graphs.push_back(g.graph);
  }
  return graphs;
}

// Views followed by other operators, or resampled in other ways.
inline std::vector<Graph> OperatedViewGraphs() {
  using Ints = ViewGraph::Ints;
  std::vector<Graph> graphs;
  {  // by the other rule, and after a rounding of colours
    ViewGraph g("ycbcr");
    g.Output(g.Crop(16, {0.05, 0.3}, {{"rule", Value(std::string("dali"))}}));
    g.Output(g.At(0, 20));
    graphs.push_back(g.graph);
  }
  {  // mirrored, and then resampled
    ViewGraph g("bgr");
    const uint32_t crop = g.At(0.1, 30);
    const uint32_t flip = g.Add("flip", {crop}, {{"vertical", Value(true)}});
    const uint32_t resize = g.Add("resize", {flip}, {{"size", Ints{20, 20}}});
    g.Output(g.Add("crop", {resize}, {{"size", Ints{5, 5}}}));
    g.Output(g.Add("crop", {crop}, {{"size", Ints{5, 5}}}));
    graphs.push_back(g.graph);
  }
  {  // one side or the other
    ViewGraph g;
    const uint32_t coin = g.Add("coin_flip", {});
    const uint32_t top =
        g.Add("resize", {g.At(0, 30)}, {{"size", Ints{16, 16}}});
    const uint32_t other = g.Crop(16, {0.1, 0.4});
    g.Output(g.Add("where", {coin, top, other}));
    graphs.push_back(g.graph);
  }
  {  // an operator that is no view uses all of its input
    ViewGraph g;
    const uint32_t top = g.At(0.2, 30);
    const uint32_t blur =
        g.Add("gaussian_blur", {top}, {{"sigma", Value(1.0)}});
    g.Output(
        g.Add("crop", {blur}, {{"size", Ints{4, 4}}, {"pos_y", Value(0.0)}}));
    g.Output(g.At(0, 30));
    graphs.push_back(g.graph);
  }
  {  // and all of the image, too
    ViewGraph g;
    const uint32_t resize = g.Add("resize", {1}, {{"size", Ints{30, 30}}});
    const uint32_t small = g.Add("resize", {resize}, {{"size", Ints{9, 9}}});
    g.Output(
        g.Add("crop", {small}, {{"size", Ints{4, 4}}, {"pos_y", Value(0.0)}}));
    graphs.push_back(g.graph);
  }
  for (Graph& graph : OwnSizeGraphs()) graphs.push_back(std::move(graph));
  return graphs;
}

}  // namespace leat::worker
