// SPDX-License-Identifier: Apache-2.0
//
// pad, reshape, slice, erase and length: copies of boxes, by the rules of
// core/shapes/boxes.h.
#include <algorithm>
#include <cstring>
#include <limits>

#include "core/shapes/boxes.h"
#include "core/status.h"
#include "worker/image/loops/box_copy.h"
#include "worker/image/operators/args.h"
#include "worker/image/operators/sample_bool.h"

namespace leat::worker {
namespace {

using Ints = std::vector<int64_t>;
using Floats = std::vector<double>;

class Pad final : public OperatorKernel {
 public:
  Pad(const CheckedGraph& graph, uint32_t node, std::vector<PadRule> rules)
      : rules_(std::move(rules)),
        type_(InputType(graph, node, 0)),
        fill_(std::array{ConstantArg<double>(graph, node, "fill_value")},
              type_.dtype) {}

  absl::Status Shape(const OperatorCall& call, Tensor* result) const override {
    RETURN_IF_ERROR(OperatorKernel::Shape(call, result));
    for (const PadRule& rule : rules_) {
      int64_t& side = result->dims[rule.axis];
      const bool fixed = rule.shape > 0 && type_.shape[rule.axis] < 0;
      if (fixed && side > rule.Of(0))
        return InvalidArgument(
            "axis {} has {} elements, more than \"shape\" gives it: {}",
            rule.axis, side, rule.Of(0));
      side = rule.Of(side);
    }
    return absl::OkStatus();
  }

  absl::Status Run(const OperatorCall& call,
                   const Tensor& result) const override {
    const Tensor& in = *call.inputs[0];
    // The parts after the input's end, one axis at a time, so that no element
    // is filled twice.
    Box box = Box::Whole(result);
    for (int axis = 0; axis < result.rank; ++axis) {
      box.at[axis] = in.dims[axis];
      box.extent[axis] = result.dims[axis] - in.dims[axis];
      fill_.Fill(result, box);
      box.at[axis] = 0;
      box.extent[axis] = in.dims[axis];
    }
    CopyBox(in, Box::Whole(in), result, {});
    return absl::OkStatus();
  }

  absl::StatusOr<DeviceForm> FormOf(const OperatorCall& call) const override {
    return BoxForm{.boxes = {Box::Whole(*call.inputs[0])},
                   .pattern = fill_.elements()};
  }

 private:
  const std::vector<PadRule> rules_;
  const ValueType type_;
  const FillPattern fill_;
};

class Reshape final : public OperatorKernel {
 public:
  Reshape(const CheckedGraph& graph, uint32_t node)
      : shape_(ConstantArg<Ints>(graph, node, "shape")),
        axes_(ConstantArg<Ints>(graph, node, "axes")) {}

  absl::Status Shape(const OperatorCall& call, Tensor* result) const override {
    const Tensor& in = *call.inputs[0];
    ASSIGN_OR_RETURN(const auto shape,
                     Reshaped(WithSizesOf(shape_, axes_, in.dims),
                              static_cast<int64_t>(in.elements())));
    result->rank = static_cast<int>(shape.size());
    std::copy(shape.begin(), shape.end(), result->dims.begin());
    return absl::OkStatus();
  }

  absl::Status Run(const OperatorCall& call,
                   const Tensor& result) const override {
    memcpy(result.data, call.inputs[0]->data, result.bytes());
    return absl::OkStatus();
  }

 private:
  const Ints shape_, axes_;
};

class Length final : public OperatorKernel {
 public:
  Length(const CheckedGraph& graph, uint32_t node)
      : axis_(static_cast<size_t>(ConstantArg<int64_t>(graph, node, "axis"))) {}

  absl::Status Shape(const OperatorCall& call, Tensor* result) const override {
    result->rank = 0;
    const int64_t length = call.inputs[0]->dims[axis_];
    if (length <= std::numeric_limits<int32_t>::max()) return absl::OkStatus();
    return InvalidArgument("axis {} has {} elements, more than an int32 holds",
                           axis_, length);
  }

  absl::Status Run(const OperatorCall& call,
                   const Tensor& result) const override {
    const auto length = static_cast<int32_t>(call.inputs[0]->dims[axis_]);
    memcpy(result.data, &length, sizeof length);
    return absl::OkStatus();
  }

