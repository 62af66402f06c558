// SPDX-License-Identifier: Apache-2.0
//
// Random pipelines of operators behind a decode, for kernels of stages; some
// look at partners.
#pragma once

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/augmentation.h"
#include "core/operators.h"

namespace leat::worker {

// Builds one graph; `random` decides everything. Operators that the checker
// refuses for the values at hand are left out.
class RandomStagedGraph {
 public:
  explicit RandomStagedGraph(std::mt19937& random) : random_(random) {}

  // Of at most `most` operators on pixels; its outputs, the last ones first.
  Graph Make(int most) {
    graph_ = {};
    pixels_.clear();
    Add({"readers.image_folder", {}, {{"path", Value(std::string("/data"))}}});
    AddHostValues();
    const uint32_t decoded =
        Add({"decode",
             {{0, 0}},
             {{"output", Word({"rgb", "rgb", "bgr", "gray"})}}});
    for (int views = 1 + Below(2); views > 0; --views)
      pixels_.push_back(Add({Below(2) ? "resize" : "random_resized_crop",
                             {{decoded, 0}},
                             {{"size", Ints{1 + Below(17), 1 + Below(23)}},
                              {"interpolation", Filter()},
                              {"antialias", Value(Below(3) != 0)},
                              {"rule", Word({"pillow", "dali"})}}}));
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
  using Ints = std::vector<int64_t>;
  using Floats = std::vector<double>;

  int Below(int n) { return static_cast<int>(random_() % n); }
  double Between(double least, double most) {
    return least + (most - least) * Below(10'001) / 10'000;
  }
  template <class T>
  T Pick(std::initializer_list<T> of) {
    return *(of.begin() + Below(static_cast<int>(of.size())));
  }
  Value Word(std::initializer_list<const char*> of) {
    return Value(std::string(Pick(of)));
  }
  Value Type() {
    return Word({"uint8", "int32", "int64", "float16", "float32"});
  }
  uint32_t Add(Node node) {
    graph_.nodes.push_back(std::move(node));
    return static_cast<uint32_t>(graph_.nodes.size() - 1);
  }
  uint32_t Any() { return pixels_[Below(static_cast<int>(pixels_.size()))]; }
  uint32_t Last() { return Below(3) == 0 ? Any() : pixels_.back(); }
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
  // A number, or a sample's.
  Value Number(double least, double most) {
    if (Below(3) != 0) return Value(Between(least, most));
    return NodeRef{numbers_[Below(static_cast<int>(numbers_.size()))], 0};
  }
  Value Flag() {
    if (Below(3) != 0) return Value(Below(2) == 0);
    return NodeRef{coin_, 0};
  }

  // Tries until one fits.
  void AddOperator() {
    for (int attempt = 0; attempt < 20; ++attempt) {
      Node node = Operator();
      if (node.inputs.empty()) node.inputs = {{Last(), 0}};
      if (TryAll({std::move(node)}, &pixels_)) return;
    }
  }
  // The last one goes to `to`. False: the checker refuses it, and none is
  // added.
  bool TryAll(std::vector<Node> nodes, std::vector<uint32_t>* to) {
    Graph more = graph_;
    for (Node& node : nodes) more.nodes.push_back(std::move(node));
    const auto last = static_cast<uint32_t>(more.nodes.size() - 1);
    more.outputs = {{"f", {last, 0}}};
    if (!Check(more).ok()) return false;
    graph_.nodes = std::move(more.nodes);
    to->push_back(last);
    return true;
  }

  // A row and its partner: as mixup and CutMix do, or the partner alone. Values
  // that are made of a partner have none.
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

  Node Operator() {
    switch (Below(8)) {
      case 6:
        return Noise();
      case 7:
        return Augmentation();
      case 0:
        return Colour();
      case 1:
      case 2:
        return Arithmetic();
      case 3:
        return Shape();
      case 4:
        return Place();
      default:
        return Geometry();
    }
  }

  Node Colour() {
    switch (Below(8)) {
      case 0:
        return {"brightness",
                {},
                {{"brightness", Number(-1, 3)},
                 {"brightness_shift", Number(-0.5, 0.5)},
                 {"dtype", Below(2) ? Type() : Word({"input"})}}};
      case 1:
        return {"contrast", {}, {{"contrast", Number(-1, 3)}}};
      case 2:
        return {"brightness_contrast",
                {},
                {{"brightness", Number(-1, 3)}, {"contrast", Number(-1, 3)}}};
      case 3:
        return {"hue", {}, {{"hue", Number(-200, 200)}}};
      case 4:
        return {"saturation", {}, {{"saturation", Number(0, 3)}}};
      case 5:
        return {"hsv",
                {},
                {{"hue", Number(-90, 90)},
                 {"saturation", Number(0, 2)},
                 {"value", Number(0, 2)},
                 {"dtype", Below(2) ? Type() : Word({"input"})}}};
      case 6:
        return {"color_twist",
                {},
                {{"hue", Number(-90, 90)}, {"contrast", Number(0, 2)}}};
      default:
        return {"color_space_conversion",
                {},
                {{"image_type", Word({"rgb", "bgr", "gray", "ycbcr"})},
                 {"output_type", Word({"rgb", "bgr", "gray", "ycbcr"})}}};
    }
  }

  Node Noise() {
    switch (Below(3)) {
      case 0:
        return {"noise_gaussian",
                {},
                {{"mean", Number(-20, 20)}, {"stddev", Number(0, 40)}}};
      case 1:
        return {"noise_shot", {}, {{"factor", Number(0, 30)}}};
      default:
        return {"noise_salt_and_pepper",
                {},
                {{"prob", Number(0, 1)},
                 {"salt_vs_pepper", Value(Between(0, 1))},
                 {"per_channel", Value(Below(2) == 0)}}};
    }
  }

  Node Augmentation() {
    std::map<std::string, Value> args = {
        {"interpolation", Word({"linear", "nearest"})},
        {"border", Word({"fill", "edge"})},
        {"rule", Word({"fixed", "dali"})}};
    const auto with = [&](std::map<std::string, Value> more) {
      more.merge(args);
      return more;
    };
    switch (Below(5)) {
      case 0:
        return {"equalize", {}, {}};
      case 1: {
        const auto infos = Augmentations();
        const AugmentationInfo& info =
            infos[static_cast<size_t>(Below(static_cast<int>(infos.size())))];
        const double most = std::min(info.most, 9.0);
        return {"augment",
                {},
                with({{"operation", Value(std::string(info.name))},
                      {"magnitude",
                       Value(Between(std::max(info.least, -3.0), most))}})};
      }
      case 2:
        return {"auto_augment",
                {},
                with({{"policy", Word({"image_net", "reduced_cifar10",
                                       "reduced_image_net", "svhn"})}})};
      case 3:
        return {"rand_augment",
                {},
                with({{"n", Value(int64_t{1 + Below(3)})},
                      {"m", Value(int64_t{Below(31)})}})};
      default:
        return {"trivial_augment_wide", {}, with({})};
    }
  }

  Node Arithmetic() {
    const NodeRef number{
        Below(2) ? Any() : numbers_[Below(static_cast<int>(numbers_.size()))],
        0};
    switch (Below(7)) {
      case 0:
        return {Pick({"neg", "abs", "invert"}), {}, {}};
      case 1:
        return {"where", {{coin_, 0}, {Last(), 0}, number}, {}};
      case 2: {
        // A choice an element, if a comparison is at hand.
        return {"where", {{Any(), 0}, {Last(), 0}, number}, {}};
      }
      case 3:
        return {Pick({"lt", "le", "gt", "ge", "eq", "ne"}),
                {{Last(), 0}, number},
                {}};
      case 4:
        return {Pick({"bitwise_and", "bitwise_or", "bitwise_xor", "floordiv"}),
                {{Last(), 0}, {Below(3) ? Any() : coin_, 0}},
                {}};
      default: {
        std::vector<NodeRef> inputs = {{Last(), 0}, number};
        if (Below(2)) std::swap(inputs[0], inputs[1]);
        return {Pick({"add", "sub", "mul", "div", "min", "max"}), inputs, {}};
      }
    }
  }

  Node Shape() {
    switch (Below(5)) {
      case 0: {
        Ints perm = {0, 1, 2};
        std::shuffle(perm.begin(), perm.end(), random_);
        return {"transpose", {}, {{"perm", perm}}};
      }
      case 1:
        return {"cast",
                {},
                {{"dtype", Word({"bool", "uint8", "int32", "int64", "float16",
                                 "float32"})}}};
      case 2:
        return {"normalize",
                {},
                {{"mean", Floats{Between(-100, 200)}},
                 {"std", Floats{Between(0.1, 90)}},
                 {"scale", Value(Pick({1.0, 64.0, -2.5}))},
                 {"shift", Value(Pick({0.0, 100.0}))},
                 {"dtype", Word({"float16", "float32"})}}};
      case 3: {
        Ints keys;
        Floats values;
        for (int i = 0; i < 20; ++i) {
          keys.push_back(Below(Pick({256, 256, 1000})));
          values.push_back(Between(-50, 300));
        }
        return {"lookup_table",
                {},
                {{"keys", keys},
                 {"values", values},
                 {"default_value", Value(Between(0, 255))},
                 {"dtype", Type()}}};
      }
      default:
        return {"reshape",
                {},
                {{"shape", Pick({Ints{-1}, Ints{1, -1, 3}, Ints{-1, 1, 1},
                                 Ints{1, -1, 1}})}}};
    }
  }

  Value Filter() {
    return Word({"linear", "nearest", "cubic", "lanczos3", "gaussian"});
  }
  Floats Fill() {
    if (Below(2)) return {Between(-20, 300)};
    return {Between(0, 255), Between(0, 255), Between(0, 255)};
  }

  Node Place() {
    switch (Below(4)) {
      case 0:
        return {"pad",
                {},
                {{"fill_value", Value(Between(-10, 300))},
                 {"align", Ints{1 + Below(7)}}}};
      case 1:
        return {"slice",
                {},
                {{"axes", Ints{0, 1}},
                 {"start", Ints{Below(5) - 2, Below(5) - 2}},
                 {"shape", Ints{1 + Below(12), 1 + Below(12)}},
                 {"offset_0", Number(0, 3)},
                 {"out_of_bounds_policy", Word({"error", "pad", "pad"})},
                 {"fill_values", Fill()}}};
      case 2:
        return {"erase",
                {},
                {{"anchor", Floats{Between(-2, 8), Between(-2, 8), 1, 2}},
                 {"shape", Floats{Between(0, 8), Between(0, 8), 3, 5}},
                 {"centered_anchor", Value(Below(2) == 0)},
                 {"y", Number(-2, 8)},
                 {"x", Number(-2, 8)},
                 {"height", Value(Between(0, 9))},
                 {"width", Value(Between(0, 9))},
                 {"enable", Flag()},
                 {"fill_value", Fill()}}};
      default:
        return {"cutmix_paste",
                {{Last(), 0}, {Any(), 0}},
                {{"lam", Value(Between(0, 1))},
                 {"center_y", Value(Between(0, 1))},
                 {"center_x", Value(Between(0, 1))}}};
    }
  }

  Node Window() {
    return {"crop_mirror_normalize",
            {},
            {{"crop", Below(3) ? Ints{1 + Below(20), 1 + Below(20)} : Ints{}},
             {"pos_y", Value(Between(0, 1))},
             {"pos_x", Number(0, 1)},
             {"mirror", Flag()},
             {"mean", Fill()},
             {"std", Floats{Between(0.5, 90)}},
             {"scale", Value(Pick({1.0, 60.0}))},
             {"shift", Value(Pick({0.0, 100.0}))},
             {"dtype", Word({"float32", "float16", "uint8"})},
             {"output_layout", Word({"CHW", "HWC"})},
             {"pad_output", Value(Below(3) == 0)},
             {"rounding", Word({"round", "truncate"})},
             {"out_of_bounds_policy", Word({"error", "pad"})},
             {"fill_values", Fill()}}};
  }

  Node Geometry() {
    switch (Below(7)) {
      case 6:
        return Window();
      case 0:
        return {"flip", {}, {{"horizontal", Flag()}, {"vertical", Flag()}}};
      case 1:
        return {"crop",
                {},
                {{"size", Ints{1 + Below(9), 1 + Below(9)}},
                 {"pos_y", Value(Between(0, 1))},
                 {"pos_x", Below(2) ? Value(Between(0, 1))
                                    : Value(NodeRef{share_, 0})}}};
      case 2:
        return {Below(2) ? "resize" : "random_resized_crop",
                {},
                {{"size", Ints{1 + Below(20), 1 + Below(20)}},
                 {"interpolation", Filter()},
                 {"antialias", Value(Below(3) != 0)},
                 {"rule", Word({"pillow", "dali"})}}};
      case 3:
        return {"rotate",
                {},
                {{"angle", Number(-200, 200)},
                 {"keep_size", Value(true)},
                 {"fill_value", Below(2) ? Floats{} : Floats{77.5}},
                 {"interpolation", Word({"linear", "nearest"})},
                 {"rule", Word({"fixed", "dali"})}}};
      case 4:
        return {"warp_affine",
                {},
                {{"angle", Number(-90, 90)},
                 {"scale", Value(Between(0.2, 3))},
                 {"shear_x", Number(-1, 1)},
                 {"translate_y", Number(-9, 9)},
                 {"size", Below(2) ? Ints{} : Ints{1 + Below(20), 300}},
                 {"fill_value", Below(2) ? Floats{} : Floats{3}},
                 {"interpolation", Word({"linear", "nearest"})},
                 {"rule", Word({"fixed", "dali"})}}};
      default:
        return {"gaussian_blur",
                {},
                {{"sigma", Value(Between(0, 4))},
                 {"window_size", Value(int64_t{Pick({0, 1, 3, 9, 41})})}}};
    }
  }

  std::mt19937& random_;
  Graph graph_;
  uint32_t coin_ = 0, share_ = 0;
  std::vector<uint32_t> numbers_, host_, pixels_;
};

}  // namespace leat::worker
