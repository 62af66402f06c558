// SPDX-License-Identifier: Apache-2.0
//
// Random numbers, and noise: each takes words of the sample's generator in
// order; how many depends on the number of elements alone, not on the results.
#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <vector>

#include "core/tensor/value_types.h"
#include "worker/image/base/simd.h"
#include "worker/image/formulas/draws.h"
#include "worker/image/formulas/exact_math.h"
#include "worker/image/loops/values.h"
#include "worker/image/operators/args.h"

namespace leat::worker {
namespace {

struct Normals {
  LEAT_BODY static void Run(const uint32_t* words, size_t pairs, float mean,
                            float deviation, float* values) {
    for (size_t i = 0; i < pairs; ++i) {
      float x, y;
      NormalPair(words[2 * i], words[2 * i + 1], &x, &y);
      values[2 * i] = OneNan(values[2 * i] + (mean + deviation * x));
      values[2 * i + 1] = OneNan(values[2 * i + 1] + (mean + deviation * y));
    }
  }
};

void AddNormals(const uint32_t* words, size_t pairs, float mean,
                float deviation, float* values) {
  static const auto run = HasAvx2() ? Avx2<Normals>::Run : Plain<Normals>::Run;
  run(words, pairs, mean, deviation, values);
}

class Normal : public ScalarKernel {
 public:
  Normal(const CheckedGraph& graph, uint32_t node)
      : mean_(FloatArg::Of(graph, node, "mean")),
        deviation_(FloatArg::Of(graph, node, "stddev")) {}

  absl::Status Run(const OperatorCall& call,
                   const Tensor& result) const override {
    ASSIGN_OR_RETURN(const double mean, mean_.In(call));
    ASSIGN_OR_RETURN(const double deviation, deviation_.In(call));
    SampleRng rng = call.rng;
    const uint32_t a = rng.NextU32(), b = rng.NextU32();
    float x, unused;
    NormalPair(a, b, &x, &unused);
    const auto value = static_cast<float>(mean + deviation * x);
    memcpy(result.data, &value, sizeof value);
    return absl::OkStatus();
  }

 private:
  FloatArg mean_, deviation_;
};

class ChoiceOf : public ScalarKernel {
 public:
  ChoiceOf(const CheckedGraph& graph, uint32_t node)
      : bytes_(SizeOf(graph.types[node][0].dtype)) {
    double sum = 0;
    for (const double chance :
         ConstantArg<std::vector<double>>(graph, node, "probabilities"))
      sums_.push_back(sum += chance);
    WithComputed(graph.types[node][0].dtype, [&]<class T>(T) {
      for (const double value :
           ConstantArg<std::vector<double>>(graph, node, "values")) {
        const T element = FromConstant<T>(value);
        const auto* const first = reinterpret_cast<const std::byte*>(&element);
        elements_.insert(elements_.end(), first, first + sizeof element);
      }
    });
  }

  absl::Status Run(const OperatorCall& call,
                   const Tensor& result) const override {
    SampleRng rng = call.rng;
    const double at = rng.NextDouble() * sums_.back();
    const auto it = std::upper_bound(sums_.begin(), sums_.end(), at);
    const size_t i = std::min<size_t>(it - sums_.begin(), sums_.size() - 1);
    memcpy(result.data, &elements_[i * bytes_], bytes_);
    return absl::OkStatus();
  }

 private:
  const size_t bytes_;  // of an element
  std::vector<double> sums_;
  std::vector<std::byte> elements_;  // the values, in the result's type
};

// Noise: maps a value to one of the same type, in blocks of floats.
class Noise : public OperatorKernel {
 public:
 protected:
  // Calls use(values, count, words) with `count` values and their words.
  template <class Use>
  static void InBlocks(const OperatorCall& call, const Tensor& result,
                       size_t words_each, Use use) {
    alignas(32) float values[kBlock];
    alignas(32) uint32_t words[2 * kBlock];
    SampleRng rng = call.rng;
    const Tensor& in = *call.inputs[0];
    const size_t count = in.elements(), bytes = SizeOf(in.dtype);
    for (size_t at = 0; at < count; at += kBlock) {
      const size_t some = std::min(kBlock, count - at);
      const size_t even = some + some % 2;  // whole pairs
      ConvertValues(in.data + at * bytes, in.dtype, some, DType::kFloat32,
                    reinterpret_cast<std::byte*>(values));
      if (even > some) values[some] = 0;
      for (size_t i = 0; i < even * words_each; ++i) words[i] = rng.NextU32();
      use(values, some, words);
      ConvertValues(reinterpret_cast<const std::byte*>(values), DType::kFloat32,
                    some, result.dtype, result.data + at * bytes);
    }
  }
};

class GaussianNoise : public Noise {
 public:
  GaussianNoise(const CheckedGraph& graph, uint32_t node)
      : mean_(FloatArg::Of(graph, node, "mean")),
        deviation_(FloatArg::Of(graph, node, "stddev")) {}

