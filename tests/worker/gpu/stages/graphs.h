// SPDX-License-Identifier: Apache-2.0
//
// Random pipelines of operators after a decode, for kernels of stages: some
// while sizes still differ per sample, others after that; some read partners.
#pragma once

#include <cstdlib>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/pipeline/operators.h"
#include "tests/worker/gpu/stages/nodes.h"

namespace leat::worker {

// Returns how many random pipelines a test compares: LEAT_STAGED_PIPELINES, or
// the usual number of the test.
inline int StagedPipelines(int usual) {
  const char* const given = std::getenv("LEAT_STAGED_PIPELINES");
  return given != nullptr ? std::atoi(given) : usual;
}

// Builds one graph; `random` decides everything. Operators that the checker
// refuses for the values at hand are left out.
class RandomStagedGraph : private RandomStagedNodes {
 public:
  using RandomStagedNodes::RandomStagedNodes;

  // Makes a graph of at most `most` operators on pixels; its outputs, last
  // first.
  Graph Make(int most) {
    graph_ = {};
    has_classes_ = false;
    pixels_.clear();
    Add({"readers.image_folder", {}, {{"path", Value(std::string("/data"))}}});
    AddHostValues();
    const uint32_t decoded =
        Add({"decode",
             {{0, 0}},
             {{"output", Word({"rgb", "rgb", "bgr", "gray", "ycbcr"})}}});
    std::vector<uint32_t> sized = {decoded};
    if (Below(2)) {
      by_row_ = true;
      pixels_ = sized;
      for (int left = Below(5); left > 0; --left) AddOperator();
      by_row_ = false;
      sized = std::exchange(pixels_, {});
    }
    for (int views = 1 + Below(2); views > 0; --views) AddView(decoded, sized);
    if (Below(12) == 0) AddPasteOfTwoKinds(decoded);
    for (int left = 1 + Below(most); left > 0; --left)
      if (Below(10) == 0)
        AddMix();
      else
        AddOperator();
    for (int outputs = 1 + Below(3); outputs > 0; --outputs)
      Output(Below(4) == 0 ? Any() : pixels_.back());
    if (Below(3) == 0) Output(host_[Below(static_cast<int>(host_.size()))]);
    return graph_;
  }

 private:
  uint32_t Add(Node node) {
    graph_.nodes.push_back(std::move(node));
    return static_cast<uint32_t>(graph_.nodes.size() - 1);
  }
  void Output(uint32_t node) {
    graph_.outputs.push_back(
        {"f" + std::to_string(graph_.outputs.size()), {node, 0}});
  }

  void AddHostValues() {
    const uint32_t uniform =
        Add({"uniform", {}, {{"low", Value(-0.5)}, {"high", Value(1.5)}}});
    const uint32_t coin = Add({"coin_flip", {}, {}});
    const uint32_t normal = Add({"normal", {}, {}});
    const uint32_t sum = Add({"add", {{uniform, 0}, {normal, 0}}, {}});
    const uint32_t label =
        Add({"one_hot", {{0, 1}}, {{"num_classes", Value(int64_t{9})}}});
    const uint32_t chosen =
        Add({"where", {{coin, 0}, {sum, 0}, {uniform, 0}}, {}});
    coin_ = coin;
    share_ = uniform;
    numbers_ = {uniform, normal, sum, chosen};
    if (Below(6) == 0) numbers_.push_back(Add({"partner", {{uniform, 0}}, {}}));
    host_ = {coin, uniform, sum, label, chosen};
  }

  // Tries until one fits.
  void AddOperator() {
    if (Below(12) == 0 && TryAll(MayFail(), &pixels_)) return;
    for (int attempt = 0; attempt < 20; ++attempt) {
      Node node = Operator();
      if (node.inputs.empty()) node.inputs = {{Last(), 0}};
      if (TryAll({std::move(node)}, &pixels_)) return;
    }
  }
  // Adds nodes, and the last one to `to`. Returns false, and adds none, if the
  // checker refuses them. A value of per-sample size cannot be an output.
  bool TryAll(std::vector<Node> nodes, std::vector<uint32_t>* to) {
    Graph more = graph_;
    for (Node& node : nodes) more.nodes.push_back(std::move(node));
    const auto last = static_cast<uint32_t>(more.nodes.size() - 1);
    more.outputs = {{"f", by_row_ ? NodeRef{0, 1} : NodeRef{last, 0}}};
    if (!Check(more).ok()) return false;
    graph_.nodes = std::move(more.nodes);
    to->push_back(last);
    return true;
  }

