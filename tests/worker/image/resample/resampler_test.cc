// SPDX-License-Identifier: Apache-2.0
#include "worker/image/resample/resampler.h"

#include <cmath>
#include <cstring>
#include <random>
#include <type_traits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/image/formulas/exact_math.h"
#include "worker/image/resample/geometry.h"
#include "worker/image/resample/kernels.h"
#include "worker/image/resample/table.h"

namespace leat::worker {
namespace {

constexpr Filter kFilters[] = {Filter::kNearest, Filter::kLinear,
                               Filter::kCubic, Filter::kLanczos3,
                               Filter::kGaussian};

TEST(ExactMath, AgreesWithTheCLibraryToTheLastBits) {
  for (int i = -3000; i <= 3000; ++i) {
    const double x = i / 700.0;
    EXPECT_NEAR(ExactExp(x) / std::exp(x), 1, 1e-15);
    EXPECT_NEAR(ExactLog(std::exp(x)), x, 2e-15);
    EXPECT_NEAR(ExactSinPi(x), std::sin(M_PI * x), 1e-14);
  }
  EXPECT_EQ(ExactExp(0), 1);
  EXPECT_EQ(ExactLog(1), 0);
  EXPECT_EQ(ExactSinPi(3), 0);
}

TEST(ResampleTable, WeightsSumToExactlyOne) {
  ResampleTable table;
  for (const Filter filter : kFilters)
    for (const bool antialias : {false, true})
      for (const auto& [in, out] :
           {std::pair{1, 1}, std::pair{1, 9}, std::pair{9, 1},
            std::pair{500, 224}, std::pair{224, 224}, std::pair{100, 224},
            std::pair{4000, 3}, std::pair{7, 5}, std::pair{65500, 1},
            std::pair{2, 65500}}) {
        table.Build(ResampleAxis::Whole(in, out, filter, antialias), 0, out,
                    false);
        ASSERT_EQ(table.size(), out);
        ASSERT_GE(table.first_input(), 0);
        ASSERT_LE(table.end_input(), in);
        for (int i = 0; i < out; ++i) {
          const auto& entry = table.entry(i);
          int32_t sum = 0;
          for (int t = 0; t < table.stride(); ++t) {
            sum += table.weights(i)[t];
            const bool zero = table.weights(i)[t] == 0;
            ASSERT_TRUE(zero || t < entry.taps);
          }
          ASSERT_EQ(sum, 1 << table.bits());
          ASSERT_GE(entry.start, table.first_input());
          ASSERT_LE(entry.start + table.max_taps(), table.end_input());
        }
      }
}

// All of an axis, or a region of it.
ResampleAxis RandomAxis(int in, int out, Filter filter, bool antialias,
                        std::mt19937& random) {
  ResampleAxis axis = ResampleAxis::Whole(in, out, filter, antialias);
  if (random() % 2 == 0) return axis;
  const double unit = in / 4294967296.0;
  axis.begin = static_cast<double>(random()) * unit;
  axis.end = axis.begin + (in - axis.begin) * 0.999 + 1e-3;
  return axis;
}

TEST(ResampleTable, ARegionIsWeighedWhereItLies) {
  // Four outputs of 1.5 pixels each from 2.25 on: middles at 3, 4.5, 6, 7.5.
  const ResampleAxis axis{9, 4, 2.25, 8.25, Filter::kLinear, false};
  ResampleTable table;
  table.Build(axis, 0, 4, false);
  const double one = 1 << table.bits();
  EXPECT_EQ(table.entry(0).start, 2);
  EXPECT_NEAR(table.weights(0)[0] / one, 0.5, 1e-4);
  EXPECT_NEAR(table.weights(0)[1] / one, 0.5, 1e-4);
  EXPECT_EQ(table.entry(1).taps, 1);
  EXPECT_EQ(table.entry(1).start, 4);
  EXPECT_EQ(table.end_input(), 8);
  table.Build({9, 4, 2.25, 8.25, Filter::kLinear, true}, 0, 4, false);
  EXPECT_EQ(table.first_input(), 2);  // 3 - 1.5 rounded up
  EXPECT_EQ(table.end_input(), 9);    // beyond the region, but on the axis
  table.Build({9, 2, 2.25, 8.25, Filter::kNearest, true}, 0, 2, false);
  EXPECT_EQ(table.entry(0).start, 3);
  EXPECT_EQ(table.entry(1).start, 6);
}

TEST(ResampleTable, APartHasTheWeightsOfTheWhole) {
  std::mt19937 random(1);
  ResampleTable whole, part;
  const auto weight = [](const ResampleTable& table, int i, int input) {
    const auto& entry = table.entry(i);
    const bool inside =
        input >= entry.start && input < entry.start + entry.taps;
    return inside ? table.weights(i)[input - entry.start] : 0;
  };
  for (int round = 0; round < 300; ++round) {
    const int in = 1 + static_cast<int>(random() % 60);
    const int out = 1 + static_cast<int>(random() % 60);
    const int first = static_cast<int>(random() % out);
    const int count = 1 + static_cast<int>(random() % (out - first));
    const Filter filter = kFilters[random() % std::size(kFilters)];
    const bool reversed = random() % 2 == 0;
    const ResampleAxis axis = RandomAxis(in, out, filter, true, random);
    whole.Build(axis, 0, out, false);
    part.Build(axis, first, count, reversed);
    ASSERT_EQ(part.bits(), whole.bits());
    for (int i = 0; i < count; ++i)
      for (int input = 0; input < in; ++input)
        ASSERT_EQ(weight(part, i, input),
                  weight(whole, first + (reversed ? count - 1 - i : i), input));
  }
}

TEST(ResampleTable, SameSizeCopies) {
  ResampleTable table;
  for (const Filter filter : kFilters) {
    table.Build(ResampleAxis::Whole(100, 100, filter, true), 10, 50, false);
    EXPECT_TRUE(table.copies_a_run());
    EXPECT_EQ(table.first_input(), 10);
    EXPECT_EQ(table.end_input(), 60);
  }
}

// Resizes an image in the plainest way from a table's weights.
std::vector<uint8_t> Reference(const std::vector<uint8_t>& image, int width,
                               int channels, const ResampleTable& h,
                               const ResampleTable& v) {
  const int out_width = h.size(),
            in_height = static_cast<int>(image.size() / (width * channels));
  std::vector<uint8_t> middle, out;
  const auto weigh = [](const ResampleTable& table, int i, auto value) {
    int64_t sum = int64_t{1} << (table.bits() - 1);
    for (int t = 0; t < table.entry(i).taps; ++t)
      sum += int64_t{table.weights(i)[t]} * value(table.entry(i).start + t);
    return static_cast<uint8_t>(
        std::clamp<int64_t>(sum >> table.bits(), 0, 255));
  };
  for (int y = 0; y < in_height; ++y)
    for (int x = 0; x < out_width; ++x)
      for (int c = 0; c < channels; ++c)
        middle.push_back(weigh(h, x, [&](int i) {
          return image[(y * width + i) * channels + c];
        }));
  for (int y = 0; y < v.size(); ++y)
    for (int x = 0; x < out_width * channels; ++x)
      out.push_back(weigh(
          v, y, [&](int i) { return middle[i * out_width * channels + x]; }));
  return out;
}

std::vector<const Kernels*> AllKernels() {
  std::vector<const Kernels*> all = {&ScalarKernels()};
  if (Avx2Kernels() != nullptr) all.push_back(Avx2Kernels());
  return all;
}

TEST(Resampler, EveryInstructionSetGivesTheReferencesBits) {
  std::mt19937 random(2);
  for (int round = 0; round < 400; ++round) {
    const int channels = round % 4 == 0 ? 1 : 3;
    const int width = 1 + static_cast<int>(random() % 90);
    const int height = 1 + static_cast<int>(random() % 90);
    const int out_width = 1 + static_cast<int>(random() % 60);
    const int out_height = 1 + static_cast<int>(random() % 60);
    const Filter filter = kFilters[random() % std::size(kFilters)];
    const bool antialias = random() % 4 != 0, reversed = random() % 2 == 0;
    const auto across = RandomAxis(width, out_width, filter, antialias, random);
    const auto down = RandomAxis(height, out_height, filter, antialias, random);
    std::vector<uint8_t> image(static_cast<size_t>(width) * height * channels);
    // Extremes overshoot most.
    for (uint8_t& value : image)
      value = random() % 2 ? (random() % 2 ? 255 : 0)
                           : static_cast<uint8_t>(random());
    for (const Kernels* kernels : AllKernels()) {
      WorkingMemory memory{ImageLimits()};
      Resampler resampler(*kernels);
      auto& h = resampler.horizontal();
      auto& v = resampler.vertical();
      h.Build(across, 0, out_width, reversed);
      v.Build(down, 0, out_height, false);
      const auto want = Reference(image, width, channels, h, v);
      std::vector<uint8_t> out(want.size() + 1, 77);
      ASSERT_TRUE(
          resampler.Start(channels, out.data(), out_width * channels, &memory)
              .ok());
      const size_t step = channels == 1 ? 1 : 4;
      const size_t pitch = width * step + kRowPadding;
      std::vector<uint8_t> rows(pitch * 5);
      for (int y = v.first_input(); y < v.end_input();) {
        const int count =
            std::min(1 + static_cast<int>(random() % 2) * 3, v.end_input() - y);
        // An odd number of rows comes only at the end.
        const int fed = y + count == v.end_input() ? count : (count + 1) & ~1;
        const int rows_now = std::min(fed, v.end_input() - y);
        for (int i = 0; i < rows_now; ++i)
          for (int x = h.first_input(); x < h.end_input(); ++x)
            memcpy(rows.data() + i * pitch + (x - h.first_input()) * step,
                   &image[((y + i) * width + x) * channels], channels);
        resampler.Feed({rows.data(), pitch, rows_now});
        y += rows_now;
      }
      ASSERT_EQ(out.back(), 77);
      out.pop_back();
      ASSERT_EQ(out, want) << kernels->name << " " << width << "x" << height
                           << " -> " << out_width << "x" << out_height;
    }
  }
}

TEST(Kernels, CompactAndExpandNeverWriteBeyond) {
  for (const Kernels* kernels : AllKernels())
    for (size_t pixels = 0; pixels < 40; ++pixels) {
      std::vector<uint8_t> in(4 * pixels + kRowPadding), out(3 * pixels + 1, 9);
      for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<uint8_t>(i);
      kernels->compact(in.data(), pixels, out.data());
      ASSERT_EQ(out.back(), 9);
      std::vector<uint8_t> again(4 * pixels + kRowPadding);
      kernels->expand(out.data(), pixels, again.data());
      for (size_t i = 0; i < pixels; ++i)
        ASSERT_EQ(memcmp(&in[4 * i], &again[4 * i], 3), 0);
    }
}

TEST(RandomWindow, IsUniformInAreaAndLogUniformInAspect) {
  const RandomWindow window{.log_least_aspect = ExactLog(0.75),
                            .log_greatest_aspect = ExactLog(4.0 / 3)};
  const ImageSize image{1000, 1000};
  double area = 0, aspect = 0, x = 0;
  constexpr int kSamples = 20'000;
  for (int i = 0; i < kSamples; ++i) {
    SampleRng rng(1, 2, i, 3);
    const Rect rect = window.Draw(image, &rng);
    ASSERT_GE(rect.x, 0);
    ASSERT_GE(rect.y, 0);
    ASSERT_LE(rect.x + rect.width, image.width);
    ASSERT_LE(rect.y + rect.height, image.height);
    area += static_cast<double>(rect.width * rect.height) / 1e6;
    aspect += std::log(static_cast<double>(rect.width) / rect.height);
    if (rect.width < 1000)
      x += static_cast<double>(rect.x) / (1000 - rect.width);
  }
  // Large windows of an odd aspect are refused: given |ln aspect| = l, areas up
  // to e^-l are taken; the mean area is 0.4778.
  EXPECT_NEAR(area / kSamples, 0.4778, 0.006);
  EXPECT_NEAR(aspect / kSamples, 0, 0.01);
  EXPECT_NEAR(x / kSamples, 0.5, 0.02);
}

TEST(RandomWindow, FallsBackToTheCentralWindow) {
  const RandomWindow window{.least_area = 0.9,
                            .log_least_aspect = ExactLog(0.75),
                            .log_greatest_aspect = ExactLog(4.0 / 3)};
  SampleRng rng(1, 1, 1, 1);
  EXPECT_EQ(window.Draw({100, 1000}, &rng), (Rect{433, 0, 133, 100}));
  EXPECT_EQ(window.Draw({1000, 75}, &rng), (Rect{0, 450, 75, 100}));
  EXPECT_EQ(window.Draw({1, 65500}, &rng).height, 1);
}

// Code that confuses the stored image and the turned one does not compile.
template <class A, class B>
constexpr bool kMixes = std::is_constructible_v<A, B> ||
                        std::is_assignable_v<A&, B> || requires(A a, B b) {
  a == b;
};
static_assert(!kMixes<StoredRect, TurnedRect>);
static_assert(!kMixes<TurnedRect, StoredRect>);
static_assert(!kMixes<StoredSize, TurnedSize>);
static_assert(!std::is_convertible_v<Rect, StoredRect>);
static_assert(std::is_convertible_v<StoredRect, Rect>);

TEST(Orientation, WindowsGoBackToTheStoredImage) {
  const StoredSize stored{30, 50};
  for (int exif = 1; exif <= 8; ++exif) {
    const auto orientation = Orientation::Of(exif);
    const TurnedSize turned = orientation.Turned(stored);
    const Rect whole =
        orientation.Stored({0, 0, turned.width, turned.height}, stored);
    EXPECT_EQ(whole, (Rect{0, 0, 50, 30}));
  }
  EXPECT_EQ(Orientation::Of(6).Stored({1, 2, 3, 4}, stored),
            (Rect{2, 26, 4, 3}));
}

}  // namespace
}  // namespace leat::worker
