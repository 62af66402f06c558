// SPDX-License-Identifier: Apache-2.0
//
// crop_mirror_normalize in one pass over the window. Every result is Normalized
// (core/tensor/pointwise.h) of one element; for a byte it is looked up.
//
// DALI's rules: out = scale × (in - mean) / std + shift; the window begins at
// round(pos × (size - crop)), halves away from zero; pos ≤ 1, and a crop that
// is larger than the image begins before it.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/status.h"
#include "core/tensor/pointwise.h"
#include "worker/image/operators/args.h"
#include "worker/image/operators/sample_bool.h"

namespace leat::worker {
namespace {

using Floats = std::vector<double>;

// The place of the result's window in the image, along one axis.
struct Span {
  int64_t at = 0;    // its first element; may be negative
  int64_t size = 0;  // of the result
};

class CropMirrorNormalize final : public OperatorKernel {
 public:
  CropMirrorNormalize(const CheckedGraph& graph, uint32_t node)
      : crop_(ConstantArg<std::vector<int64_t>>(graph, node, "crop")),
        pos_{FloatArg::Of(graph, node, "pos_y"),
             FloatArg::Of(graph, node, "pos_x")},
        mirror_(SampleBool::Of(graph, node, "mirror")),
        policy_(ConstantArg<std::string>(graph, node, "out_of_bounds_policy")),
        truncate_(ConstantArg<std::string>(graph, node, "rounding") ==
                  "truncate"),
        planes_(ConstantArg<std::string>(graph, node, "output_layout") ==
                "CHW"),
        in_channels_(InputType(graph, node, 0).shape[2]),
        channels_(graph.types[node][0].shape[planes_ ? 0 : 2]),
        dtype_(graph.types[node][0].dtype),
        shift_(static_cast<float>(ConstantArg<double>(graph, node, "shift"))) {
    const auto& mean = ConstantArg<Floats>(graph, node, "mean");
    const auto& std = ConstantArg<Floats>(graph, node, "std");
    const auto& fill = ConstantArg<Floats>(graph, node, "fill_values");
    const double scale = ConstantArg<double>(graph, node, "scale");
    const auto of = [](const Floats& list, int64_t c) {
      return list[list.size() == 1 ? 0 : c];
    };
    for (int64_t c = 0; c < in_channels_; ++c) {
      mean_.push_back(static_cast<float>(of(mean, c)));
      factor_.push_back(static_cast<float>(scale / of(std, c)));
      fill_.push_back(static_cast<float>(of(fill, c)));
    }
    // A channel has 256 results, one per byte, in the stored type.
    WithComputed(dtype_, [&]<class Out>(Out) {
      table_.resize(in_channels_ * 256 * sizeof(Out));
      for (int64_t c = 0; c < in_channels_; ++c)
        for (int x = 0; x < 256; ++x) {
          const Out out = At<Out>(static_cast<float>(x), c);
          memcpy(table_.data() + (c * 256 + x) * sizeof out, &out, sizeof out);
        }
    });
  }

  absl::Status Shape(const OperatorCall& call, Tensor* result) const override {
    Span spans[2];
    RETURN_IF_ERROR(Window(call, spans));
    result->rank = 3;
    if (planes_)
      result->dims = {channels_, spans[0].size, spans[1].size};
    else
      result->dims = {spans[0].size, spans[1].size, channels_};
    return absl::OkStatus();
  }

  absl::Status Run(const OperatorCall& call,
                   const Tensor& result) const override {
    Span spans[2];
    RETURN_IF_ERROR(Window(call, spans));
    const bool mirror = mirror_.In(call);
    const Tensor& in = *call.inputs[0];
    WithComputed(dtype_, [&]<class Out>(Out) {
      WithComputed(in.dtype, [&]<class In>(In) {
        for (int64_t y = 0; y < spans[0].size; ++y)
          Row<In, Out>(in, spans, y, mirror, result.data);
      });
    });
    return absl::OkStatus();
  }

  absl::StatusOr<DeviceForm> FormOf(const OperatorCall& call) const override {
    Span spans[2];
    RETURN_IF_ERROR(Window(call, spans));
    return WindowForm{.at = {spans[0].at, spans[1].at},
                      .size = {spans[0].size, spans[1].size},
                      .mirror = mirror_.In(call),
                      .means = mean_,
                      .factors = factor_,
                      .fills = fill_,
                      .shift = shift_,
                      .planes = planes_};
  }

 private:
  template <class Out>
  Out At(float x, int64_t channel) const {
    return Converted<Out>(
        Normalized(x, mean_[channel], factor_[channel], shift_));
  }

