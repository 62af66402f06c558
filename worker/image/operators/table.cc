// SPDX-License-Identifier: Apache-2.0
//
// lookup_table, one_hot and standardize.
#include <algorithm>
#include <array>
#include <cstring>

#include "core/tensor/pointwise.h"
#include "worker/image/formulas/statistics.h"
#include "worker/image/loops/box_copy.h"
#include "worker/image/loops/values.h"
#include "worker/image/operators/args.h"

namespace leat::worker {
namespace {

// Stores a constant as an element of `dtype`.
void StoreAs(double value, DType dtype, std::byte* out) {
  WithComputed(dtype, [&]<class T>(T) {
    const T element = FromConstant<T>(value);
    memcpy(out, &element, sizeof element);
  });
}

class Lookup : public OperatorKernel {
 public:
  Lookup(const CheckedGraph& graph, uint32_t node) {
    const auto& keys = ConstantArg<std::vector<int64_t>>(graph, node, "keys");
    const auto& values =
        ConstantArg<std::vector<double>>(graph, node, "values");
    const DType dtype = graph.types[node][0].dtype;
    const auto otherwise = ConstantArg<double>(graph, node, "default_value");
    const size_t bytes = SizeOf(dtype);
    // A byte needs no bounds check, since every byte has a place; the last
    // place serves all other keys.
    places_ =
        std::max<int64_t>(*std::max_element(keys.begin(), keys.end()), 255) + 1;
    table_.resize((places_ + 1) * bytes);
    for (size_t i = 0; i <= places_; ++i)
      StoreAs(otherwise, dtype, &table_[i * bytes]);
    for (size_t i = 0; i < keys.size(); ++i)
      StoreAs(values[i], dtype, &table_[keys[i] * bytes]);
  }

