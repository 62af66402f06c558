// SPDX-License-Identifier: Apache-2.0
//
// Resampling by rule "dali": vectors from DALI, a slow reference in double, and
// the loops compared with the formulas.
#include <algorithm>
#include <cmath>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/image/operators/support.h"
#include "worker/image/formulas/dali_pixel.h"
#include "worker/image/resample/dali_loops.h"
#include "worker/image/resample/dali_table.h"

namespace leat::worker {
namespace {

using testing::Apply;
using testing::Args;
using testing::Array;
using testing::Floats;
using testing::Ints;
using testing::Text;

constexpr const char* kFilterNames[] = {"linear", "nearest", "cubic",
                                        "lanczos3", "gaussian"};

int Below(std::mt19937& random, int n) {
  return static_cast<int>(random() % static_cast<unsigned>(n));
}

Array RandomImage(int64_t height, int64_t width, int64_t channels,
                  std::mt19937& random) {
  std::vector<uint8_t> values(static_cast<size_t>(height * width * channels));
  for (uint8_t& value : values) value = static_cast<uint8_t>(random());
  return Array::Of<uint8_t>({height, width, channels}, values);
}

// Resamples [0, 10, … 70] by the table.
std::vector<float> OfTens(int out, bool antialias) {
  DaliTable table;
  table.SetAxis(ResampleAxis::Whole(8, out, Filter::kLinear, antialias));
  table.Build(false, false, 0, out, false);
  std::vector<float> sums;
  for (int x = 0; x < out; ++x) {
    float sum = 0;
    for (int t = 0; t < table.taps(); ++t) {
      const int at = std::clamp(table.starts()[x] + t, 0, 7);
      sum = AddDaliTap(sum, static_cast<float>(10 * at),
                       table.weights()[x * table.taps() + t]);
    }
    sums.push_back(sum);
  }
  return sums;
}

TEST(DaliTable, GivesDalisResults) {
  using ::testing::FloatNear;
  using ::testing::Pointwise;
  const auto expect = [](const std::vector<float>& got,
                         const std::vector<float>& want) {
    EXPECT_THAT(got, Pointwise(FloatNear(2e-4f), want));
  };
  expect(OfTens(4, true), {6.25f, 25, 45, 63.75f});
  expect(OfTens(4, false), {5, 25, 45, 65});
  expect(OfTens(3, true), {9.7674f, 35, 60.2326f});
  expect(OfTens(12, true), {0, 5, 11.6667f, 18.3333f, 25, 31.6667f, 38.3333f,
                            45, 51.6667f, 58.3333f, 65, 70});
}

TEST(DaliTable, WeightsSumToOneAndTheInputsTappedExist) {
  std::mt19937 random(3);
  for (int round = 0; round < 600; ++round) {
    const int in = 1 + Below(random, round % 3 == 0 ? 5 : 900);
    const int out = 1 + Below(random, round % 5 == 0 ? 5 : 900);
    ResampleAxis axis = ResampleAxis::Whole(
        in, out, *ParseFilter(kFilterNames[round % 5]), round % 2 == 0);
    if (Below(random, 2) == 0) {
      axis.begin = in * 0.3 * Below(random, 100) / 100;
      axis.end = in - in * 0.3 * Below(random, 100) / 100;
    }
    DaliTable table;
    table.SetAxis(axis);
    const int first = Below(random, out);
    const int count = 1 + Below(random, out - first);
    table.Build(Below(random, 2) == 0, Below(random, 2) == 0, first, count,
                Below(random, 2) == 0);
    ASSERT_EQ(table.size(), count);
    ASSERT_GE(table.first_input(), 0);
    ASSERT_LE(table.end_input(), in);
    for (int x = 0; x < count; ++x) {
      double sum = 0;
      for (int t = 0; t < table.taps(); ++t)
        sum += table.weights()[x * table.taps() + t];
      ASSERT_NEAR(sum, 1, 1e-5);
      const int start = table.starts()[x];
      ASSERT_GE(start, table.first_input() - table.taps_before());
      ASSERT_LE(start + table.taps(), table.end_input() + table.taps_behind());
    }
  }
}

// --- A reference in double --------------------------------------------------

double FilterAt(const std::string& name, double x) {
  if (name == "gaussian") {  // by its points
    const auto point = [](double i) {
      const double at = i / 32 - 1;
      return i < 0 || i > 64 ? 0 : std::exp(-4 * at * at);
    };
    const double at = (x + 1) * 32, left = std::floor(at);
    return point(left) + (at - left) * (point(left + 1) - point(left));
  }
  x = std::fabs(x);
  if (name == "linear") return std::max(0.0, 1 - x);
  if (name == "cubic")
    return x >= 2  ? 0
           : x > 1 ? -0.5 * x * x * x + 2.5 * x * x - 4 * x + 2
                   : 1.5 * x * x * x - 2.5 * x * x + 1;
  if (x == 0) return 1;
  if (x >= 3) return 0;
  const double a = M_PI * x;
  return 3 * std::sin(a) * std::sin(a / 3) / (a * a);
}

double Radius(const std::string& name) {
  return name == "cubic" ? 2 : name == "lanczos3" ? 3 : 1;
}

// Resamples a row, with `stride` from element to element.
std::vector<double> Resampled(const std::vector<double>& in, int out,
                              double begin, double end,
                              const std::string& filter, bool antialias) {
  const int n = static_cast<int>(in.size());
  const double step = (end - begin) / out;
  const double wider = antialias && step > 1 ? step : 1;
  std::vector<double> result;
  for (int x = 0; x < out; ++x) {
    const double centre = begin + (x + 0.5) * step;
    const double reach = Radius(filter) * wider;
    double sum = 0, weights = 0;
    const int first = static_cast<int>(std::ceil(centre - 0.5 - reach));
    for (int i = first; i < first + std::ceil(2 * reach); ++i) {
      const double weight = FilterAt(filter, (i + 0.5 - centre) / wider);
      sum += weight * in[static_cast<size_t>(std::clamp(i, 0, n - 1))];
      weights += weight;
    }
    result.push_back(sum / weights);
  }
  return result;
}

TEST(DaliResize, IsTheReferencesRounded) {
  std::mt19937 random(1);
  for (int round = 0; round < 150; ++round) {
    const int height = 1 + Below(random, 40), width = 1 + Below(random, 40);
    const int rows = 1 + Below(random, 40), columns = 1 + Below(random, 40);
    const int channels = 1 + Below(random, 4);
    const std::string filter = kFilterNames[round % 4 == 0 ? 0 : 1 + round % 4];
    if (filter == "nearest") continue;
    const bool antialias = Below(random, 2) == 0;
    const Array in = RandomImage(height, width, channels, random);
    Args args = {{"size", Ints{rows, columns}},
                 {"interpolation", filter},
                 {"antialias", antialias},
                 {"rule", Text("dali")}};
    double top = 0, bottom = height, left = 0, right = width;
    if (Below(random, 2) == 0) {
      top = height * 0.125;
      bottom = height * 0.875;
      left = width * 0.25;
      right = width * 0.75;
      args["roi_start"] = Floats{top, left};
      args["roi_end"] = Floats{bottom, right};
    }
    const auto result = Apply("resize", args, {in});
    ASSERT_TRUE(result.ok()) << Message(result.status());
    const auto got = result->Values<uint8_t>(), from = in.Values<uint8_t>();
    for (int c = 0; c < channels; ++c) {
      std::vector<std::vector<double>> across;
      for (int y = 0; y < height; ++y) {
        std::vector<double> row;
        for (int x = 0; x < width; ++x)
          row.push_back(from[(y * width + x) * channels + c]);
        across.push_back(
            Resampled(row, columns, left, right, filter, antialias));
      }
      for (int x = 0; x < columns; ++x) {
        std::vector<double> column;
        for (const auto& row : across) column.push_back(row[x]);
        column = Resampled(column, rows, top, bottom, filter, antialias);
        for (int y = 0; y < rows; ++y)
          // Between its points a filter is linear. A gaussian's end is not 0: a
          // tap that lies exactly there may count or not.
          ASSERT_NEAR(got[(y * columns + x) * channels + c],
                      std::clamp(column[y], 0.0, 255.0),
                      filter == "gaussian" ? 8 : 0.9)
              << filter << " " << height << " x " << width << " to " << rows
              << " x " << columns;
      }
    }
  }
}

// Both rules of nearest, for images of up to four channels, mirrored.
TEST(Resize, NearestTakesThePixelThatCoversThePlace) {
  std::mt19937 random(2);
  for (int round = 0; round < 120; ++round) {
    const int height = 1 + Below(random, 40), width = 1 + Below(random, 40);
    // Powers of two: no position is rounded.
    const int rows = 1 << Below(random, 6), columns = 1 << Below(random, 6);
    const int channels = 1 + Below(random, 4);
    const bool across = Below(random, 2) == 0, down = Below(random, 2) == 0;
    const Array in = RandomImage(height, width, channels, random);
    const Node flip = {
        "flip", {}, {{"horizontal", Value(across)}, {"vertical", down}}};
    const auto result =
        Apply({{"resize",
                {},
                {{"size", Ints{rows, columns}},
                 {"interpolation", Text("nearest")},
                 {"rule", Text(round % 2 == 0 ? "dali" : "pillow")}}},
               flip},
              {in});
    ASSERT_TRUE(result.ok()) << Message(result.status());
    const auto got = result->Values<uint8_t>(), from = in.Values<uint8_t>();
    for (int y = 0; y < rows; ++y)
      for (int x = 0; x < columns; ++x)
        for (int c = 0; c < channels; ++c) {
          const int v = down ? rows - 1 - y : y;
          const int u = across ? columns - 1 - x : x;
          const int sy = (2 * v + 1) * height / (2 * rows);
          const int sx = (2 * u + 1) * width / (2 * columns);
          ASSERT_EQ(got[(y * columns + x) * channels + c],
                    from[(sy * width + sx) * channels + c]);
        }
  }
}

// A part of a resized image is the part, mirrored or not.
TEST(DaliResize, OfAChainIsTheSameAsStepByStep) {
  std::mt19937 random(4);
  for (int round = 0; round < 100; ++round) {
    const Array in = RandomImage(5 + Below(random, 60), 5 + Below(random, 60),
                                 1 + Below(random, 4), random);
    const Node resize = {
        "resize",
        {},
        {{"size", Ints{8 + Below(random, 40), 8 + Below(random, 40)}},
         {"min_filter", Text(kFilterNames[Below(random, 5)])},
         {"mag_filter", Text(kFilterNames[Below(random, 5)])},
         {"rule", Text("dali")}}};
    const Node crop = {"crop",
                       {},
                       {{"size", Ints{1 + Below(random, 8), 7}},
                        {"pos_y", Below(random, 100) / 100.0},
                        {"pos_x", Below(random, 100) / 100.0}}};
    const Node flip = {"flip",
                       {},
                       {{"horizontal", Value(Below(random, 2) == 0)},
                        {"vertical", Value(Below(random, 2) == 0)}}};
    const auto fused = Apply({resize, crop, flip}, {in});
    ASSERT_TRUE(fused.ok()) << Message(fused.status());
    Array step = in;
    for (const Node& node : {resize, crop, flip}) {
      const auto next = Apply({node}, {step});
      ASSERT_TRUE(next.ok()) << Message(next.status());
      step = *next;
    }
    ASSERT_EQ(*fused, step) << CanonicalText(resize);
  }
}

// --- Loops ------------------------------------------------------------------

TEST(DaliLoops, AreTheFormulasBitForBit) {
  std::mt19937 random(5);
  const auto number = [&] {
    return static_cast<float>(Below(random, 60000) - 20000) / 137.0f;
  };
  for (int round = 0; round < 60; ++round) {
    const auto count = static_cast<size_t>(1 + Below(random, 300));
    const int taps = 1 + Below(random, 9);
    std::vector<float> weights(static_cast<size_t>(taps) * count);
    for (float& weight : weights) weight = number() / 400;
    std::vector<std::vector<uint8_t>> bytes(taps);
    std::vector<std::vector<float>> floats(taps);
    std::vector<const uint8_t*> byte_rows;
    std::vector<const float*> float_rows;
    for (int t = 0; t < taps; ++t) {
      for (size_t i = 0; i < count; ++i) {
        bytes[t].push_back(static_cast<uint8_t>(random()));
        floats[t].push_back(number());
      }
      byte_rows.push_back(bytes[t].data());
      float_rows.push_back(floats[t].data());
    }
    const size_t step = static_cast<size_t>(1 + Below(random, 4));
    std::vector<float> row((count + taps) * step + kDaliPadding);
    for (float& value : row) value = number();
    std::vector<int32_t> starts(count);
    for (int32_t& start : starts)
      start = Below(random, static_cast<int>(count));
    for (const DaliLoops* loops : {&PlainDaliLoops(), &BestDaliLoops()}) {
      std::vector<float> sums(count), wide(count);
      std::vector<uint8_t> finished(count), narrow(count);
      std::vector<float> across(count * step + kDaliPadding);
      loops->down_bytes(byte_rows.data(), weights.data(), taps, count,
                        sums.data());
      loops->down_floats(float_rows.data(), weights.data(), taps, count,
                         finished.data());
      loops->widen(bytes[0].data(), count, wide.data());
      loops->finish(floats[0].data(), count, narrow.data());
      loops->across(row.data(), starts.data(), weights.data(), taps, count,
                    step, step, across.data());
      for (size_t i = 0; i < count; ++i) {
        float of_bytes = 0, of_floats = 0;
        for (int t = 0; t < taps; ++t) {
          of_bytes = AddDaliTap(of_bytes, bytes[t][i], weights[t]);
          of_floats = AddDaliTap(of_floats, floats[t][i], weights[t]);
        }
        ASSERT_EQ(BitsOf(sums[i]), BitsOf(of_bytes));
        ASSERT_EQ(finished[i], FinishDaliTaps(of_floats));
        ASSERT_EQ(wide[i], static_cast<float>(bytes[0][i]));
        ASSERT_EQ(narrow[i], FinishDaliTaps(floats[0][i]));
        for (size_t c = 0; c < step; ++c) {
          float sum = 0;
          for (int t = 0; t < taps; ++t)
            sum = AddDaliTap(sum, row[(starts[i] + t) * step + c],
                             weights[i * taps + t]);
          ASSERT_EQ(BitsOf(across[i * step + c]), BitsOf(sum));
        }
      }
    }
  }
}

TEST(DaliPixel, RoundsToTheNearest) {
  EXPECT_EQ(FinishDaliTaps(-3.0f), 0);
  EXPECT_EQ(FinishDaliTaps(0.5f), 0);
  EXPECT_EQ(FinishDaliTaps(0.50001f), 1);
  EXPECT_EQ(FinishDaliTaps(1.5f), 2);
  EXPECT_EQ(FinishDaliTaps(254.5f), 254);
  EXPECT_EQ(FinishDaliTaps(254.51f), 255);
  EXPECT_EQ(FinishDaliTaps(1e9f), 255);
  EXPECT_EQ(FinishDaliBlend(-3.0f), 0);
  EXPECT_EQ(FinishDaliBlend(0.5f), 1);
  EXPECT_EQ(FinishDaliBlend(0.49999997f), 0);
  EXPECT_EQ(FinishDaliBlend(254.5f), 255);
  EXPECT_EQ(FinishDaliBlend(1e9f), 255);
  EXPECT_EQ(DaliFloor(-0.25f), -1);
  EXPECT_EQ(DaliFloor(-2.0f), -2);
  EXPECT_EQ(DaliCeil(-0.25f), 0);
  EXPECT_EQ(DaliCeil(2.25f), 3);
  EXPECT_EQ(DaliNearest(-1.5f, 4), 0);
  EXPECT_EQ(DaliNearest(4.0f, 4), 3);
}

// 256 columns of a row are a run: positions are added up within it only.
TEST(DaliWarp, PlacesOfARowGoOnFromRunToRun) {
  const DaliMap map{1.1f, 0.3f, 2.7f, -0.1f, 0.9f, 5.3f};
  std::vector<float> ramp(4 * 1000);
  for (size_t i = 0; i < ramp.size(); ++i)
    ramp[i] = static_cast<float>(i % 1000);
  const Array in = Array::Of<float>({4, 1000, 1}, ramp);
  const Floats matrix = {map.xx, 0, map.x0, 0, 1, 0};
  const auto result = Apply(
      "warp_affine",
      {{"matrix", matrix}, {"rule", Text("dali")}, {"size", Ints{1, 600}}},
      {in});
  ASSERT_TRUE(result.ok()) << Message(result.status());
  const auto got = result->Values<float>();
  float place = map.x0 + map.xx * 0.5f;
  const float run = map.xx * 256.0f;
  for (const int begin : {0, 256, 512}) {
    const float at = place - 0.5f, left = std::floor(at);
    const float rest = at - left;
    EXPECT_EQ(got[begin], left * (1.0f - rest) + (left + 1) * rest);
    place += run;
  }
}

}  // namespace
}  // namespace leat::worker
