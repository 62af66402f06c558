// SPDX-License-Identifier: Apache-2.0
//
// Random operators on pixels, for pipelines of kernels of stages.
#pragma once

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/operators/augmentation.h"
#include "core/pipeline/graph.h"

namespace leat::worker {

// Its nodes may not fit the value at hand. Nodes without inputs need one.
class RandomStagedNodes {
 public:
  explicit RandomStagedNodes(std::mt19937& random) : random_(random) {}

 protected:
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
  uint32_t Any() { return pixels_[Below(static_cast<int>(pixels_.size()))]; }
  uint32_t Last() { return Below(3) == 0 ? Any() : pixels_.back(); }

  // A constant, or a number per sample.
  Value Number(double least, double most) {
    if (Below(3) != 0) return Value(Between(least, most));
    return NodeRef{numbers_[Below(static_cast<int>(numbers_.size()))], 0};
  }
  Value Flag() {
    if (Below(3) != 0) return Value(Below(2) == 0);
    return NodeRef{coin_, 0};
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
        return {
            "rand_augment",
            {},
            with({{"n", Value(int64_t{Below(8) ? 1 + Below(3) : 9 + Below(8)})},
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
        // A choice per element, if a comparison is at hand.
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

  Node Standardize() {
    return {"standardize",
            {},
            {{"axes", Pick({Ints{}, Ints{0, 1}, Ints{2}, Ints{1}, Ints{0},
                            Ints{0, 2}})},
             {"mean", Below(4) ? Floats{} : Floats{Between(-50, 200)}},
             {"stddev", Below(4) ? Floats{} : Floats{Between(0.5, 90)}},
             {"ddof", Value(int64_t{Below(3)})},
             {"epsilon", Value(Pick({0.0, 0.0, 2.5}))},
             {"scale", Value(Pick({1.0, 64.0, -2.5}))},
             {"shift", Value(Pick({0.0, 100.0}))},
             {"dtype", Type()}}};
  }

  Node Shape() {
    switch (Below(6)) {
      case 5:
        return Standardize();
      case 0: {
        Ints perm = {0, 1, 2};
        std::shuffle(perm.begin(), perm.end(), random_);
        return {"transpose", {}, {{"perm", perm}}};
      }
      case 1:
        return {"cast",
                {},
                {{"dtype", Word({"bool", "uint8", "int64", "float16", "int8",
                                 "int16", "uint16", "uint32", "bfloat16"})}}};
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

  Node WarpAffine() {
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
  }

  Node Geometry() {
    switch (Below(by_row_ ? 9 : 7)) {
      case 8:
        return {"random_crop",
                {},
                {{"area", Floats{0.1, 0.9}}, {"aspect", Floats{0.5, 2}}}};
      case 7:
        return {"resize",
                {},
                {{"shorter", Value(static_cast<double>(1 + Below(40)))},
                 {"interpolation", Filter()},
                 {"rule", Word({"pillow", "dali"})}}};
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
        return Resize(20, 20);
      case 3:
        return {"rotate",
                {},
                {{"angle", Number(-200, 200)},
                 {"keep_size", Value(!by_row_ || Below(2) == 0)},
                 {"fill_value", Below(2) ? Floats{} : Floats{77.5}},
                 {"interpolation", Word({"linear", "nearest"})},
                 {"rule", Word({"fixed", "dali"})}}};
      case 4:
        return WarpAffine();
      default:
        return {"gaussian_blur",
                {},
                {{"sigma", Value(Between(0, 4))},
                 {"window_size", Value(int64_t{Pick({0, 1, 3, 9, 41})})}}};
    }
  }

  Node Resize(int height, int width) {
    return {Below(2) ? "resize" : "random_resized_crop",
            {},
            {{"size", Ints{1 + Below(height), 1 + Below(width)}},
             {"interpolation", Filter()},
             {"antialias", Value(Below(3) != 0)},
             {"rule", Word({"pillow", "dali"})}}};
  }

  Node View() {
    switch (Below(8)) {
      case 0:
        return {"crop",
                {},
                {{"size", Ints{1 + Below(17), 1 + Below(17)}},
                 {"pos_x", Value(Between(0, 1))}}};
      case 1: {
        Node node = Window();
        node.args["crop"] = Ints{1 + Below(20), 1 + Below(20)};
        return node;
      }
      case 2:
        return {"slice",
                {},
                {{"axes", Ints{0, 1}},
                 {"start", Ints{Below(9) - 2, Below(9) - 2}},
                 {"shape", Ints{1 + Below(12), 1 + Below(12)}},
                 {"out_of_bounds_policy", Word({"pad"})},
                 {"fill_values", Fill()}}};
      case 3: {
        const int64_t side = 48 + 300 * Below(2);
        return {"pad",
                {},
                {{"fill_value", Value(Between(-10, 300))},
                 {"axes", Ints{0, 1}},
                 {"shape", Ints{side, side}}}};
      }
      case 4: {
        Node node = WarpAffine();
        node.args["size"] = Ints{1 + Below(20), 1 + Below(40)};
        return node;
      }
      default:
        return Resize(17, 23);
    }
  }

  std::mt19937& random_;
  bool by_row_ = false;  // sizes differ per sample
  uint32_t coin_ = 0, share_ = 0;
  std::vector<uint32_t> numbers_, pixels_;
};

}  // namespace leat::worker
