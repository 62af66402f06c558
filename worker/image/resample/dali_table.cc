// SPDX-License-Identifier: Apache-2.0
#include "worker/image/resample/dali_table.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "worker/image/formulas/dali_pixel.h"
#include "worker/image/formulas/exact_math.h"

namespace leat::worker {
namespace {

constexpr int kMostTaps = 8192;

template <size_t n, class Function>
std::array<float, n> Points(Function function) {
  std::array<float, n> points{};
  for (size_t i = 0; i < n; ++i)
    points[i] = static_cast<float>(
        function(2.0 * static_cast<double>(i) / (n - 1) - 1));
  return points;
}

// Returns the filter's points over [-1, 1].
std::span<const float> PointsOf(Filter filter) {
  static const std::array<float, 3> linear = {0, 1, 0};
  static const auto gaussian =
      Points<65>([](double x) { return ExactExp(-4 * x * x); });
  static const auto cubic = Points<129>([](double x) {
    x = 2 * std::fabs(x);
    if (x >= 2) return 0.0;
    return x > 1 ? ((-0.5 * x + 2.5) * x - 4) * x + 2
                 : (1.5 * x - 2.5) * x * x + 1;
  });
  static const auto lanczos3 = Points<193>([](double x) {
    return std::fabs(x) >= 1 ? 0 : ExactSinc(3 * x) * ExactSinc(x);
  });
  switch (filter) {
    case Filter::kNearest:
      return {};
    case Filter::kLinear:
      return linear;
    case Filter::kGaussian:
      return gaussian;
    case Filter::kCubic:
      return cubic;
    case Filter::kLanczos3:
      return lanczos3;
  }
  return {};
}

int Clamped(float x, int most) {
  return static_cast<int>(std::clamp(x, 0.0f, static_cast<float>(most)));
}

}  // namespace

// Makes the filter `support` wide.
void DaliTable::Rescale(float support) {
  const float before = scale_;
  scale_ = static_cast<float>(points_.size() - 1) / support;
  anchor_ = anchor_ * before / scale_;
}

void DaliTable::SetAxis(const ResampleAxis& axis) {
  axis_ = axis;
  const auto begin = static_cast<float>(axis.begin);
  const auto end = static_cast<float>(axis.end);
  const auto out = static_cast<float>(axis.out);
  const float size = end - begin;
  origin_ = begin;
  step_ = size / out;
  points_ = PointsOf(axis.filter);
  scale_ = 1;
  anchor_ = 0;
  taps_ = 1;
  if (!nearest()) {
    anchor_ = static_cast<float>(points_.size() - 1) * 0.5f;
    const float wider = axis.antialias && size > out ? size / out : 1.0f;
    switch (axis.filter) {
      case Filter::kCubic:
        Rescale(4);
        if (wider != 1) Rescale(2.0f * std::max(2.0f, 2.0f * size / out));
        break;
      case Filter::kLanczos3:
        Rescale(6);
        if (wider != 1) Rescale(2.0f * std::max(3.0f, 3.0f * size / out));
        break;
      case Filter::kGaussian: {
        constexpr double kRoot = 1.41421356237309504880;
        const auto sigma = static_cast<float>(wider * 0.5f / kRoot);
        Rescale(std::max(1.0f, static_cast<float>(4 * kRoot) * sigma));
        break;
      }
      default:
        Rescale(std::max(1.0f, 2.0f * wider));
    }
    const auto taps = [&] {
      return DaliCeil(static_cast<float>(points_.size() - 1) / scale_);
    };
    taps_ = taps();
    if (taps_ > kMostTaps) {
      Rescale(kMostTaps);
      taps_ = taps();
    }
  }
  from_ = Clamped(std::floor(begin - anchor_), axis.in);
  to_ = Clamped(std::ceil(end - anchor_ + static_cast<float>(taps_)), axis.in);
}

// Computes the taps and weights of output x.
void DaliTable::Weigh(int x, float origin, int shift, int32_t* start,
                      float* weights) {
  const float first = origin + (0.5f * step_ - 0.5f - anchor_);
  const float along = static_cast<float>(x) * step_;
  const float place = along + first;
  const int32_t at = DaliCeil(place);
  const float rest = static_cast<float>(at) - place;
  float sum = 0;
  for (int k = 0; k < taps_; ++k) {
    const float from_first = rest + static_cast<float>(k);
    weights[k] =
        DaliFilterAt(points_.data(), static_cast<int32_t>(points_.size()),
                     from_first * scale_);
    sum += weights[k];
  }
  if (sum != 0)
    for (int k = 0; k < taps_; ++k) weights[k] /= sum;
  *start = at + shift;
}

void DaliTable::Build(bool shifted, bool summed, int first, int count,
                      bool reversed) {
  const Contents contents{axis_, first, count, shifted, summed, reversed};
  if (contents == contents_) return;
  contents_ = contents;
  const int shift = shifted ? from_ : 0;
  const float origin = origin_ - static_cast<float>(shift);
  starts_.resize(static_cast<size_t>(count));
  weights_.resize(static_cast<size_t>(count) * taps_);
  float sum = origin + 0.5f * step_;  // the position of output x
  if (nearest() && summed)
    for (int x = 0; x < first; ++x) sum += step_;
  int least = axis_.in, end = 0;
  for (int i = 0; i < count; ++i) {
    const int x = first + i, at = reversed ? count - 1 - i : i;
    float* const weights = weights_.data() + static_cast<size_t>(at) * taps_;
    if (nearest()) {
      const float middle = static_cast<float>(x) + 0.5f;
      const float product = middle * step_;
      starts_[at] = std::clamp(
          DaliFloor(summed ? sum : origin + product) + shift, 0, axis_.in - 1);
      weights[0] = 1;
      sum += step_;
    } else {
      Weigh(x, origin, shift, &starts_[at], weights);
    }
    least = std::min(least, starts_[at]);
    end = std::max(end, starts_[at] + taps_);
  }
  first_input_ = std::clamp(least, 0, axis_.in - 1);
  end_input_ = std::clamp(end, first_input_ + 1, axis_.in);
  taps_before_ = std::max(0, first_input_ - least);
  taps_behind_ = std::max(0, end - end_input_);
}

size_t DaliTable::scratch_bytes() const {
  return starts_.capacity() * sizeof(int32_t) +
         weights_.capacity() * sizeof(float);
}

bool AcrossFirst(const DaliTable& across, const DaliTable& down) {
  const auto cost = [](const DaliTable& axis, float each, int64_t volume) {
    const auto pixels = static_cast<float>(volume);
    const float taps = each * (static_cast<float>(axis.taps()) * pixels);
    return taps + pixels * 3.0f;
  };
  const int64_t whole = int64_t{across.out()} * down.out();
  const float last_down = cost(down, 1.0f, whole);
  const float last_across = cost(across, 1.4f, whole);
  const float first_across =
      cost(across, 1.4f, int64_t{across.out()} * down.reach());
  const float first_down =
      cost(down, 1.0f, int64_t{across.reach()} * down.out());
  return first_across + last_down <= first_down + last_across;
}

}  // namespace leat::worker
