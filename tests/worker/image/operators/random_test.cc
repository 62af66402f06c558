// SPDX-License-Identifier: Apache-2.0
//
// Distributions over 100,000 draws: one per sample, or one per element.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "gmock/gmock.h"
#include "tests/worker/image/operators/values_support.h"
#include "worker/image/formulas/draws.h"

namespace leat::worker::testing {
namespace {

using ::testing::HasSubstr;

constexpr int kDraws = 100'000;
// Kolmogorov and Smirnov, with a chance of 1e-4 of a wrong refusal.
constexpr double kLimit = 2.23;

double NormalBelow(double x) { return std::erfc(-x / std::sqrt(2.0)) / 2; }

// The distance of the draws' distribution from `below`, times √n. For discrete
// distributions, which lie within the limit more often.
double Distance(std::vector<float> draws,
                const std::function<double(double)>& below) {
  std::sort(draws.begin(), draws.end());
  const auto n = static_cast<double>(draws.size());
  double distance = 0;
  for (size_t i = 0; i < draws.size(); ++i) {
    if (i + 1 < draws.size() && draws[i + 1] == draws[i]) continue;
    distance = std::max(
        distance, std::fabs(static_cast<double>(i + 1) / n - below(draws[i])));
  }
  return distance * std::sqrt(n);
}

struct Moments {
  double mean = 0, variance = 0;
};
Moments Of(const std::vector<float>& draws) {
  Moments moments;
  for (const float x : draws) moments.mean += x;
  moments.mean /= static_cast<double>(draws.size());
  for (const float x : draws)
    moments.variance += (x - moments.mean) * (x - moments.mean);
  moments.variance /= static_cast<double>(draws.size());
  return moments;
}

// Returns one draw per sample.
std::vector<float> Draws(const char* op, Args args, uint64_t epoch = 0) {
  auto made = OneOperator::Make(op, std::move(args), {Array::Flag(true)}, 0);
  if (!made.ok()) {
    ADD_FAILURE() << Message(made.status());
    return {};
  }
  std::vector<float> draws;
  for (int i = 0; i < kDraws; ++i)
    draws.push_back(
        made->Run(static_cast<uint64_t>(i), epoch)->Values<float>()[0]);
  return draws;
}

Array Flat(float value) {
  return Array::Of<float>({kDraws}, std::vector<float>(kDraws, value));
}

TEST(Normal, IsNormallyDistributed) {
  const auto draws =
      Draws("normal", {{"mean", Value(3.0)}, {"stddev", Value(2.0)}});
  const Moments moments = Of(draws);
  EXPECT_NEAR(moments.mean, 3, 4 * 2 / std::sqrt(kDraws));
  EXPECT_NEAR(moments.variance, 4, 4 * 4 * std::sqrt(2.0 / kDraws));
  EXPECT_LT(Distance(draws, [](double x) { return NormalBelow((x - 3) / 2); }),
            kLimit);
}

TEST(Normal, DependsOnEpochAndSampleOnly) {
  auto made = OneOperator::Make("normal", {}, {Array::Flag(true)}, 0);
  ASSERT_TRUE(made.ok());
  const auto draw = [&](uint64_t sample, uint64_t epoch) {
    return made->Run(sample, epoch)->Values<float>()[0];
  };
  const float first = draw(5, 1);
  EXPECT_NE(first, draw(6, 1));
  EXPECT_NE(first, draw(5, 2));
  EXPECT_EQ(first, draw(5, 1));
}

TEST(Normal, TakesItsParametersFromTheSampleAndRefusesWrongOnes) {
  const Array mean = Array::Scalar(7), zero = Array::Scalar(0);
  const Args args = {{"mean", FieldOf(0)}, {"stddev", FieldOf(1)}};
  EXPECT_EQ(Computed("normal", args, {mean, zero}, 0).Values<float>()[0], 7);
  EXPECT_THAT(Refusal("normal", args, {mean, Array::Scalar(-1)}, 0),
              HasSubstr("stddev"));
}

TEST(Draws, LogarithmIsExactEnough) {
  for (uint32_t bits = 0x33000000u; bits < 0x40000000u; bits += 99'991)
    ASSERT_NEAR(LogOf(FloatOf(bits)), std::log(FloatOf(bits)),
                4e-7 * std::max(1.0f, std::fabs(std::log(FloatOf(bits)))));
}

TEST(Choice, FollowsItsProbabilities) {
  std::map<float, int> counts;
  for (const float x : Draws("choice", {{"values", Floats{1, 5, -2}},
                                        {"probabilities", Floats{.5, .3, .2}}}))
    ++counts[x];
  EXPECT_EQ(counts.size(), 3u);
  const auto near = [&](float value, double chance) {
    EXPECT_NEAR(counts[value], chance * kDraws,
                4 * std::sqrt(kDraws * chance * (1 - chance)));
  };
  near(1, .5);
  near(5, .3);
  near(-2, .2);
  counts.clear();
  for (const float x : Draws("choice", {{"values", Floats{0, 1, 2, 3}}}))
    ++counts[x];
  for (const float x : {0, 1, 2, 3}) near(x, .25);
  EXPECT_THAT(Refusal("choice",
                      {{"values", Floats{1, 2}}, {"probabilities", Floats{.5}}},
                      {Array::Flag(true)}, 0),
              HasSubstr("want 2"));
}

TEST(GaussianNoise, IsAddedAndNormallyDistributed) {
  const auto draws =
      Computed("noise_gaussian", {{"mean", Value(1.0)}, {"stddev", Value(3.0)}},
               {Flat(10)})
          .Values<float>();
  const Moments moments = Of(draws);
  EXPECT_NEAR(moments.mean, 11, 4 * 3 / std::sqrt(kDraws));
  EXPECT_NEAR(moments.variance, 9, 4 * 9 * std::sqrt(2.0 / kDraws));
  EXPECT_LT(Distance(draws, [](double x) { return NormalBelow((x - 11) / 3); }),
            kLimit);
  // Neighbours are not alike.
  double product = 0;
  for (int i = 0; i + 1 < kDraws; ++i)
    product += (draws[i] - 11) * (draws[i + 1] - 11);
  EXPECT_NEAR(product / kDraws / 9, 0, 4 / std::sqrt(kDraws));
}

TEST(GaussianNoise, OfABeginningIsThatOfTheWhole) {
  const auto noise = [](int64_t count) {
    return Computed("noise_gaussian", {},
                    {Array::Of<float>({count}, std::vector<float>(count, 0))})
        .Values<float>();
  };
  const auto whole = noise(3001), part = noise(1027);
  EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin()));
}

TEST(ShotNoise, IsPoissonDistributed) {
  for (const double mean : {0.3, 5.0, 40.0, 80.0, 900.0}) {
    const double factor = 2;
    const auto draws = Computed("noise_shot", {{"factor", Value(factor)}},
                                {Flat(static_cast<float>(mean * factor))})
                           .Values<float>();
    const Moments moments = Of(draws);
    EXPECT_NEAR(moments.mean, mean * factor,
                4 * factor * std::sqrt(mean / kDraws));
    EXPECT_NEAR(
        moments.variance, mean * factor * factor,
        4 * factor * factor * std::sqrt((2 * mean * mean + mean) / kDraws));
    std::vector<double> below;
    double sum = 0;
    for (int k = 0; k < 1200; ++k)
      below.push_back(
          sum += std::exp(k * std::log(mean) - mean - std::lgamma(k + 1.0)));
    EXPECT_LT(Distance(draws,
                       [&](double x) {
                         return below.at(static_cast<size_t>(x / factor));
                       }),
              kLimit)
        << mean;
  }
}

TEST(ShotNoise, OfBytesIsThatOfTheirFloats) {
  std::vector<uint8_t> bytes;
  std::vector<float> floats;
  for (int i = 0; i < 25'600; ++i) {
    bytes.push_back(static_cast<uint8_t>(i));
    floats.push_back(static_cast<float>(i % 256));
  }
  const int64_t count = 25'600;
  for (const double factor : {2.0, 20.0, 300.0}) {
    const auto of = [&](const Array& in, Value value) {
      return Computed("noise_shot", {{"factor", std::move(value)}},
                      {in, Array::Scalar(static_cast<float>(factor))});
    };
    const Array in = Array::Of<uint8_t>({count}, bytes);
    const auto got = of(in, Value(factor)).Values<uint8_t>();
    EXPECT_EQ(of(in, FieldOf(1)).Values<uint8_t>(), got);
    const auto want =
        of(Array::Of<float>({count}, floats), Value(factor)).Values<float>();
    for (int i = 0; i < count; ++i)
      ASSERT_EQ(got[i], Converted<uint8_t>(want[i]));
  }
}

TEST(ShotNoise, OfWhatIsNotFiniteIsSomething) {
  const Array odd = Array::Of<float>({4}, {INFINITY, -INFINITY, NAN, 3e38f});
  for (const double factor : {1e-30, 1.0, 1e30}) {
    const auto noisy =
        Computed("noise_shot", {{"factor", Value(factor)}}, {odd})
            .Values<float>();
    EXPECT_EQ(noisy[1], 0);
    EXPECT_EQ(noisy[2], 0);
  }
}

TEST(ShotNoise, KeepsZerosAndTheImageAtFactorZero) {
  const Array image = Array::Of<uint8_t>({4}, {0, 0, 9, 255});
  const auto noisy = Computed("noise_shot", {}, {image}).Values<uint8_t>();
  EXPECT_EQ(noisy[0] + noisy[1], 0);
  EXPECT_EQ(Computed("noise_shot", {{"factor", Value(0.0)}}, {image}), image);
  const Array large = Array::Of<int64_t>({2}, {(int64_t{1} << 53) + 1, -3});
  EXPECT_EQ(Computed("noise_shot", {{"factor", Value(0.0)}}, {large}), large);
}

TEST(SaltAndPepper, ReplacesWholePixelsOrValues) {
  const int64_t side = 200;
  const Array image = Array::Of<uint8_t>(
      {side, side, 3}, std::vector<uint8_t>(side * side * 3, 100));
  for (const bool per_channel : {false, true}) {
    const auto noisy = Computed("noise_salt_and_pepper",
                                {{"prob", Value(0.2)},
                                 {"salt_vs_pepper", Value(0.75)},
                                 {"per_channel", Value(per_channel)}},
                                {image})
                           .Values<uint8_t>();
    double salt = 0, pepper = 0, broken = 0;
    for (size_t i = 0; i < noisy.size(); ++i) {
      salt += noisy[i] == 255;
      pepper += noisy[i] == 0;
      broken += i % 3 != 0 && noisy[i] != noisy[i - 1];
    }
    const double n = static_cast<double>(side * side) * (per_channel ? 3 : 1);
    const double each = per_channel ? 1 : 3;
    EXPECT_NEAR(salt / each, n * .15, 4 * std::sqrt(n * .15 * .85));
    EXPECT_NEAR(pepper / each, n * .05, 4 * std::sqrt(n * .05 * .95));
    EXPECT_EQ(broken > 0, per_channel);
  }
  EXPECT_THAT(Computed("noise_salt_and_pepper",
                       {{"prob", Value(1.0)},
                        {"pepper_val", Floats{-7}},
                        {"salt_vs_pepper", Value(0.0)}},
                       {Flat(1)})
                  .Values<float>(),
              ::testing::Each(-7));
}

}  // namespace
}  // namespace leat::worker::testing
