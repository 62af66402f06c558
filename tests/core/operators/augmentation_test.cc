// SPDX-License-Identifier: Apache-2.0
//
// tests/golden/augmentations.txt has the tables of DALI's auto_aug, written by
// tests/parity/operators_augment.py --write-tables.
#include "core/operators/augmentation.h"

#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>

#include "core/pipeline/operators.h"
#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/pipeline/graph_support.h"

namespace leat {
namespace {

using enum Augmentation;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::PrintToString;
using testing::Text;
using Floats = std::vector<double>;
using Texts = std::vector<std::string>;

constexpr int kDraws = 100'000;

std::vector<std::istringstream> GoldenLines() {
  std::ifstream file(LEAT_SOURCE_DIR "/tests/golden/augmentations.txt");
  std::vector<std::istringstream> lines;
  for (std::string line; std::getline(file, line);) lines.emplace_back(line);
  return lines;
}

// Returns the value that DALI computes from the parameter: a mask, an element
// of a matrix, or the parameter.
double AsDali(const AugmentationStep& step) {
  if (step.operation == kPosterize) {
    const int bits =
        std::max(1, static_cast<int>(std::nearbyint(step.parameter)));
    return (0xff00 >> bits) & 0xff;
  }
  if (step.operation == kSharpness) return (1 - double{step.parameter}) / 13;
  if (step.operation == kSolarizeAdd) return std::floor(step.parameter);
  return step.parameter;
}

void ExpectNumber(const AugmentationStep& step, double want,
                  const std::string& where) {
  EXPECT_NEAR(AsDali(step), want, std::fabs(want) * 1e-7 + 1e-8) << where;
}

TEST(Augmentations, HaveDalisMagnitudes) {
  const std::map<std::string, std::vector<AugmentationRange>> suites = {
      {"rand_augment", RandAugmentSuite(true, {100, 100})},
      {"rand_augment_non_monotonic", RandAugmentSuite(false, {100, 100})},
      {"trivial_augment_wide", TrivialAugmentSuite({32, 32})}};
  std::map<std::string, std::set<std::string>> seen;
  int numbers = 0;
  for (std::istringstream& line : GoldenLines()) {
    std::string suite, name;
    int sign = 0;
    line >> suite >> name;
    const auto it = suites.find(suite);
    if (it == suites.end()) continue;
    line >> sign;
    seen[suite].insert(name);
    const auto range = std::find_if(
        it->second.begin(), it->second.end(),
        [&](const auto& r) { return InfoOf(r.operation).name == name; });
    ASSERT_NE(range, it->second.end()) << suite << " " << name;
    EXPECT_TRUE(sign > 0 || range->signed_at_random) << suite << " " << name;
    double want;
    for (int64_t bin = 0; line >> want; ++bin, ++numbers)
      ExpectNumber(range->At(bin, 31, sign < 0), want,
                   fmt::format("{} {} {}", suite, name, bin));
  }
  EXPECT_EQ(numbers, (2 * 9 + 2 + 2 * 5 + 6 + 2 * 9 + 2) * 31);
  for (const auto& [suite, ranges] : suites)
    EXPECT_EQ(seen[suite].size(), ranges.size()) << suite;
}

TEST(Augmentations, HaveDalisPolicies) {
  std::map<std::string, std::vector<SubPolicy>> policies;
  for (const std::string_view name : AutoAugmentPolicies())
    policies[std::string(name)] = AutoAugmentPolicy(name, {250, 250});
  std::map<std::string, std::set<std::pair<size_t, size_t>>> seen;
  for (std::istringstream& line : GoldenLines()) {
    std::string policy, name;
    size_t i = 0, stage = 0;
    double probability = 0, want = 0;
    int sign = 0;
    line >> policy;
    if (!policies.contains(policy)) continue;
    line >> i >> stage >> name >> probability >> sign;
    ASSERT_LT(i, policies[policy].size());
    seen[policy].insert({i, stage});
    const PolicyStage& ours = policies[policy][i].stages[stage];
    const std::string where = fmt::format("{} {} {}", policy, i, stage);
    EXPECT_EQ(InfoOf(ours.range.operation).name, name) << where;
    EXPECT_FLOAT_EQ(ours.probability, static_cast<float>(probability)) << where;
    EXPECT_TRUE(sign > 0 || ours.range.signed_at_random) << where;
    if (line >> want)
      ExpectNumber(ours.range.At(ours.bin, kPolicyBins, sign < 0), want, where);
  }
  for (const auto& [name, policy] : policies) {
    EXPECT_EQ(policy.size(), 25u);
    for (size_t i = 0; i < policy.size(); ++i)
      for (size_t stage = 0; stage < 2; ++stage)
        EXPECT_TRUE(seen[name].contains({i, stage}) ||
                    policy[i].stages[stage].probability == 0)
            << name << i;
  }
}

TEST(Augmentations, HaveTheirNamesAndParametersWithinTheirRanges) {
  for (const AugmentationInfo& info : Augmentations()) {
    EXPECT_EQ(ParseAugmentation(info.name), info.operation);
    EXPECT_EQ(InfoOf(info.operation).name, info.name);
  }
  EXPECT_EQ(ParseAugmentation("blur"), std::nullopt);
  for (const auto& suite :
       {RandAugmentSuite(true, {9, 9}), RandAugmentSuite(false, {9, 9}),
        TrivialAugmentSuite({9, 9})})
    for (const AugmentationRange& range : suite)
      for (const int64_t bins : {1, 2, 31})
        for (int64_t bin = 0; bin < bins; ++bin)
          for (const bool negative : {false, true}) {
            const AugmentationInfo& info = InfoOf(range.operation);
            const float parameter = range.At(bin, bins, negative).parameter;
            EXPECT_GE(parameter, info.least) << info.name;
            EXPECT_LE(parameter, info.most) << info.name;
          }
}

// --- Draws ------------------------------------------------------------------

// Returns Pearson's statistic of the counts, in standard deviations of its
// distribution; each expected count must be at least five.
double Deviations(const std::map<std::string, int>& counts,
                  const std::map<std::string, double>& chances) {
  double squares = 0;
  for (const auto& [what, chance] : chances) {
    const double expected = chance * kDraws;
    EXPECT_GE(expected, 5) << PrintToString(what);
    const auto it = counts.find(what);
    const double count = it == counts.end() ? 0 : it->second;
    squares += (count - expected) * (count - expected) / expected;
  }
  for (const auto& [what, count] : counts)
    EXPECT_TRUE(chances.contains(what))
        << PrintToString(what) << ", " << count << " times";
  const double freedom = static_cast<double>(chances.size()) - 1;
  return (squares - freedom) / std::sqrt(2 * freedom);
}

// Returns bytes instead of text, since there are many; -0 becomes 0.
std::string TextOf(const AugmentationStep& step) {
  const float parameter = step.parameter + 0.0f;
  std::string text(1 + sizeof parameter, static_cast<char>(step.operation));
  memcpy(text.data() + 1, &parameter, sizeof parameter);
  return text;
}
std::string TextOf(const AugmentationSteps& steps) {
  std::string text;
  for (const AugmentationStep& step : steps) text += TextOf(step);
  return text;
}

template <class Draw>
std::map<std::string, int> CountsOf(Draw draw) {
  std::map<std::string, int> counts;
  for (uint64_t sample = 0; sample < kDraws; ++sample) {
    SampleRng rng(7, 3, sample, 2);
    ++counts[TextOf(draw(&rng))];
  }
  return counts;
}

TEST(RandAugment, DrawsEachPairOfOperationsWithEachSignAsOften) {
  const auto suite = RandAugmentSuite(true, {100, 100});
  std::map<std::string, double> chances;
  for (const AugmentationRange& a : suite)
    for (const AugmentationRange& b : suite)
      for (const bool signs : {false, true})
        for (const bool other : {false, true})
          chances[TextOf(a.At(9, 31, signs)) + TextOf(b.At(9, 31, other))] +=
              1.0 / (14 * 14 * 4);
  EXPECT_EQ(chances.size(), 23u * 23u);  // nine of fourteen have a sign
  const auto counts = CountsOf(
      [&](SampleRng* rng) { return DrawRandAugment(suite, 2, 9, 31, rng); });
  EXPECT_LT(std::fabs(Deviations(counts, chances)), 4);
}

TEST(TrivialAugment, DrawsEachOperationAtEachMagnitudeAsOften) {
  const auto suite = TrivialAugmentSuite({32, 32});
  std::map<std::string, double> chances;
  for (const AugmentationRange& range : suite)
    for (int64_t bin = 0; bin < 31; ++bin)
      for (const bool negative : {false, true})
        chances[TextOf(range.At(bin, 31, negative))] += 1.0 / (14 * 31 * 2);
  const auto counts = CountsOf([&](SampleRng* rng) {
    return AugmentationSteps{DrawTrivialAugment(suite, 31, rng)};
  });
  EXPECT_LT(std::fabs(Deviations(counts, chances)), 4);
}

// Returns the probability of each result, summed over all ways to draw it.
std::map<std::string, double> ChancesOf(const std::vector<SubPolicy>& policy) {
  std::map<std::string, double> chances;
  for (const SubPolicy& sub_policy : policy)
    for (int way = 0; way < 16; ++way) {
      double chance = 1.0 / static_cast<double>(policy.size()) / 4;
      std::string text;
      for (int s = 0; s < 2; ++s) {
        const PolicyStage& stage = sub_policy.stages[s];
        const bool done = (way >> s & 1) != 0, negative = (way >> s & 4) != 0;
        chance *= done ? stage.probability : 1 - double{stage.probability};
        if (done)
          text += TextOf(stage.range.At(stage.bin, kPolicyBins, negative));
      }
      if (chance > 1e-7) chances[text] += chance;
    }
  return chances;
}

TEST(AutoAugment, DrawsSubPoliciesAndTheirStagesAsOftenAsTheyShouldBe) {
  for (const std::string_view name : AutoAugmentPolicies()) {
    const auto policy = AutoAugmentPolicy(name, {250, 250});
    const auto counts =
        CountsOf([&](SampleRng* rng) { return DrawAutoAugment(policy, rng); });
    EXPECT_LT(std::fabs(Deviations(counts, ChancesOf(policy))), 4) << name;
  }
}

TEST(Augmentations, TakeAsManyWordsWhateverIsDrawn) {
  const auto suite = RandAugmentSuite(true, {100, 100});
  const auto policy = AutoAugmentPolicy("image_net", {250, 250});
  const std::pair<std::function<void(SampleRng*)>, int> draws[] = {
      {[&](SampleRng* rng) { DrawRandAugment(suite, 3, 9, 31, rng); }, 6},
      {[&](SampleRng* rng) { DrawTrivialAugment(suite, 31, rng); }, 3},
      {[&](SampleRng* rng) { DrawAutoAugment(policy, rng); }, 5}};
  for (uint64_t sample = 0; sample < 1000; ++sample)
    for (const auto& [draw, words] : draws) {
      SampleRng used(1, 2, sample, 3), plain = used;
      draw(&used);
      for (int i = 0; i < words; ++i) plain.NextU32();
      ASSERT_EQ(used.NextU32(), plain.NextU32()) << sample;
    }
}

// --- Errors when a job is created -------------------------------------------

absl::StatusOr<CheckedGraph> CheckOn(ValueType input, const char* op,
                                     std::map<std::string, Value> args) {
  Graph graph;
  graph.nodes = {
      {"readers.numpy", {}, {{"path", Value(std::string("/a.npy"))}}},
      {op, {{0, 0}}, std::move(args)}};
  graph.outputs = {{"x", {1, 0}}};
  return Check(graph, {&input, 1});
}

Value Number(int64_t number) { return Value(number); }
const ValueType kImage = {ValueType::Kind::kTensor, DType::kUint8, {8, 9, 3}};

std::string Error(const char* op, std::map<std::string, Value> args,
                  const ValueType& input = kImage) {
  const auto checked = CheckOn(input, op, std::move(args));
  EXPECT_EQ(checked.status().code(), absl::StatusCode::kInvalidArgument) << op;
  return std::string(Message(checked.status()));
}

TEST(Augmentations, RefuseArgumentsThatAreWrong) {
  const auto rand = [](const char* name, Value value) {
    std::map<std::string, Value> args = {{"n", Number(2)}, {"m", Number(9)}};
    args[name] = std::move(value);
    return Error("rand_augment", std::move(args));
  };
  EXPECT_THAT(rand("n", Number(0)), AllOf(HasSubstr("\"n\""), HasSubstr("0")));
  EXPECT_THAT(rand("n", Number(65)), HasSubstr("65"));
  EXPECT_THAT(rand("n", Value(1.5)), HasSubstr("1.5"));
  EXPECT_THAT(rand("m", Number(-1)),
              AllOf(HasSubstr("\"m\""), HasSubstr("-1")));
  EXPECT_THAT(rand("m", Number(31)), HasSubstr("\"m\" is 31, want 0 to 30"));
  EXPECT_THAT(rand("num_magnitude_bins", Number(9)),
              HasSubstr("\"m\" is 9, want 0 to 8"));
  EXPECT_THAT(rand("num_magnitude_bins", Number(0)),
              HasSubstr("num_magnitude_bins"));
  EXPECT_THAT(rand("excluded", Value(Texts{"blur"})), HasSubstr("\"blur\""));
  EXPECT_THAT(rand("fill_value", Value(NAN)), HasSubstr("fill_value"));
  EXPECT_THAT(rand("fill_value", Value(256.0)), HasSubstr("256"));
  EXPECT_THAT(rand("border", Text("wrap")), HasSubstr("\"wrap\""));
  EXPECT_THAT(rand("max_translate_rel", Value(Floats{0.1, NAN})),
              HasSubstr("max_translate_rel"));
  EXPECT_THAT(rand("max_translate_abs", Value(Floats{1, 2, 3})),
              HasSubstr("3 numbers"));
  EXPECT_THAT(Error("rand_augment", {{"m", Number(3)}}), HasSubstr("\"n\""));
  EXPECT_THAT(
      Error("trivial_augment_wide", {{"max_translate_abs", Value(Floats{1})},
                                     {"max_translate_rel", Value(Floats{1})}}),
      HasSubstr("both given"));
  EXPECT_THAT(Error("auto_augment", {{"policy", Text("imagenet")}}),
              AllOf(HasSubstr("\"imagenet\""), HasSubstr("image_net")));
  EXPECT_THAT(Error("auto_augment", {{"policy", Text("reduced_image_net")},
                                     {"max_translate_abs", Value(Floats{9})}}),
              HasSubstr("no translations"));
  Texts all;
  for (const AugmentationRange& range : RandAugmentSuite(true, {}))
    all.emplace_back(InfoOf(range.operation).name);
  EXPECT_THAT(rand("excluded", Value(all)), HasSubstr("all 14 operations"));
  all.pop_back();
  EXPECT_TRUE(
      CheckOn(kImage, "trivial_augment_wide", {{"excluded", Value(all)}}).ok());
}

TEST(Augmentations, RefuseMagnitudesThatTheOperationDoesNotHave) {
  const auto augment = [](const char* operation, double magnitude) {
    return CheckOn(kImage, "augment",
                   {{"operation", Text(operation)},
                    {"magnitude", Value(magnitude)}})
        .status();
  };
  EXPECT_TRUE(augment("equalize", 999).ok());
  EXPECT_TRUE(augment("solarize", 256).ok());
  EXPECT_THAT(std::string(Message(augment("solarize", 256.5))),
              AllOf(HasSubstr("256.5"), HasSubstr("solarize")));
  EXPECT_THAT(std::string(Message(augment("posterize", 9))),
              HasSubstr("0 to 8"));
  EXPECT_FALSE(augment("solarize_add", 128).ok());
  EXPECT_FALSE(augment("rotate", NAN).ok());
  EXPECT_FALSE(augment("rotate", INFINITY).ok());
  EXPECT_FALSE(augment("blur", 1).ok());
}

TEST(Augmentations, TakeBytesOfOneOrThreeChannelsOfAnySize) {
  for (const char* op : {"auto_augment", "trivial_augment_wide"}) {
    const auto type = [](DType dtype, Shape shape) {
      return ValueType{ValueType::Kind::kTensor, dtype, std::move(shape)};
    };
    EXPECT_THAT(Error(op, {}, type(DType::kFloat32, {8, 9, 3})),
                HasSubstr("float32"));
    EXPECT_THAT(Error(op, {}, type(DType::kUint8, {8, 9, 4})),
                HasSubstr("(8, 9, 4), want 1 channel, or 3"));
    EXPECT_THAT(Error(op, {}, type(DType::kUint8, {8, 9})), HasSubstr("image"));
    EXPECT_THAT(Error(op, {}, {ValueType::Kind::kEncoded, DType::kUint8, {}}),
                HasSubstr("put a decode before it"));
    EXPECT_TRUE(CheckOn(type(DType::kUint8, {8, 9, 1}), op, {}).ok());
    // A size that differs from sample to sample is no error here; the batch
    // needs one size afterwards.
    EXPECT_THAT(Error(op, {}, type(DType::kUint8, {-1, -1, 3})),
                HasSubstr("differs from sample to sample"));
  }
}

}  // namespace
}  // namespace leat