  absl::Status Run(const OperatorCall& call,
                   const Tensor& result) const override {
    ASSIGN_OR_RETURN(const double mean, mean_.In(call));
    ASSIGN_OR_RETURN(const double deviation, deviation_.In(call));
    InBlocks(call, result, 1,
             [&](float* values, size_t count, const uint32_t* words) {
               AddNormals(words, (count + 1) / 2, static_cast<float>(mean),
                          static_cast<float>(deviation), values);
             });
    return absl::OkStatus();
  }

  absl::StatusOr<DeviceForm> FormOf(const OperatorCall& call) const override {
    ASSIGN_OR_RETURN(const double mean, mean_.In(call));
    ASSIGN_OR_RETURN(const double deviation, deviation_.In(call));
    return NoiseForm{.kind = NoiseKind::kNormal,
                     .origin = call.rng.origin(),
                     .mean = static_cast<float>(mean),
                     .deviation = static_cast<float>(deviation)};
  }

 private:
  FloatArg mean_, deviation_;
};

// FewEvents for every byte, with its sums computed in advance.
class EventsOfBytes {
 public:
  // A factor of 0 makes no noise.
  explicit EventsOfBytes(float factor) {
    for (int x = 0; x < 256 && factor > 0; ++x) {
      first_[x] = sums_.size();
      const float mean = static_cast<float>(x) / factor;
      if (!(mean < kManyEvents)) continue;
      double chance = NoEvents(mean), sum = chance;
      sums_.push_back(sum);
      for (int k = 1; k < 4 * kManyEvents && sum < kLargest; ++k) {
        chance = chance * static_cast<double>(mean) / k;
        sums_.push_back(sum += chance);
      }
      sums_.back() = 2;  // ends every search
    }
  }

  float Of(uint8_t x, uint32_t word) const {
    const double u = (static_cast<double>(word) + 0.5) * 0x1.0p-32;
    const double* sum = &sums_[first_[x]];
    int events = 0;
    while (u >= sum[events]) ++events;
    return static_cast<float>(events);
  }

 private:
  static constexpr double kLargest = 1 - 0x1.0p-33;  // the largest u

  std::vector<double> sums_;
  std::array<size_t, 256> first_{};
};

class ShotNoise : public Noise {
 public:
  ShotNoise(const CheckedGraph& graph, uint32_t node)
      : factor_(FloatArg::Of(graph, node, "factor")),
        bytes_(graph.types[node][0].dtype == DType::kUint8) {
    if (const auto factor = factor_.constant(); factor && bytes_)
      events_.emplace(static_cast<float>(*factor));
  }

  absl::Status Run(const OperatorCall& call,
                   const Tensor& result) const override {
    ASSIGN_OR_RETURN(const double given, factor_.In(call));
    const auto factor = static_cast<float>(given);
    if (!(factor > 0)) {  // a float would lose digits of integers
      memcpy(result.data, call.inputs[0]->data, result.bytes());
      return absl::OkStatus();
    }
    std::optional<EventsOfBytes> own;
    if (bytes_ && !events_) own.emplace(factor);
    const EventsOfBytes* const events = !bytes_   ? nullptr
                                        : events_ ? &*events_
                                                  : &*own;
    InBlocks(call, result, 2,
             [&](float* values, size_t count, const uint32_t* words) {
               for (size_t i = 0; i < count; ++i)
                 values[i] = OneNan(
                     factor * Events(events, values[i], factor, &words[2 * i]));
             });
    return absl::OkStatus();
  }

  absl::StatusOr<DeviceForm> FormOf(const OperatorCall& call) const override {
    ASSIGN_OR_RETURN(const double factor, factor_.In(call));
    return NoiseForm{.kind = NoiseKind::kShot,
                     .origin = call.rng.origin(),
                     .factor = static_cast<float>(factor)};
  }