  // Nodes that fail if a byte of the sample is one of a few: a division by 0,
  // or an unknown class.
  std::vector<Node> MayFail() {
    const auto first = static_cast<uint32_t>(graph_.nodes.size());
    // Classes make many elements from one: once is enough.
    const bool divides = has_classes_ || Below(2) == 0;
    has_classes_ = has_classes_ || !divides;
    const int classes = 2 + Below(2);
    const auto value = [&](bool bad) -> double {
      if (bad) return divides ? 0 : Pick({-1, classes, 9'999});
      return divides ? Pick({-7, 1, 3, 200}) : Below(classes);
    };
    Ints keys;
    Floats values;
    for (int i = Below(4); i > 0; --i) {
      keys.push_back(Below(256));
      values.push_back(value(Below(3) == 0));
    }
    keys.push_back(255);
    values.push_back(value(false));
    const Node table{"lookup_table",
                     {{Any(), 0}},
                     {{"keys", keys},
                      {"values", values},
                      {"default_value", Value(value(false))},
                      {"dtype", Word({"uint8", "int32", "int64"})}}};
    if (divides) return {table, {"floordiv", {{Last(), 0}, {first, 0}}, {}}};
    return {table,
            {"one_hot",
             {{first, 0}},
             {{"num_classes", Value(int64_t{classes})},
              {"on_value", Value(Between(-300, 300))},
              {"off_value", Value(Between(-300, 300))},
              {"dtype", Type()}}}};
  }

  // Adds a mix of a row and its partner: as mixup and CutMix do, or the partner
  // alone. Values that depend on a partner have no partner.
  void AddMix() {
    for (int attempt = 0; attempt < 20; ++attempt) {
      const bool pixels = Below(4) != 0;
      const NodeRef x{
          pixels ? Last() : host_[Below(static_cast<int>(host_.size()))], 0};
      const auto first = static_cast<uint32_t>(graph_.nodes.size());
      const Node partner{"partner", {x}, {}};
      const Node share{
          "beta",
          {},
          {{"per", Word({"batch", "sample"})}, {"alpha", Value(0.7)}}};
      const Node one{"constant", {}, {{"values", Floats{1}}}};
      std::vector<Node> nodes = {partner};
      switch (Below(4)) {
        case 0:
          break;
        case 1:
          nodes.push_back({"cutmix_paste",
                           {x, {first, 0}},
                           {{"lam", Number(0.1, 0.9)},
                            {"center_y", Value(Between(0, 1))},
                            {"center_x", Value(Between(0, 1))}}});
          break;
        default:
          nodes.insert(nodes.end(),
                       {share,
                        {"mul", {{first + 1, 0}, x}, {}},
                        one,
                        {"sub", {{first + 3, 0}, {first + 1, 0}}, {}},
                        {"mul", {{first + 4, 0}, {first, 0}}, {}},
                        {"add", {{first + 2, 0}, {first + 5, 0}}, {}}});
      }
      if (TryAll(std::move(nodes), pixels ? &pixels_ : &host_)) return;
    }
  }

  // Adds a paste of an image of one size and one of a per-sample size, which
  // fits for a few samples.
  void AddPasteOfTwoKinds(uint32_t decoded) {
    const auto first = static_cast<uint32_t>(graph_.nodes.size());
    Node resize = Resize(1, 1);
    resize.inputs = {{decoded, 0}};
    resize.args["size"] = Ints{47, 33};
    std::vector<NodeRef> images = {{first, 0}, {decoded, 0}};
    if (Below(2)) std::swap(images[0], images[1]);
    TryAll({resize, {"cutmix_paste", images, {{"lam", Number(0.1, 0.9)}}}},
           &pixels_);
  }

  // Adds a value of one size for all samples, made from one of the others or,
  // if none is accepted, from the decoded image.
  void AddView(uint32_t decoded, const std::vector<uint32_t>& sized) {
    for (int attempt = 0; attempt < 20; ++attempt) {
      Node node = View();
      node.inputs = {{sized[Below(static_cast<int>(sized.size()))], 0}};
      if (attempt == 0) node.inputs = {{sized.back(), 0}};
      if (TryAll({std::move(node)}, &pixels_)) return;
    }
    Node node = Resize(17, 23);
    node.inputs = {{decoded, 0}};
    pixels_.push_back(Add(std::move(node)));
  }

  Graph graph_;
  std::vector<uint32_t> host_;
  bool has_classes_ = false;  // of pixels
};

}  // namespace leat::worker
