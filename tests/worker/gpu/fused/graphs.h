// SPDX-License-Identifier: Apache-2.0
//
// Random pipelines that can be fused, and images to run them on.
#pragma once

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/pipeline/operators.h"
#include "tests/support/jpeg_maker.h"
#include "tests/worker/image/program/support.h"
#include "tests/worker/image/resample/random_resize.h"

namespace leat::worker {

inline std::vector<std::string> OddImages() {
  using testing::JpegColor;
  using testing::MakeJpeg;
  std::vector<std::string> images;
  const int sizes[][2] = {{1, 1},    {1, 7},   {9, 1},    {5000, 3},
                          {3, 5000}, {64, 48}, {131, 77}, {40, 41}};
  uint32_t seed = 0;
  for (const auto& [width, height] : sizes) {
    images.push_back(
        MakeJpeg({.width = width, .height = height, .seed = ++seed}));
    images.push_back(MakeJpeg({.width = width,
                               .height = height,
                               .color = JpegColor::kGray,
                               .h = 1,
                               .v = 1,
                               .orientation = static_cast<int>(seed % 8) + 1,
                               .seed = ++seed}));
  }
  for (int orientation = 1; orientation <= 8; ++orientation)
    images.push_back(MakeJpeg({.width = 90 + orientation,
                               .height = 70,
                               .h = orientation % 2 + 1,
                               .v = 1,
                               .orientation = orientation,
                               .seed = ++seed}));
  images.push_back(MakeJpeg({.width = 60, .height = 99, .progressive = true}));
  images.push_back(MakeJpeg(
      {.width = 70, .height = 33, .color = JpegColor::kYcck, .h = 1, .v = 1}));
  return images;
}

// Builds one graph; `random` decides everything.
class RandomGraph {
 public:
  explicit RandomGraph(std::mt19937& random) : random_(random) {}

  Graph Make() {
    graph_ = {};
    outputs_ = 0;
    Add({"readers.image_folder", {}, {{"path", Value(std::string("/data"))}}});
    AddHostValues();
    gray_ = Below(4) == 0;
    decoded_ = Add({"decode",
                    {{0, 0}},
                    {{"output", Value(std::string(gray_ ? "gray" : "rgb"))},
                     {"orient", Value(Below(5) != 0)}}});
    made_.clear();
    for (int views = Below(3) == 0 ? 2 + Below(3) : 1; views > 0; --views)
      AddView();
    AddTail();
    AddOutputs();
    return graph_;
  }

 private:
  using Ints = std::vector<int64_t>;
  using Floats = std::vector<double>;
  struct Made {
    uint32_t node;
    Ints shape;
  };

  int Below(int n) { return static_cast<int>(random_() % n); }
  template <class T>
  T Pick(std::initializer_list<T> of) {
    return *(of.begin() + Below(static_cast<int>(of.size())));
  }
  Value Word(std::initializer_list<const char*> of) {
    return Value(std::string(Pick(of)));
  }
  uint32_t Add(Node node) {
    graph_.nodes.push_back(std::move(node));
    return static_cast<uint32_t>(graph_.nodes.size() - 1);
  }
  void Chain(Node node) {
    node.inputs = {{last_, 0}};
    last_ = Add(std::move(node));
  }

  void AddHostValues() {
    coin_ = Add({"coin_flip", {}, {{"probability", Value(0.5)}}});
    uniform_ = Add({"uniform", {}, {}});
    const uint32_t cast =
        Add({"cast", {{uniform_, 0}}, {{"dtype", Word({"float16", "int64"})}}});
    const uint32_t label =
        Add({"cast", {{0, 1}}, {{"dtype", Word({"uint8", "float32"})}}});
    host_ = {{0, 1}, {coin_, 0}, {uniform_, 0}, {cast, 0}, {label, 0}};
  }

  Value Flag() {
    if (Below(4) == 0) return NodeRef{coin_, 0};
    return Value(Below(2) == 0);
  }
  Value Position() {
    if (Below(4) == 0) return NodeRef{uniform_, 0};
    return Value(Pick({0.0, 1.0, Below(101) / 100.0}));
  }
  void Flip() {
    Chain({"flip", {}, {{"horizontal", Flag()}, {"vertical", Flag()}}});
  }
  void Crop(Ints size) {
    Chain({"crop",
           {},
           {{"size", size}, {"pos_y", Position()}, {"pos_x", Position()}}});
  }
  void Resample(Node node) {
    node.args["interpolation"] =
        Word({"linear", "nearest", "cubic", "lanczos3", "gaussian"});
    node.args["antialias"] = Value(Below(4) != 0);
    Chain(std::move(node));
  }
  // Sides up to 4 may be channels after a transpose.
  int64_t Side() { return Below(5) == 0 ? 1 + Below(4) : 1 + Below(40); }