 private:
  // `bytes`: not nullptr if the values are bytes.
  static float Events(const EventsOfBytes* bytes, float value, float factor,
                      const uint32_t* words) {
    const float x = value > 0 ? value : 0;
    const float mean = x / factor;
    if (!(mean < kManyEvents)) return ManyEvents(mean, words[0], words[1]);
    if (bytes != nullptr) return bytes->Of(static_cast<uint8_t>(x), words[0]);
    return FewEvents(mean, NoEvents(mean), words[0]);
  }

  FloatArg factor_;
  bool bytes_;
  std::optional<EventsOfBytes> events_;  // for a constant factor
};

class SaltAndPepper : public OperatorKernel {
 public:
  SaltAndPepper(const CheckedGraph& graph, uint32_t node)
      : prob_(FloatArg::Of(graph, node, "prob")),
        salt_part_(FloatArg::Of(graph, node, "salt_vs_pepper")),
        per_channel_(ConstantArg<bool>(graph, node, "per_channel")) {
    const DType dtype = graph.types[node][0].dtype;
    const auto value = [&](const char* name, double otherwise) {
      const auto& given = ConstantArg<std::vector<double>>(graph, node, name);
      return given.empty() ? otherwise : given[0];
    };
    const double least = IsFloat(dtype)           ? -1
                         : dtype == DType::kUint8 ? 0
                                                  : -LargestOf(dtype) - 1;
    Store(value("salt_val", LargestOf(dtype)), dtype, salt_);
    Store(value("pepper_val", least), dtype, pepper_);
  }

  absl::Status Run(const OperatorCall& call,
                   const Tensor& result) const override {
    ASSIGN_OR_RETURN(const NoiseForm form, NoiseOf(call));
    const uint64_t noisy = form.noisy, salted = form.salted;
    const size_t group = form.group;
    const Tensor& in = *call.inputs[0];
    memcpy(result.data, in.data, in.bytes());
    const size_t bytes = SizeOf(in.dtype);
    SampleRng rng = call.rng;
    std::byte* const end = result.data + in.bytes();
    for (std::byte* at = result.data; at < end; at += group * bytes) {
      const uint32_t word = rng.NextU32();
      if (word >= noisy) continue;
      for (size_t i = 0; i < group; ++i)
        memcpy(at + i * bytes, word < salted ? salt_ : pepper_, bytes);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<DeviceForm> FormOf(const OperatorCall& call) const override {
    return NoiseOf(call);
  }

 private:
  absl::StatusOr<NoiseForm> NoiseOf(const OperatorCall& call) const {
    ASSIGN_OR_RETURN(const double prob, prob_.In(call));
    ASSIGN_OR_RETURN(const double salt_part, salt_part_.In(call));
    const Tensor& in = *call.inputs[0];
    NoiseForm form{.kind = NoiseKind::kSaltAndPepper,
                   .origin = call.rng.origin(),
                   .noisy = static_cast<uint64_t>(prob * 0x1p32),
                   .salted = static_cast<uint64_t>(prob * salt_part * 0x1p32),
                   .group = per_channel_ || in.rank < 3
                                ? 1
                                : static_cast<uint32_t>(in.dims[in.rank - 1])};
    memcpy(form.salt, salt_, sizeof salt_);
    memcpy(form.pepper, pepper_, sizeof pepper_);
    return form;
  }

  static void Store(double value, DType dtype, std::byte* out) {
    WithComputed(dtype, [&]<class T>(T) {
      const T stored = FromConstant<T>(value);
      memcpy(out, &stored, sizeof stored);
    });
  }

  FloatArg prob_, salt_part_;
  bool per_channel_;
  std::byte salt_[8] = {}, pepper_[8] = {};
};

constexpr KernelMaker kRandomMakers[] = {
    {"normal", Make<Normal>},
    {"choice", Make<ChoiceOf>},
    {"noise_gaussian", Make<GaussianNoise>},
    {"noise_shot", Make<ShotNoise>},
    {"noise_salt_and_pepper", Make<SaltAndPepper>},
};

}  // namespace

constinit const KernelTable kRandomKernels = kRandomMakers;

}  // namespace leat::worker
