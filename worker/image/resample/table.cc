// SPDX-License-Identifier: Apache-2.0
#include "worker/image/resample/table.h"

#include <algorithm>
#include <cmath>

#include "worker/image/formulas/exact_math.h"

namespace leat::worker {
namespace {

constexpr int kMinBits = 14;
constexpr int kMaxBits = 21;  // 255 × 2 × 2^21 is under 2^31
constexpr double kMaxWeight = 32'767;

double Evaluate(Filter filter, double x) {
  x = x < 0 ? -x : x;
  switch (filter) {
    case Filter::kNearest:
      return 1;
    case Filter::kLinear:
      return x < 1 ? 1 - x : 0;
    case Filter::kCubic: {  // Keys, a = -0.5
      constexpr double a = -0.5;
      if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
      if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
      return 0;
    }
    case Filter::kLanczos3:
      return x < 3 ? ExactSinc(x) * ExactSinc(x / 3) : 0;
    case Filter::kGaussian:
      return x < 1 ? ExactExp(-4 * x * x) : 0;
  }
  return 0;
}

double Support(Filter filter) {
  switch (filter) {
    case Filter::kNearest:
      return 0.5;
    case Filter::kLinear:
    case Filter::kGaussian:
      return 1;
    case Filter::kCubic:
      return 2;
    case Filter::kLanczos3:
      return 3;
  }
  return 1;
}

}  // namespace

std::optional<Filter> ParseFilter(std::string_view name) {
  if (name == "nearest") return Filter::kNearest;
  if (name == "linear") return Filter::kLinear;
  if (name == "cubic") return Filter::kCubic;
  if (name == "lanczos3") return Filter::kLanczos3;
  if (name == "gaussian") return Filter::kGaussian;
  return std::nullopt;
}

// Computes the exact weights of one output.
void ResampleTable::Weigh(double centre, double scale, int in, Filter filter,
                          Entry* entry, double* weights) {
  if (filter == Filter::kNearest) {
    *entry = {std::clamp(static_cast<int>(centre), 0, in - 1), 1};
    weights[0] = 1;
    largest_ = 1;
    return;
  }
  const double support = Support(filter) * scale;
  const double shrink = 1 / scale;
  const int begin =
      std::max(0, static_cast<int>(std::floor(centre - support + 0.5)));
  const int end =
      std::min(in, static_cast<int>(std::floor(centre + support + 0.5)));
  double sum = 0;
  for (int i = begin; i < end; ++i) {
    weights[i - begin] = Evaluate(filter, (i - centre + 0.5) * shrink);
    sum += weights[i - begin];
  }
  const double normal = 1 / sum;
  *entry = {begin, end - begin};
  for (int i = 0; i < entry->taps; ++i) {
    weights[i] *= normal;
    largest_ = std::max(largest_, std::fabs(weights[i]));
  }
}

namespace {

// Returns how much wider the support is than that of the filter itself.
double Widening(double step, bool antialias) {
  return antialias && step > 1 ? step : 1;
}

}  // namespace

int ResampleTable::MostTaps(const ResampleAxis& axis) {
  if (axis.filter == Filter::kNearest) return 1;
  const double scale = Widening(axis.step(), axis.antialias);
  return std::min(
      axis.in,
      2 * static_cast<int>(std::ceil(Support(axis.filter) * scale)) + 1);
}

void ResampleTable::Build(const ResampleAxis& axis, int first, int count,
                          bool reversed) {
  const Contents contents{axis, first, count, reversed};
  if (contents == contents_) return;
  contents_ = contents;
  const int in = axis.in;
  const double step = axis.step();
  const double scale = Widening(step, axis.antialias);
  exact_stride_ = MostTaps(axis);
  entries_.resize(count);
  exact_.resize(static_cast<size_t>(count + 1) * exact_stride_);
  largest_ = 0;
  max_taps_ = 0;
  // All outputs are weighed, since the precision must not depend on which of
  // them are wanted.
  for (int position = 0; position < axis.out; ++position) {
    const int from_first = position - first;
    const bool wanted = from_first >= 0 && from_first < count;
    const int i = !wanted    ? count
                  : reversed ? count - 1 - from_first
                             : from_first;
    Entry other;
    Entry& entry = wanted ? entries_[i] : other;
    Weigh(axis.begin + (position + 0.5) * step, scale, in, axis.filter, &entry,
          exact_.data() + static_cast<size_t>(i) * exact_stride_);
    max_taps_ = std::max(max_taps_, entry.taps);
  }
  bits_ = kMinBits;
  while (bits_ < kMaxBits &&
         largest_ * static_cast<double>(1 << (bits_ + 1)) <= kMaxWeight - 1)
    ++bits_;

  stride_ = (max_taps_ + 1) & ~1;
  size_ = count;
  weights_.assign(static_cast<size_t>(count) * stride_, 0);
  max_taps_ = 0;
  first_input_ = in;
  end_input_ = 0;
  copies_ = copies_a_run_ = true;
  for (int i = 0; i < count; ++i) {
    Quantise(i);
    const Entry& entry = entries_[i];
    max_taps_ = std::max(max_taps_, entry.taps);
    first_input_ = std::min(first_input_, entry.start);
    end_input_ = std::max(end_input_, entry.start + entry.taps);
    copies_ = copies_ && entry.taps == 1;
    copies_a_run_ =
        copies_ && copies_a_run_ && entry.start == entries_[0].start + i;
  }
  for (int i = 0; i < count; ++i) KeepInside(i);
  PadToFour();
}

// SIMD reads max_taps() inputs for every entry: one near the end is moved back,
// with zeros before its weights.
void ResampleTable::KeepInside(int i) {
  Entry& entry = entries_[i];
  const int shift = entry.start + max_taps_ - end_input_;
  if (shift <= 0) return;
  int16_t* weights = weights_.data() + static_cast<size_t>(i) * stride_;
  std::copy_backward(weights, weights + entry.taps,
                     weights + entry.taps + shift);
  std::fill(weights, weights + shift, 0);
  entry.start -= shift;
  entry.taps += shift;
}

// Computes the integer weights of entry i; zeros at its ends are cut off.
void ResampleTable::Quantise(int i) {
  const double* exact = exact_.data() + static_cast<size_t>(i) * exact_stride_;
  int16_t* weights = weights_.data() + static_cast<size_t>(i) * stride_;
  Entry& entry = entries_[i];
  const double one = 1 << bits_;
  double running = 0;
  int64_t before = 0;
  for (int t = 0; t < entry.taps; ++t) {
    running += exact[t];
    const int64_t now =
        t + 1 == entry.taps
            ? int64_t{1} << bits_
            : static_cast<int64_t>(std::floor(running * one + 0.5));
    weights[t] = static_cast<int16_t>(now - before);
    before = now;
  }
  int leading = 0;
  while (weights[leading] == 0) ++leading;
  while (weights[entry.taps - 1] == 0) --entry.taps;
  if (leading == 0) return;
  std::copy(weights + leading, weights + entry.taps, weights);
  std::fill(weights + entry.taps - leading, weights + entry.taps, 0);
  entry.start += leading;
  entry.taps -= leading;
}

void ResampleTable::PadToFour() {
  while (entries_.size() % 4 != 0) {
    entries_.push_back(entries_.back());
    const size_t end = weights_.size();
    weights_.resize(end + stride_);
    std::copy_n(weights_.begin() + static_cast<ptrdiff_t>(end) - stride_,
                stride_, weights_.begin() + static_cast<ptrdiff_t>(end));
  }
}

size_t ResampleTable::scratch_bytes() const {
  return entries_.capacity() * sizeof(Entry) +
         weights_.capacity() * sizeof(int16_t) +
         exact_.capacity() * sizeof(double);
}

}  // namespace leat::worker