  void AddView() {
    last_ = decoded_;
    size_ = {Side(), Side()};
    if (Below(4) == 0) Chain({"random_crop", {}, {{"area", Floats{0.3, 1}}}});
    if (Below(4) == 0)
      Chain({"window",
             {},
             {{"y", Position()},
              {"x", Value(0.125)},
              {"height", Value(Below(4) == 0 ? 0.875 : 0.1)},
              {"width", Value(0.875)},
              {"normalized_anchor", Value(true)},
              {"normalized_shape", Value(true)}}});
    const int kind = Below(8);
    if (kind < 7 && Below(4) == 0)
      Crop({1 + Below(Pick({3, 30})), 1 + Below(3)});
    switch (kind) {
      case 0:
        Resample({"random_resized_crop", {}, {{"size", size_}}});
        break;
      case 1:
        Resample({"resize", {}, {{"size", size_}}});
        break;
      case 2: {
        const int64_t side = std::max(size_[0], size_[1]);
        Resample(
            {"resize",
             {},
             {{"size", Ints{side, side}}, {"mode", Word({"not_smaller"})}}});
        Crop(size_);
        break;
      }
      case 3:  // a part of an enlarged image
        Resample({"resize", {}, {{"size", Ints{size_[0] + Below(90), 77}}}});
        Crop(size_);
        break;
      case 4:
        Resample(
            {"resize", {}, RandomResizing(size_[0], size_[1], true, random_)});
        break;
      case 5:
        Resample(
            {"resize", {}, RandomResizing(size_[0], size_[1], false, random_)});
        Crop(size_);
        break;
      case 6: {  // a different size for each sample
        const auto least = static_cast<double>(std::max(size_[0], size_[1]));
        const uint32_t side =
            Add({"uniform",
                 {},
                 {{"low", Value(least)}, {"high", Value(least + 9)}}});
        Resample({"resize", {}, {{"shorter", NodeRef{side, 0}}}});
        Crop(size_);
        break;
      }
      default:
        if (Below(3) == 0) Flip();
        Crop(size_);
    }
    if (Below(2) == 0) Flip();
    if (Below(4) == 0) {
      size_ = {1 + Below(static_cast<int>(size_[0])),
               1 + Below(static_cast<int>(size_[1]))};
      Crop(size_);
    }
    // The view before the last operators may be an output, too.
    if (Below(4) == 0) AddMade();
    if (Below(3) == 0) Flip();
    AddMade();
  }
  void AddMade() {
    made_.push_back({last_, {size_[0], size_[1], gray_ ? 1 : 3}});
  }

  Floats Numbers(int64_t channels, double least, double most) {
    Floats numbers(Below(2) == 0 ? 1 : static_cast<size_t>(channels));
    for (double& number : numbers)
      number = least + (most - least) * Below(10'001) / 10'000;
    return numbers;
  }

  Made Behind(const Made& from) {
    const int64_t channels = from.shape[2];
    switch (Below(channels <= 4 ? 3 : 2)) {
      case 0: {
        Ints perm = {0, 1, 2};
        std::shuffle(perm.begin(), perm.end(), random_);
        Ints shape;
        for (const int64_t axis : perm) shape.push_back(from.shape[axis]);
        return {Add({"transpose", {{from.node, 0}}, {{"perm", perm}}}), shape};
      }
      case 1:
        return {Add({"cast",
                     {{from.node, 0}},
                     {{"dtype", Word({"bool", "uint8", "int32", "int64",
                                      "float16", "float32"})}}}),
                from.shape};
      default: {
        const double wide = Pick({1.0, 255.0, 1e6, 1e39});
        return {Add({"normalize",
                     {{from.node, 0}},
                     {{"mean", Numbers(channels, -wide / 3, wide)},
                      {"std", Numbers(channels, Pick({1e-9, 0.5}),
                                      std::min(wide, 1e30))},
                      {"scale", Value(Pick({1.0, -3.75, 0.0, 1e30}))},
                      {"shift", Value(Pick({0.0, 0.25, -1e5}))},
                      {"dtype", Word({"float16", "float32"})}}}),
                from.shape};
      }
    }
  }

  void AddTail() {
    for (int count = Below(7); count > 0; --count)
      made_.push_back(Behind(made_[Below(static_cast<int>(made_.size()))]));
  }

  void Output(NodeRef ref) {
    graph_.outputs.push_back({"f" + std::to_string(outputs_++), ref});
  }
  void AddOutputs() {
    const int most = static_cast<int>(made_.size());
    for (int count = 1 + Below(4); count > 0; --count) {
      Output({made_[Below(most)].node, 0});
      if (Below(3) == 0) Output(host_[Below(static_cast<int>(host_.size()))]);
    }
  }

  std::mt19937& random_;
  Graph graph_;
  uint32_t decoded_ = 0, last_ = 0, coin_ = 0, uniform_ = 0;
  std::vector<NodeRef> host_;
  std::vector<Made> made_;
  Ints size_;
  bool gray_ = false;
  int outputs_ = 0;
};

}  // namespace leat::worker
