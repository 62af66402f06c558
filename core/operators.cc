// SPDX-License-Identifier: Apache-2.0
//
// The table of operators. Their shapes are in core/shape_inference.cc.
#include "core/operators.h"

#include <utility>

namespace leat {
namespace {

constexpr double kMaxSide = 65'500;  // as JPEG's

ArgInfo Arg(std::string name, ArgType type, std::optional<Value> default_value,
            std::string doc) {
  ArgInfo arg;
  arg.name = std::move(name);
  arg.type = type;
  arg.default_value = std::move(default_value);
  arg.doc = std::move(doc);
  arg.min = 1;
  arg.max = 0;
  return arg;
}

ArgInfo Ranged(ArgInfo arg, double min, double max) {
  arg.min = min;
  arg.max = max;
  return arg;
}

ArgInfo PerSample(ArgInfo arg) {
  arg.per_sample = true;
  return arg;
}

ArgInfo Choice(std::string name, std::optional<Value> default_value,
               std::vector<std::string> choices, std::string doc) {
  ArgInfo arg = Arg(std::move(name), ArgType::kString, std::move(default_value),
                    std::move(doc));
  arg.choices = std::move(choices);
  return arg;
}

Value Text(const char* text) { return Value(std::string(text)); }

ArgInfo SizeArg(std::string doc) {
  return Ranged(Arg("size", ArgType::kInts, std::nullopt, std::move(doc)), 1,
                kMaxSide);
}

std::vector<ArgInfo> ResamplingArgs() {
  return {
      Choice("interpolation", Text("linear"),
             {"linear", "nearest", "cubic", "lanczos3"},
             "the filter; cubic has a = -0.5"),
      Arg("antialias", ArgType::kBool, Value(true),
          "widen the filter by the scale when shrinking, as Pillow does; "
          "nearest never is"),
  };
}

std::vector<ArgInfo> Join(std::vector<ArgInfo> first,
                          std::vector<ArgInfo> second) {
  for (ArgInfo& arg : second) first.push_back(std::move(arg));
  return first;
}

OperatorInfo Operator(std::string name, int inputs, int outputs,
                      std::vector<ArgInfo> args, std::string doc) {
  return {std::move(name), std::move(doc), inputs,
          outputs,         false,          std::move(args)};
}

OperatorInfo Random(OperatorInfo info) {
  info.random = true;
  return info;
}

void AddReaders(std::vector<OperatorInfo>* table) {
  table->push_back(Operator(
      "readers.image_folder", 0, 2,
      {Arg("path", ArgType::kString, std::nullopt,
           "the folder; its sub-folders in byte order are the classes 0, 1, …"),
       Ranged(Arg("repeat", ArgType::kInt, Value(int64_t{1}),
                  "how often an epoch passes over the files"),
              1, 1e9)},
      "JPEG files of a folder of classes -> encoded image, label (int32)"));
}

void AddImageOperators(std::vector<OperatorInfo>* table) {
  table->push_back(Operator(
      "decode", 1, 1,
      {Choice("output", Text("rgb"), {"rgb", "gray"}, "colours of the result"),
       Arg("orient", ArgType::kBool, Value(true),
           "turn the image as its EXIF orientation says")},
      "encoded image -> uint8 (height, width, 3 or 1)"));
  table->push_back(Random(Operator(
      "random_resized_crop", 1, 1,
      Join({SizeArg("height and width of the result, or one number for both"),
            Ranged(Arg("area", ArgType::kFloats,
                       Value(std::vector<double>{0.08, 1.0}),
                       "least and largest part of the image's area"),
                   1e-6, 1),
            Ranged(Arg("aspect", ArgType::kFloats,
                       Value(std::vector<double>{3.0 / 4.0, 4.0 / 3.0}),
                       "least and largest width / height; drawn log-uniformly"),
                   1e-3, 1e3),
            Ranged(Arg("attempts", ArgType::kInt, Value(int64_t{10}),
                       "windows drawn before the central one is taken"),
                   1, 100)},
           ResamplingArgs()),
      "a random window, resized")));
  table->push_back(Operator(
      "resize", 1, 1,
      Join({SizeArg("height and width, or one number for both"),
            Choice("mode", Text("stretch"),
                   {"stretch", "not_smaller", "not_larger"},
                   "stretch: exactly size; otherwise the aspect is kept and "
                   "size is the least, or the largest")},
           ResamplingArgs()),
      "the whole image, resized"));
  const auto position = [](std::string name, std::string doc) {
    return PerSample(Ranged(
        Arg(std::move(name), ArgType::kFloat, Value(0.5), std::move(doc)), 0,
        1));
  };
  table->push_back(Operator(
      "crop", 1, 1,
      {SizeArg("height and width, or one number for both"),
       position("pos_y", "0: at the top, 1: at the bottom"),
       position("pos_x", "0: at the left, 1: at the right")},
      "a window of the image; an image smaller than it is a bad sample"));
  table->push_back(
      Operator("flip", 1, 1,
               {PerSample(Arg("horizontal", ArgType::kBool, Value(true),
                              "mirror left and right")),
                PerSample(Arg("vertical", ArgType::kBool, Value(false),
                              "mirror top and bottom"))},
               "the image mirrored"));
}

void AddTensorOperators(std::vector<OperatorInfo>* table) {
  table->push_back(Random(Operator(
      "coin_flip", 0, 1,
      {Ranged(Arg("probability", ArgType::kFloat, Value(0.5), "of true"), 0,
              1)},
      "a random bool a sample")));
  table->push_back(Random(Operator(
      "uniform", 0, 1,
      {Arg("low", ArgType::kFloat, Value(0.0), "least value"),
       Arg("high", ArgType::kFloat, Value(1.0), "upper bound, excluded")},
      "a random float32 a sample")));
  table->push_back(Operator(
      "normalize", 1, 1,
      {Arg("mean", ArgType::kFloats, std::nullopt,
           "one number, or one a channel"),
       Ranged(Arg("std", ArgType::kFloats, std::nullopt,
                  "one number, or one a channel"),
              1e-30, 1e30),
       Arg("scale", ArgType::kFloat, Value(1.0), "factor of the result"),
       Arg("shift", ArgType::kFloat, Value(0.0), "added to the result"),
       Choice("dtype", Text("float32"), {"float32", "float16"},
              "type of the result")},
      "(x - mean) * (scale / std) + shift"));
  table->push_back(Operator(
      "cast", 1, 1,
      {Choice("dtype", std::nullopt,
              {"bool", "uint8", "int32", "int64", "float16", "float32"},
              "type of the result; to integers: halves to even, saturated")},
      "the same values in another type"));
  table->push_back(
      Operator("transpose", 1, 1,
               {Ranged(Arg("perm", ArgType::kInts, std::nullopt,
                           "axis i of the result is axis perm[i] of the input"),
                       0, 7)},
               "the axes in another order"));
}

std::vector<OperatorInfo> MakeTable() {
  std::vector<OperatorInfo> table;
  AddReaders(&table);
  AddImageOperators(&table);
  AddTensorOperators(&table);
  return table;
}

}  // namespace

std::span<const OperatorInfo> AllOperators() {
  static const std::vector<OperatorInfo>& table =
      *new std::vector<OperatorInfo>(MakeTable());
  return table;
}

const OperatorInfo* FindOperator(std::string_view name) {
  for (const OperatorInfo& info : AllOperators())
    if (info.name == name) return &info;
  return nullptr;
}

}  // namespace leat
