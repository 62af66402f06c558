// SPDX-License-Identifier: Apache-2.0
//
// Compares drawn operations with the same ones applied one by one.
#include "worker/image/operators/augmenter.h"

#include <functional>
#include <string>
#include <thread>

#include "core/operators/augmentation.h"
#include "gmock/gmock.h"
#include "tests/worker/image/operators/augment_support.h"

namespace leat::worker::testing {
namespace {

// Applies `steps` one by one.
Array OneByOne(const AugmentationSteps& steps, const Array& image,
               double factor_y = 1, double factor_x = 1) {
  Array result = image;
  for (const AugmentationStep& step : steps) {
    double parameter = step.parameter;
    if (step.operation == Augmentation::kTranslateX) parameter *= factor_x;
    if (step.operation == Augmentation::kTranslateY) parameter *= factor_y;
    result = Augmented(InfoOf(step.operation).name.data(), parameter, result);
  }
  return result;
}

SampleRng RngOf(uint64_t sample) { return SampleRng(1, 0, sample, 1); }

// The operator gives, for many samples, the same as the steps of draw(&rng),
// applied one by one.
void ExpectDrawn(const char* op, Args args, const Array& image,
                 const std::function<AugmentationSteps(SampleRng*)>& draw,
                 double factor_y = 1, double factor_x = 1) {
  auto made = OneOperator::Make(op, std::move(args), {image});
  ASSERT_TRUE(made.ok()) << Message(made.status());
  for (uint64_t sample = 0; sample < 60; ++sample) {
    SampleRng rng = RngOf(sample);
    const AugmentationSteps steps = draw(&rng);
    const auto got = made->Run(sample);
    ASSERT_TRUE(got.ok()) << Message(got.status());
    ASSERT_EQ(*got, OneByOne(steps, image, factor_y, factor_x))
        << op << " " << sample;
  }
}

TEST(RandAugment, DoesWhatItDrawsInOrder) {
  for (const int64_t channels : {1, 3})
    for (const int64_t count : {1, 2, 5}) {
      const Array image = RandomImage({11, 17, channels}, 3);
      const auto suite = RandAugmentSuite(true, {100, 100});
      ExpectDrawn("rand_augment",
                  {{"n", Value(count)}, {"m", Value(int64_t{4})}}, image,
                  [&](SampleRng* rng) {
                    return DrawRandAugment(suite, count, 4, 31, rng);
                  });
    }
}

TEST(RandAugment, LeavesOutWhatIsExcludedAndMovesByPartsOfTheSides) {
  const Array image = RandomImage({20, 50, 3}, 4);
  auto suite = RandAugmentSuite(false, {0.5, 0.25});
  suite.erase(suite.begin() + 4);  // rotate
  ExpectDrawn(
      "rand_augment",
      {{"n", Value(int64_t{2})},
       {"m", Value(int64_t{8})},
       {"num_magnitude_bins", Value(int64_t{10})},
       {"monotonic_mag", Value(false)},
       {"max_translate_rel", Floats{0.5, 0.25}},
       {"excluded", std::vector<std::string>{"rotate", "rotate"}}},
      image,
      [&](SampleRng* rng) { return DrawRandAugment(suite, 2, 8, 10, rng); }, 20,
      50);
}

TEST(TrivialAugment, DoesWhatItDraws) {
  const Array image = RandomImage({20, 50, 3}, 4);
  const auto suite = TrivialAugmentSuite({5, 32});
  ExpectDrawn("trivial_augment_wide", {{"max_translate_abs", Floats{5, 32}}},
              image, [&](SampleRng* rng) {
                return AugmentationSteps{DrawTrivialAugment(suite, 31, rng)};
              });
}

TEST(AutoAugment, DoesWhatItDraws) {
  const Array image = RandomImage({20, 50, 3}, 4);
  for (const std::string_view name : AutoAugmentPolicies()) {
    const auto policy = AutoAugmentPolicy(name, {250, 250});
    ExpectDrawn("auto_augment", {{"policy", Text(name.data())}}, image,
                [&](SampleRng* rng) { return DrawAutoAugment(policy, rng); });
  }
}

TEST(AutoAugment, TakesImagesOfEverySize) {
  for (const char* op : {"auto_augment", "trivial_augment_wide"})
    for (const Shape& shape : kAugmentShapes) {
      const Array image = RandomImage(shape, 8);
      const auto result =
          Apply({Node{op, {}, {}},
                 Node{"crop", {}, {{"size", Ints{shape[0], shape[1]}}}}},
                {Array(image).Open()});
      ASSERT_TRUE(result.ok()) << Message(result.status());
      EXPECT_EQ(result->shape, shape);
    }
}

TEST(Augmentations, AreTheSameOnEveryThreadAndInEveryOrder) {
  constexpr uint64_t kSamples = 40;
  const Args args = {{"n", Value(int64_t{3})}, {"m", Value(int64_t{20})}};
  const Array image = RandomImage({23, 19, 3}, 10);
  const auto all = [&](bool backwards) {
    std::vector<Array> results(kSamples);
    auto made = OneOperator::Make("rand_augment", args, {image});
    for (uint64_t i = 0; i < kSamples; ++i) {
      const uint64_t sample = backwards ? kSamples - 1 - i : i;
      results[sample] = made->Run(sample).value();
    }
    return results;
  };
  const std::vector<Array> want = all(false);
  std::vector<Array> got[3];
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&, t] { got[t] = all(t % 2 == 0); });
  for (std::thread& thread : threads) thread.join();
  for (const auto& results : got) EXPECT_EQ(results, want);
  EXPECT_NE(want[0], want[1]);
}

}  // namespace
}  // namespace leat::worker::testing