 private:
  const size_t axis_;
};

class Slice final : public OperatorKernel {
 public:
  Slice(const CheckedGraph& graph, uint32_t node, std::vector<SliceRule> rules)
      : rules_(std::move(rules)),
        offsets_{FloatArg::Of(graph, node, "offset_0"),
                 FloatArg::Of(graph, node, "offset_1")},
        policy_(ConstantArg<std::string>(graph, node, "out_of_bounds_policy")),
        fill_(ConstantArg<Floats>(graph, node, "fill_values"),
              InputType(graph, node, 0).dtype) {}

  absl::Status Shape(const OperatorCall& call, Tensor* result) const override {
    ASSIGN_OR_RETURN(const Box box, Part(call));
    result->rank = call.inputs[0]->rank;
    result->dims = box.extent;
    return absl::OkStatus();
  }

  absl::Status Run(const OperatorCall& call,
                   const Tensor& result) const override {
    const Tensor& in = *call.inputs[0];
    ASSIGN_OR_RETURN(const Box part, Part(call));
    const Box to = Inside(part, in);
    Box from = to;
    for (int axis = 0; axis < in.rank; ++axis) from.at[axis] += part.at[axis];
    if (to.extent != part.extent) fill_.Fill(result, Box::Whole(result));
    CopyBox(in, from, result, to.at);
    return absl::OkStatus();
  }

  absl::StatusOr<DeviceForm> FormOf(const OperatorCall& call) const override {
    ASSIGN_OR_RETURN(const Box part, Part(call));
    return BoxForm{.boxes = {Inside(part, *call.inputs[0])},
                   .shift = part.at,
                   .pattern = fill_.elements()};
  }

 private:
  // Returns the part of `part` that lies inside the input, as a box of the
  // result. An empty box is all zeros: its begin may be far away.
  static Box Inside(const Box& part, const Tensor& in) {
    Box inside = part;
    for (int axis = 0; axis < in.rank; ++axis) {
      const int64_t begin = std::max<int64_t>(part.at[axis], 0);
      const int64_t end =
          std::min(part.at[axis] + part.extent[axis], in.dims[axis]);
      if (end <= begin) return {};
      inside.at[axis] = begin - part.at[axis];
      inside.extent[axis] = end - begin;
    }
    return inside;
  }

  absl::StatusOr<Box> Part(const OperatorCall& call) const {
    const Tensor& in = *call.inputs[0];
    Box box = Box::Whole(in);
    for (size_t i = 0; i < rules_.size(); ++i) {
      double offset = 0;
      if (i < offsets_.size()) {
        ASSIGN_OR_RETURN(offset, offsets_[i].In(call));
      }
      const int axis = rules_[i].axis;
      const int64_t n = in.dims[axis];
      Interval part = rules_[i].Of(n, offset);
      if (policy_ == "error" && (part.begin < 0 || part.end > n))
        return InvalidArgument(
            "slice of the elements {} to {} of axis {}, which has {}",
            part.begin, part.end, axis, n);
      if (policy_ == "trim")
        part = {std::clamp<int64_t>(part.begin, 0, n),
                std::clamp<int64_t>(part.end, 0, n)};
      if (part.size() < 1)
        return InvalidArgument(
            "slice of the elements {} to {} of axis {}, which has {}: none",
            part.begin, part.end, axis, n);
      box.at[axis] = part.begin;
      box.extent[axis] = part.size();
    }
    return box;
  }

  const std::vector<SliceRule> rules_;
  const std::array<FloatArg, 2> offsets_;
  const std::string policy_;
  const FillPattern fill_;
};

class Erase final : public OperatorKernel {
 public:
  Erase(const CheckedGraph& graph, uint32_t node, std::vector<int> axes)
      : axes_(std::move(axes)),
        anchor_(ConstantArg<Floats>(graph, node, "anchor")),
        shape_(ConstantArg<Floats>(graph, node, "shape")),
        normalized_(ConstantArg<bool>(graph, node, "normalized")),
        centered_(ConstantArg<bool>(graph, node, "centered_anchor")),
        place_{FloatArg::Of(graph, node, "y"), FloatArg::Of(graph, node, "x")},
        size_{FloatArg::Of(graph, node, "height"),
              FloatArg::Of(graph, node, "width")},
        enable_(SampleBool::Of(graph, node, "enable")),
        fill_(ConstantArg<Floats>(graph, node, "fill_value"),
              InputType(graph, node, 0).dtype) {}