  absl::Status Window(const OperatorCall& call, Span spans[2]) const {
    const Tensor& in = *call.inputs[0];
    for (int i = 0; i < 2; ++i) {
      ASSIGN_OR_RETURN(const double pos, pos_[i].In(call));
      const int64_t n = in.dims[i];
      const int64_t size = crop_.empty() ? n : crop_[i];
      if (size > n && policy_ == "error")
        return InvalidArgument(
            "image of {} × {} (width × height) is smaller than the crop of {} "
            "× {}",
            in.dims[1], in.dims[0], crop_[1], crop_[0]);
      const double place = pos * static_cast<double>(n - size);
      const auto at = static_cast<int64_t>(truncate_ ? std::trunc(place)
                                                     : std::round(place));
      spans[i] = {at, size};
      if (size > n && policy_ == "trim") spans[i] = {0, n};
    }
    return absl::OkStatus();
  }

  template <class Out, class Value>
  static void Put(std::byte* out, int64_t index, Value value) {
    memcpy(out + index * static_cast<int64_t>(sizeof(Out)), &value,
           sizeof(Out));
  }

  template <class In, class Out>
  void Row(const Tensor& in, const Span spans[2], int64_t y, bool mirror,
           std::byte* out) const {
    const int64_t width = spans[1].size;
    const int64_t from_y = spans[0].at + y;
    const bool inside = from_y >= 0 && from_y < in.dims[0];
    // The part of the row that lies inside the image: [begin, end).
    const int64_t begin =
        inside ? std::clamp<int64_t>(-spans[1].at, 0, width) : width;
    const int64_t end =
        std::clamp<int64_t>(in.dims[1] - spans[1].at, begin, width);
    const std::byte* const row = in.data + (from_y * in.dims[1] + spans[1].at) *
                                               in_channels_ *
                                               static_cast<int64_t>(sizeof(In));
    const int64_t step = planes_ ? 1 : channels_;
    for (int64_t c = 0; c < channels_; ++c) {
      std::byte* const to = out + (planes_ ? (c * spans[0].size + y) * width
                                           : y * width * channels_ + c) *
                                      static_cast<int64_t>(sizeof(Out));
      const auto place = [&](int64_t x) {
        return (mirror ? width - 1 - x : x) * step;
      };
      if (c >= in_channels_) {
        for (int64_t x = 0; x < width; ++x)
          Put<Out>(to, place(x), Converted<Out>(0.0f));
        continue;
      }
      const Out fill = Converted<Out>(fill_[c]);
      for (int64_t x = 0; x < begin; ++x) Put<Out>(to, place(x), fill);
      for (int64_t x = end; x < width; ++x) Put<Out>(to, place(x), fill);
      if constexpr (std::is_same_v<In, uint8_t>) {
        Bytes<Out>(row, c, begin, end, mirror ? width - 1 : 0,
                   mirror ? -step : step, to);
      } else {
        for (int64_t x = begin; x < end; ++x) {
          In value;
          memcpy(
              &value,
              row + (x * in_channels_ + c) * static_cast<int64_t>(sizeof(In)),
              sizeof value);
          Put<Out>(to, place(x), At<Out>(ToFloat(value), c));
        }
      }
    }
  }

  // Writes channel c of the pixels [begin, end) of a row of bytes; pixel x goes
  // to (origin × |step|) + x × step.
  template <class Out>
  void Bytes(const std::byte* row, int64_t c, int64_t begin, int64_t end,
             int64_t origin, int64_t step, std::byte* to) const {
    const int64_t size = sizeof(Out);
    const std::byte* const table = table_.data() + c * 256 * size;
    const int64_t channels = in_channels_;
    const std::byte* from = row + begin * channels + c;
    std::byte* out =
        to + (origin * (step < 0 ? -step : step) + begin * step) * size;
    for (int64_t x = begin; x < end; ++x, from += channels, out += step * size)
      memcpy(out, table + static_cast<int64_t>(*from) * size, sizeof(Out));
  }

  const std::vector<int64_t> crop_;
  const std::array<FloatArg, 2> pos_;
  const SampleBool mirror_;
  const std::string policy_;
  const bool truncate_, planes_;
  const int64_t in_channels_, channels_;
  const DType dtype_;
  const float shift_;
  std::vector<float> mean_, factor_, fill_;
  std::vector<std::byte> table_;
};

constexpr KernelMaker kCropMirrorNormalizeMakers[] = {
    {"crop_mirror_normalize", Make<CropMirrorNormalize>},
};

}  // namespace

constinit const KernelTable kCropMirrorNormalizeKernels =
    kCropMirrorNormalizeMakers;

}  // namespace leat::worker
