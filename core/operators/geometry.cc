// SPDX-License-Identifier: Apache-2.0
//
// Operators on position and shape: pad, reshape, slice, erase,
// crop_mirror_normalize. Operators that resample: warp.cc.
#include <algorithm>
#include <utility>

#include "core/pipeline/operator_table.h"
#include "core/pipeline/shape_inference.h"
#include "core/shapes/boxes.h"
#include "core/status.h"
#include "fmt/ranges.h"

namespace leat {
namespace {

constexpr double kMostElements = 1e9;  // along an axis
constexpr double kMostValue = 1e30;    // of fill values
constexpr size_t kMaxRank = 8;

TypesOr InferPad(Node* node, Inputs inputs) {
  RETURN_IF_ERROR(WantTensor(inputs[0]));
  Shape shape = inputs[0].shape;
  ASSIGN_OR_RETURN(const auto rules,
                   PadRules(*node, static_cast<int>(shape.size())));
  for (const PadRule& rule : rules) {
    int64_t& side = shape[rule.axis];
    if (side >= 0)
      side = rule.Of(side);
    else if (rule.shape > 0)
      side = rule.Of(0);
  }
  return OneTensor(inputs[0].dtype, std::move(shape));
}

TypesOr InferReshape(Node* node, Inputs inputs) {
  RETURN_IF_ERROR(WantTensor(inputs[0]));
  const Ints& given = ArgOf<Ints>(*node, "shape");
  const Ints& axes = ArgOf<Ints>(*node, "axes");
  if (given.size() > kMaxRank)
    return InvalidArgument("argument \"shape\" has {} numbers, want at most {}",
                           given.size(), kMaxRank);
  const auto rank = static_cast<int64_t>(inputs[0].shape.size());
  if (!axes.empty() &&
      (axes.size() != given.size() ||
       std::any_of(axes.begin(), axes.end(),
                   [&](int64_t axis) { return axis >= rank; })))
    return InvalidArgument(
        "argument \"axes\" is [{}], want an axis of {}, or -1, for each of {} "
        "sizes",
        fmt::join(axes, ", "), TypeText(inputs[0]), given.size());
  const Shape shape = WithSizesOf(given, axes, inputs[0].shape);
  int64_t elements = 1;
  bool known = true;
  for (const int64_t side : inputs[0].shape) {
    known = known && side >= 0;
    if (known) elements *= side;
  }
  if (!known) {
    int64_t open = 0;
    bool good = true;
    for (size_t i = 0; i < given.size(); ++i) {
      if (!axes.empty() && axes[i] >= 0) continue;
      open += given[i] == -1;
      good = good && given[i] != 0;
    }
    if (!good || open > 1)
      return InvalidArgument(
          "argument \"shape\" is [{}], want sizes, and -1 for at most one",
          fmt::join(given, ", "));
    return OneTensor(inputs[0].dtype, shape);
  }
  auto reshaped = Reshaped(shape, elements);
  if (!reshaped.ok()) return Annotate(reshaped.status(), "argument \"shape\"");
  return OneTensor(inputs[0].dtype, *std::move(reshaped));
}

// Accepts one number, or one per channel (the last axis).
absl::Status WantFill(const Node& node, const char* name, const Shape& shape) {
  const size_t count = ArgOf<Floats>(node, name).size();
  if (count <= 1 ||
      (!shape.empty() && shape.back() == static_cast<int64_t>(count)))
    return absl::OkStatus();
  return InvalidArgument(
      "argument \"{}\" has {} numbers, want 1, or one for each of the last "
      "axis",
      name, count);
}

bool IsZero(const Node& node, const char* name) {
  const double* value = std::get_if<double>(&node.args.at(name));
  return value != nullptr && *value == 0;
}

TypesOr InferSlice(Node* node, Inputs inputs) {
  RETURN_IF_ERROR(WantTensor(inputs[0]));
  Shape shape = inputs[0].shape;
  RETURN_IF_ERROR(WantFill(*node, "fill_values", shape));
  ASSIGN_OR_RETURN(const auto rules,
                   SliceRules(*node, static_cast<int>(shape.size())));
  const auto& policy = ArgOf<std::string>(*node, "out_of_bounds_policy");
  const char* const offsets[] = {"offset_0", "offset_1"};
  for (size_t i = 0; i < 2; ++i)
    if (i >= rules.size() && !IsZero(*node, offsets[i]))
      return InvalidArgument("argument \"{}\" is for axis {} of {}", offsets[i],
                             i, rules.size());
  for (size_t i = 0; i < rules.size(); ++i) {
    int64_t& side = shape[rules[i].axis];
    const auto* offset =
        i < 2 ? std::get_if<double>(&node->args.at(offsets[i])) : nullptr;
    const bool fixed = i >= 2 || offset != nullptr;
    const auto length = rules[i].Fixed();
    if (side < 0 || !fixed) {
      side = policy != "trim" && length ? *length : -1;
      continue;
    }
    Interval part = rules[i].Of(side, offset ? *offset : 0);
    const bool inside = part.begin >= 0 && part.end <= side;
    if (policy == "trim")
      part = {std::clamp<int64_t>(part.begin, 0, side),
              std::clamp<int64_t>(part.end, 0, side)};
    if (part.size() < 1 || (!inside && policy == "error"))
      return InvalidArgument(
          "elements {} to {} of axis {}, which has {}; want {}", part.begin,
          part.end, rules[i].axis, side,
          part.size() < 1 ? "at least one" : "a slice inside it");
    side = part.size();
  }
  // The numbers fill the result, whose last axis may be sliced, too.
  if (policy == "pad") RETURN_IF_ERROR(WantFill(*node, "fill_values", shape));
  return OneTensor(inputs[0].dtype, std::move(shape));
}

TypesOr InferErase(Node* node, Inputs inputs) {
  RETURN_IF_ERROR(WantTensor(inputs[0]));
  const Shape& shape = inputs[0].shape;
  const int rank = static_cast<int>(shape.size());
  if (rank == 0) return InvalidArgument("input is a scalar, want an axis");
  ASSIGN_OR_RETURN(const auto axes, AxesOf(*node, rank, std::max(1, rank - 1)));
  const size_t anchors = ArgOf<Floats>(*node, "anchor").size();
  const size_t extents = ArgOf<Floats>(*node, "shape").size();
  if ((anchors != extents && anchors != 0) || extents % axes.size() != 0)
    return InvalidArgument(
        "arguments \"anchor\", \"shape\" have {}, {} numbers, want as many, a "
        "multiple of the {} axes",
        anchors, extents, axes.size());
  for (const char* name : {"x", "width"})
    if (axes.size() == 1 && !IsZero(*node, name))
      return InvalidArgument(
          "argument \"{}\" is for the second axis of the region, and it has "
          "one axis of {}",
          name, TypeText(inputs[0]));
  RETURN_IF_ERROR(WantFill(*node, "fill_value", shape));
  return std::vector<ValueType>{inputs[0]};
}

TypesOr InferCropMirrorNormalize(Node* node, Inputs inputs) {
  RETURN_IF_ERROR(WantImage(inputs[0]));
  int64_t channels = inputs[0].shape[2];
  for (const char* name : {"mean", "std", "fill_values"})
    RETURN_IF_ERROR(WantPerChannel(*node, name, channels));
  RETURN_IF_ERROR(CompletePair<int64_t>(node, "crop"));
  const Ints& crop = ArgOf<Ints>(*node, "crop");
  const auto& policy = ArgOf<std::string>(*node, "out_of_bounds_policy");
  int64_t sides[] = {inputs[0].shape[0], inputs[0].shape[1]};
  for (size_t i = 0; i < crop.size(); ++i) {
    if (policy == "error" && sides[i] >= 0 && sides[i] < crop[i])
      return InvalidArgument(
          "argument \"crop\" is ({}, {}), larger than the image: {}", crop[0],
          crop[1], TypeText(inputs[0]));
    if (policy != "trim")
      sides[i] = crop[i];
    else if (sides[i] >= 0)
      sides[i] = std::min(sides[i], crop[i]);
  }
  if (ArgOf<bool>(*node, "pad_output") && channels == 3) channels = 4;
  const DType dtype = DTypeOf(*node);
  if (ArgOf<std::string>(*node, "output_layout") == "HWC")
    return OneTensor(dtype, {sides[0], sides[1], channels});
  return OneTensor(dtype, {channels, sides[0], sides[1]});
}

ArgInfo AxesArg(std::string doc) {
  return IntsArg("axes", 0, kMaxRank - 1, std::move(doc));
}
ArgInfo PolicyArg() {
  return Choice("out_of_bounds_policy", Text("error"), {"error", "pad", "trim"},
                "what lies outside the input: a bad sample, filled, or left "
                "out");
}
ArgInfo FillArg(std::string name, Floats value, std::string doc) {
  return Ranged(Arg(std::move(name), ArgType::kFloats, Value(std::move(value)),
                    std::move(doc)),
                -kMostValue, kMostValue);
}

void AddShapes(OperatorList* list) {
  list->push_back(
      {TakesCarried(Operator(
           "pad", 1, 1,
           {FloatArg("fill_value", 0.0, -kMostValue, kMostValue,
                     "of what is added; rounded and saturated"),
            AxesArg("which are extended; none: all"),
            IntsArg("align", 1, kMostElements,
                    "sizes are rounded up to a multiple: one number, or one "
                    "an axis"),
            IntsArg("shape", 0, kMostElements,
                    "least sizes of the axes, 0: as it is. An axis whose size "
                    "differs from sample to sample gets this size; a larger "
                    "sample is a bad one")},
           "the value, extended at the ends of its axes")),
       InferPad});
  list->push_back(
      {TakesCarried(Operator(
           "reshape", 1, 1,
           {IntsArg("shape", -1, kMostElements,
                    "sizes; one may be -1: what the others leave; none: "
                    "a scalar"),
            IntsArg("axes", -1, 7,
                    "for each of the sizes the axis of the input whose "
                    "size it is instead, or -1; none: each is as given")},
           "the same elements in other axes")),
       InferReshape});
  list->push_back(
      {TakesCarried(Operator(
           "slice", 1, 1,
           {AxesArg("which are sliced; none: all, in their order"),
            IntsArg("start", -kMostElements, kMostElements,
                    "first elements; none: 0"),
            FloatsArg("rel_start", -1e3, 1e3,
                      "the same as a share of the size"),
            IntsArg("shape", 1, kMostElements, "numbers of elements"),
            FloatsArg("rel_shape", 0, 1e3, "the same as a share of the size"),
            IntsArg("end", -kMostElements, kMostElements,
                    "behind the last elements; none: all of the axis"),
            FloatsArg("rel_end", -1e3, 1e3, "the same as a share of the size"),
            Scalar("offset_0", 0, -kMostElements, kMostElements,
                   "added to the start in the first axis"),
            Scalar("offset_1", 0, -kMostElements, kMostElements,
                   "added to the start in the second axis"),
            PolicyArg(),
            FillArg("fill_values", {0},
                    "of what lies outside; one number, or one for each of the "
                    "last axis")},
           "a part of the value")),
       InferSlice});
}

void AddErase(OperatorList* list) {
  list->push_back(
      {Operator(
           "erase", 1, 1,
           {AxesArg("of the regions; none: all but the last"),
            FloatsArg("anchor", -kMostElements, kMostElements,
                      "least corners of the regions, one behind the other; "
                      "none: 0"),
            FloatsArg("shape", 0, kMostElements,
                      "sizes of the regions, one behind the other"),
            FlagArg(
                "normalized", false,
                "anchor, shape, y, x, height, width are shares of the size"),
            FlagArg("centered_anchor", false, "anchor, y, x are centres"),
            Scalar("y", 0, -kMostElements, kMostElements,
                   "one more region: its place in the first axis"),
            Scalar("x", 0, -kMostElements, kMostElements,
                   "the same in the second"),
            Scalar("height", 0, 0, kMostElements,
                   "its size in the first axis; 0: there is none"),
            Scalar("width", 0, 0, kMostElements, "the same in the second"),
            PerSample(FlagArg("enable", true, "false: nothing is erased")),
            FillArg("fill_value", {0},
                    "one number, or one for each of the last axis")},
           "the value with regions filled"),
       InferErase});
}

}  // namespace

void AddGeometryOperators(OperatorList* list) {
  AddShapes(list);
  AddErase(list);
  list->push_back(
      {Operator(
           "crop_mirror_normalize", 1, 1,
           {IntsArg("crop", 1, kMaxSide,
                    "height and width, or one number for both; none: the "
                    "whole image"),
            Scalar("pos_y", 0.5, 0, 1, "0: at the top, 1: at the bottom"),
            Scalar("pos_x", 0.5, 0, 1, "0: at the left, 1: at the right"),
            PerSample(FlagArg("mirror", false, "mirror left and right")),
            FillArg("mean", {0}, "one number, or one a channel"),
            Ranged(Arg("std", ArgType::kFloats, Value(Floats{1}),
                       "one number, or one a channel"),
                   1e-30, kMostValue),
            Arg("scale", ArgType::kFloat, Value(1.0), "factor of the result"),
            Arg("shift", ArgType::kFloat, Value(0.0), "added to the result"),
            Choice("dtype", Text("float32"), {"float32", "float16", "uint8"},
                   "type of the result; to uint8: rounded, saturated"),
            Choice("output_layout", Text("CHW"), {"CHW", "HWC"},
                   "order of the axes"),
            FlagArg("pad_output", false,
                    "a fourth channel of zeros behind three"),
            Choice("rounding", Text("round"), {"round", "truncate"},
                   "of the window's place"),
            PolicyArg(),
            FillArg("fill_values", {0},
                    "of the result outside the image; one number, or one a "
                    "channel")},
           "a window, mirrored, (x - mean) * (scale / std) + shift"),
       InferCropMirrorNormalize});
  AddWarpOperators(list);
}

}  // namespace leat