  absl::Status Run(const OperatorCall& call,
                   const Tensor& result) const override {
    memcpy(result.data, call.inputs[0]->data, result.bytes());
    return ForEachBox(call, [&](const Box& box) { fill_.Fill(result, box); });
  }

  absl::StatusOr<DeviceForm> FormOf(const OperatorCall& call) const override {
    BoxForm form{.fills_inside = true, .pattern = fill_.elements()};
    RETURN_IF_ERROR(
        ForEachBox(call, [&](const Box& box) { form.boxes.push_back(box); }));
    return form;
  }

 private:
  template <class Use>
  absl::Status ForEachBox(const OperatorCall& call, Use use) const {
    if (!enable_.In(call)) return absl::OkStatus();
    const Tensor& image = *call.inputs[0];
    const size_t axes = axes_.size();
    for (size_t first = 0; first < shape_.size(); first += axes) {
      Box box = Box::Whole(image);
      for (size_t i = 0; i < axes; ++i)
        Side(image, axes_[i], anchor_.empty() ? 0 : anchor_[first + i],
             shape_[first + i], &box);
      use(box);
    }
    Box box = Box::Whole(image);
    for (size_t i = 0; i < std::min<size_t>(axes, 2); ++i) {
      ASSIGN_OR_RETURN(const double place, place_[i].In(call));
      ASSIGN_OR_RETURN(const double size, size_[i].In(call));
      Side(image, axes_[i], place, size, &box);
    }
    use(box);
    return absl::OkStatus();
  }

  // DALI's rule, in float as in DALI: both ends are rounded towards zero.
  void Side(const Tensor& tensor, int axis, double anchor, double shape,
            Box* box) const {
    const int64_t n = tensor.dims[axis];
    const float unit = normalized_ ? static_cast<float>(n) : 1.0f;
    const float size = static_cast<float>(shape) * unit;
    float from = static_cast<float>(anchor) * unit;
    if (centered_) from -= size / 2;
    const auto most = static_cast<float>(n);
    const auto at = [&](float x) {
      return std::min(static_cast<int64_t>(std::clamp(x, 0.0f, most)), n);
    };
    box->at[axis] = at(from);
    box->extent[axis] = at(from + size) - at(from);
  }

  const std::vector<int> axes_;
  const Floats anchor_, shape_;
  const bool normalized_, centered_;
  const std::array<FloatArg, 2> place_, size_;
  const SampleBool enable_;
  const FillPattern fill_;
};

int RankOfInput(const CheckedGraph& graph, uint32_t node) {
  return static_cast<int>(InputType(graph, node, 0).shape.size());
}

KernelOr MakePad(const CheckedGraph& graph, uint32_t node) {
  ASSIGN_OR_RETURN(auto rules,
                   PadRules(graph.graph.nodes[node], RankOfInput(graph, node)));
  return std::make_shared<Pad>(graph, node, std::move(rules));
}

KernelOr MakeSlice(const CheckedGraph& graph, uint32_t node) {
  ASSIGN_OR_RETURN(auto rules, SliceRules(graph.graph.nodes[node],
                                          RankOfInput(graph, node)));
  return std::make_shared<Slice>(graph, node, std::move(rules));
}

KernelOr MakeErase(const CheckedGraph& graph, uint32_t node) {
  const int rank = RankOfInput(graph, node);
  ASSIGN_OR_RETURN(
      auto axes, AxesOf(graph.graph.nodes[node], rank, std::max(1, rank - 1)));
  return std::make_shared<Erase>(graph, node, std::move(axes));
}

constexpr KernelMaker kPlaceMakers[] = {
    {"pad", MakePad},     {"length", Make<Length>}, {"reshape", Make<Reshape>},
    {"slice", MakeSlice}, {"erase", MakeErase},
};

}  // namespace

constinit const KernelTable kPlaceKernels = kPlaceMakers;

}  // namespace leat::worker
