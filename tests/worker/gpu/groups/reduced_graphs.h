// SPDX-License-Identifier: Apache-2.0
//
// Pipelines that decode at smaller scales, and files whose rows have all those
// scales.
#pragma once

#include <string>
#include <vector>

#include "tests/support/jpeg_maker.h"
#include "tests/worker/image/views/view_graphs.h"

namespace leat::worker {

inline std::vector<Graph> ReducedGraphs() {
  using Ints = ViewGraph::Ints;
  using Floats = ViewGraph::Floats;
  std::vector<Graph> graphs;
  const auto add = [&](ViewGraph& g) {
    g.graph.nodes[1].args["reduce"] = Value(std::string("auto"));
    graphs.push_back(g.graph);
  };
  graphs.push_back(OneView());
  graphs.back().nodes[1].args["reduce"] = Value(std::string("auto"));
  {  // two windows of a resized image, one processed by a kernel
    ViewGraph g("bgr");
    const uint32_t cut =
        g.Add("random_crop", {1}, {{"area", Floats{0.2, 0.9}}});
    const uint32_t resize = g.Add("resize", {cut}, {{"size", Ints{20, 24}}});
    const uint32_t top =
        g.Add("crop", {resize}, {{"size", Ints{9, 11}}, {"pos_y", Value(0.0)}});
    g.Output(top);
    g.Output(g.Add("brightness", {top}, {{"brightness", Value(1.5)}}));
    g.Output(g.Add("flip", {resize}, {{"vertical", Value(true)}}));
    add(g);
  }
  {  // by the other rule, gray, of a region
    ViewGraph g("gray");
    g.Output(g.Add("resize", {1},
                   {{"size", Ints{9, 7}},
                    {"rule", Value(std::string("dali"))},
                    {"roi_start", Floats{0.1, 0.2}},
                    {"roi_end", Floats{0.9, 1}},
                    {"roi_relative", Value(true)}}));
    add(g);
  }
  {  // to a size that differs per sample
    ViewGraph g;
    const uint32_t small = g.Add("resize", {1}, {{"shorter", Value(15.0)}});
    const uint32_t invert = g.Add("invert", {small});
    g.Output(g.Add("crop", {invert}, {{"size", Ints{12, 12}}}));
    add(g);
  }
  return graphs;
}

// Returns files of every sampling and orientation.
inline std::vector<std::string> FilesForReducing() {
  std::vector<std::string> files;
  uint32_t seed = 70;
  for (const auto& [h, v] : {std::pair{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}})
    for (const int orientation : {1, 3, 5, 6, 8})
      files.push_back(
          testing::MakeJpeg({.width = 60 + 70 * static_cast<int>(seed % 4),
                             .height = 220 - 3 * static_cast<int>(seed % 9),
                             .h = h,
                             .v = v,
                             .orientation = orientation,
                             .seed = ++seed}));
  files.push_back(
      testing::MakeJpeg({.width = 201, .height = 150, .progressive = true}));
  files.push_back(testing::MakeJpeg(
      {.width = 131, .height = 177, .color = testing::JpegColor::kGray}));
  files.push_back(testing::MakeJpeg({.width = 30, .height = 33}));
  return files;
}

}  // namespace leat::worker