  absl::Status Run(const OperatorCall& call,
                   const Tensor& result) const override {
    const Tensor& in = *call.inputs[0];
    switch (SizeOf(result.dtype)) {
      case 1:
        Find<uint8_t>(in, result.data);
        break;
      case 2:
        Find<uint16_t>(in, result.data);
        break;
      case 4:
        Find<uint32_t>(in, result.data);
        break;
      default:
        Find<uint64_t>(in, result.data);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<DeviceForm> FormOf(const OperatorCall&) const override {
    return LookupForm{table_, places_};
  }

 private:
  template <class Out>
  void Find(const Tensor& in, std::byte* out) const {
    const size_t count = in.elements();
    const std::byte* const table = table_.data();
    if (SizeOf(in.dtype) == 1) {
      for (size_t i = 0; i < count; ++i)
        memcpy(out + i * sizeof(Out),
               table + static_cast<size_t>(in.data[i]) * sizeof(Out),
               sizeof(Out));
      return;
    }
    const auto find = [&]<class In>(In) {
      for (size_t i = 0; i < count; ++i) {
        In key;
        memcpy(&key, in.data + i * sizeof(In), sizeof key);
        const auto place = static_cast<uint64_t>(key);  // huge if negative
        memcpy(out + i * sizeof(Out),
               table + std::min<uint64_t>(place, places_) * sizeof(Out),
               sizeof(Out));
      }
    };
    if (in.dtype == DType::kInt32)
      find(int32_t{});
    else
      find(int64_t{});
  }

  uint64_t places_;
  std::vector<std::byte> table_;
};

class OneHot : public OperatorKernel {
 public:
  OneHot(const CheckedGraph& graph, uint32_t node)
      : classes_(ConstantArg<int64_t>(graph, node, "num_classes")),
        shape_(graph.types[node][0].shape),
        on_(ElementOf(graph, node, "on_value")),
        off_(ElementOf(graph, node, "off_value")) {}

  absl::Status Shape(const OperatorCall& call, Tensor* result) const override {
    result->rank = static_cast<int>(shape_.size());
    const int kept = result->rank - 1;  // 0: a scalar, whatever its axes
    std::copy_n(call.inputs[0]->dims.begin(), kept, result->dims.begin());
    result->dims[kept] = classes_;
    return absl::OkStatus();
  }

  absl::Status Run(const OperatorCall& call,
                   const Tensor& result) const override {
    const Tensor& in = *call.inputs[0];
    const size_t bytes = on_.elements().size();
    const size_t count = in.elements();
    off_.FillAll(result);
    for (size_t i = 0; i < count; ++i) {
      int64_t at;
      Cast({in.dtype, 0, {}, in.data + i * SizeOf(in.dtype)}, DType::kInt64,
           reinterpret_cast<std::byte*>(&at));
      if (at < 0 || at >= classes_)
        return InvalidArgument("class {}, want 0 to {} (num_classes is {})", at,
                               classes_ - 1, classes_);
      const size_t place = i * static_cast<size_t>(classes_);
      memcpy(result.data + (place + static_cast<size_t>(at)) * bytes,
             on_.elements().data(), bytes);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<DeviceForm> FormOf(const OperatorCall&) const override {
    return OneHotForm{.off = off_.elements(),
                      .on = on_.elements(),
                      .classes = static_cast<uint64_t>(classes_)};
  }

 private:
  static FillPattern ElementOf(const CheckedGraph& graph, uint32_t node,
                               const char* name) {
    return {std::array{ConstantArg<double>(graph, node, name)},
            graph.types[node][0].dtype};
  }

  int64_t classes_;
  leat::Shape shape_;
  // One element each: as many as there are classes could be 80 MB.
  const FillPattern on_, off_;
};

constexpr auto kNothing = [](size_t, size_t) {};

class Standardize : public OperatorKernel {
 public:
  Standardize(const CheckedGraph& graph, uint32_t node)
      : mean_(ConstantArg<std::vector<double>>(graph, node, "mean")),
        deviation_(ConstantArg<std::vector<double>>(graph, node, "stddev")),
        ddof_(static_cast<double>(ConstantArg<int64_t>(graph, node, "ddof"))),
        epsilon_(ConstantArg<double>(graph, node, "epsilon")),
        scale_(ConstantArg<double>(graph, node, "scale")),
        shift_(static_cast<float>(ConstantArg<double>(graph, node, "shift"))) {
    for (const int64_t axis :
         ConstantArg<std::vector<int64_t>>(graph, node, "axes"))
      reduced_[axis] = true;
  }

  // A mean, a sum, a deviation and their floats for each group.
  uint64_t WorkBytes(const OperatorCall& call) const override {
    return NumGroups(*call.inputs[0]) *
           (2 * sizeof(double) + sizeof(StandardSum) + 2 * sizeof(float));
  }

  absl::Status Run(const OperatorCall& call,
                   const Tensor& result) const override {
    const Tensor& in = *call.inputs[0];
    const size_t groups = NumGroups(in), count = in.elements();
    const double each =
        static_cast<double>(count) / static_cast<double>(groups);
    std::vector<double> mean = Given(mean_, groups);
    std::vector<StandardSum> sums(groups);
    if (mean_.empty()) {
      ForEach(
          in, [&](float x, size_t group, size_t) { sums[group].Add(x); },
          kNothing);
      for (size_t g = 0; g < groups; ++g) mean[g] = sums[g].Of() / each;
    }
    std::vector<double> squares = Given(deviation_, groups);
    if (deviation_.empty()) {
      sums.assign(groups, {});
      ForEach(
          in,
          [&](float x, size_t group, size_t) {
            sums[group].Add(SquareOf(x, mean[group]));
          },
          kNothing);
      for (size_t g = 0; g < groups; ++g)
        squares[g] = VarianceOf(sums[g].Of(), each, ddof_);
    } else {
      for (double& s : squares) s *= s;
    }
    std::vector<float> means(groups), factors(groups);
    for (size_t g = 0; g < groups; ++g) {
      means[g] = static_cast<float>(mean[g]);
      factors[g] = StandardFactor(squares[g], epsilon_, scale_);
    }
    alignas(32) float values[kBlock];
    ForEach(
        in,
        [&](float x, size_t group, size_t i) {
          values[i] = Normalized(x, means[group], factors[group], shift_);
        },
        [&](size_t at, size_t some) {
          ConvertValues(reinterpret_cast<const std::byte*>(values),
                        DType::kFloat32, some, result.dtype,
                        result.data + at * SizeOf(result.dtype));
        });
    return absl::OkStatus();
  }

  absl::StatusOr<DeviceForm> FormOf(const OperatorCall&) const override {
    StandardForm form{.means = mean_,
                      .deviations = deviation_,
                      .ddof = ddof_,
                      .epsilon = epsilon_,
                      .scale = scale_,
                      .shift = shift_};
    for (size_t axis = 0; axis < reduced_.size(); ++axis)
      if (reduced_[axis]) form.reduced |= 1u << axis;
    return form;
  }

 private:
  size_t NumGroups(const Tensor& in) const {
    size_t groups = 1;
    for (int axis = 0; axis < in.rank; ++axis)
      if (!reduced_[axis]) groups *= static_cast<size_t>(in.dims[axis]);
    return groups;
  }

  static std::vector<double> Given(const std::vector<double>& given,
                                   size_t groups) {
    if (given.empty()) return std::vector<double>(groups, 0);
    return given.size() == 1 ? std::vector<double>(groups, given[0]) : given;
  }

  // Returns the group of element `at`.
  size_t GroupOf(const Tensor& in, size_t at) const {
    size_t group = 0, stride = 1;
    for (int axis = in.rank - 1; axis >= 0; --axis) {
      const auto size = static_cast<size_t>(in.dims[axis]);
      if (!reduced_[axis]) {
        group += at % size * stride;
        stride *= size;
      }
      at /= size;
    }
    return group;
  }

  // Calls use(x, group, i) for every element, in order, and flush(at, count)
  // after each block; i counts the elements of the block.
  template <class Use, class Flush>
  void ForEach(const Tensor& in, Use use, Flush flush) const {
    const int last = in.rank - 1;
    const auto width = static_cast<size_t>(in.dims[last]);
    const size_t groups = NumGroups(in), step = reduced_[last] ? 0 : 1;
    int kept = 0;  // axes at the end
    while (kept < in.rank && !reduced_[last - kept]) ++kept;
    // The groups follow each other in order, over and over.
    const bool periodic =
        std::all_of(reduced_.begin(), reduced_.begin() + (in.rank - kept),
                    [](bool reduced) { return reduced; });
    alignas(32) float block[kBlock];
    const size_t count = in.elements(), bytes = SizeOf(in.dtype);
    size_t group = 0, column = 0;
    for (size_t at = 0; at < count; at += kBlock) {
      const size_t some = std::min(kBlock, count - at);
      ConvertValues(in.data + at * bytes, in.dtype, some, DType::kFloat32,
                    reinterpret_cast<std::byte*>(block));
      for (size_t i = 0; i < some; ++i) {
        use(block[i], group, i);
        if (++column < width) {
          group += step;
          continue;
        }
        column = 0;
        if (!periodic)
          group = GroupOf(in, at + i + 1);
        else if (group += step; group == groups)
          group = 0;
      }
      flush(at, some);
    }
  }

  std::array<bool, kMaxAxes> reduced_{};
  std::vector<double> mean_, deviation_;
  double ddof_, epsilon_, scale_;
  float shift_;
};

constexpr KernelMaker kTableMakers[] = {
    {"lookup_table", Make<Lookup>},
    {"one_hot", Make<OneHot>},
    {"standardize", Make<Standardize>},
};

}  // namespace

constinit const KernelTable kTableKernels = kTableMakers;

}  // namespace leat::worker
