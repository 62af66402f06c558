// SPDX-License-Identifier: Apache-2.0
//
// beta, cutmix_paste and cutmix_share. `partner` has no kernel: it is in
// program/row_program.cc.
#include <cstring>

#include "worker/image/formulas/beta.h"
#include "worker/image/formulas/cutmix.h"
#include "worker/image/operators/args.h"
#include "worker/image/operators/image_sides.h"

namespace leat::worker {
namespace {

class Beta final : public ScalarKernel {
 public:
  Beta(const CheckedGraph& graph, uint32_t node)
      : alpha_(FloatArg::Of(graph, node, "alpha")),
        beta_(FloatArg::Of(graph, node, "beta")) {}

  absl::Status Run(const OperatorCall& call,
                   const Tensor& result) const override {
    ASSIGN_OR_RETURN(const double alpha, alpha_.In(call));
    ASSIGN_OR_RETURN(const double beta, beta_.In(call));
    SampleRng rng = call.rng;
    const auto value = static_cast<float>(BetaDraw(alpha, beta, &rng));
    memcpy(result.data, &value, sizeof value);
    return absl::OkStatus();
  }

 private:
  FloatArg alpha_, beta_;
};

// The arguments that place the box.
class CutMixArgs {
 public:
  CutMixArgs(const CheckedGraph& graph, uint32_t node)
      : lam_(FloatArg::Of(graph, node, "lam")),
        center_y_(FloatArg::Of(graph, node, "center_y")),
        center_x_(FloatArg::Of(graph, node, "center_x")) {}

  absl::StatusOr<Rect> BoxOf(const OperatorCall& call) const {
    CutMixDraw draw;
    ASSIGN_OR_RETURN(draw.lam, lam_.In(call));
    ASSIGN_OR_RETURN(draw.center_y, center_y_.In(call));
    ASSIGN_OR_RETURN(draw.center_x, center_x_.In(call));
    const Tensor& image = *call.inputs[0];
    return CutMixBox(image.dims[0], image.dims[1], draw);
  }

 private:
  FloatArg lam_, center_y_, center_x_;
};

class CutMix final : public OperatorKernel {
 public:
  CutMix(const CheckedGraph& graph, uint32_t node) : args_(graph, node) {}

  absl::Status Shape(const OperatorCall& call, Tensor* result) const override {
    const Tensor& image = *call.inputs[0];
    const Tensor& other = *call.inputs[1];
    if (image.dims != other.dims)
      return InvalidArgument(
          "images of {} × {} × {} and {} × {} × {}, want one size",
          image.dims[0], image.dims[1], image.dims[2], other.dims[0],
          other.dims[1], other.dims[2]);
    RETURN_IF_ERROR(CheckSides(image));
    return OperatorKernel::Shape(call, result);
  }

  absl::Status Run(const OperatorCall& call,
                   const Tensor& result) const override {
    ASSIGN_OR_RETURN(const Rect box, args_.BoxOf(call));
    const Tensor& image = *call.inputs[0];
    memcpy(result.data, image.data, image.bytes());
    const size_t pixel =
        static_cast<size_t>(image.dims[2]) * SizeOf(image.dtype);
    for (int64_t y = box.y; y < box.y + box.height; ++y) {
      const size_t at = static_cast<size_t>(y * image.dims[1] + box.x) * pixel;
      memcpy(result.data + at, call.inputs[1]->data + at,
             static_cast<size_t>(box.width) * pixel);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<DeviceForm> FormOf(const OperatorCall& call) const override {
    ASSIGN_OR_RETURN(const Rect box, args_.BoxOf(call));
    return PasteForm{
        {{box.y, box.x, 0}, {box.height, box.width, call.inputs[0]->dims[2]}}};
  }

 private:
  CutMixArgs args_;
};

class ShareOfCutMix final : public ScalarKernel {
 public:
  ShareOfCutMix(const CheckedGraph& graph, uint32_t node)
      : args_(graph, node) {}

  absl::Status Shape(const OperatorCall& call, Tensor* result) const override {
    RETURN_IF_ERROR(CheckSides(*call.inputs[0]));
    return ScalarKernel::Shape(call, result);
  }

  absl::Status Run(const OperatorCall& call,
                   const Tensor& result) const override {
    ASSIGN_OR_RETURN(const Rect box, args_.BoxOf(call));
    const Tensor& image = *call.inputs[0];
    const float share = CutMixShare(image.dims[0], image.dims[1], box);
    memcpy(result.data, &share, sizeof share);
    return absl::OkStatus();
  }

 private:
  CutMixArgs args_;
};

constexpr KernelMaker kBatchMakers[] = {
    {"beta", Make<Beta>},
    {"cutmix_paste", Make<CutMix>},
    {"cutmix_share", Make<ShareOfCutMix>},
};

}  // namespace

constinit const KernelTable kBatchKernels = kBatchMakers;

}  // namespace leat::worker
