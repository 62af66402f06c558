// SPDX-License-Identifier: Apache-2.0
//
// A program draws exactly the draws that it reports.
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/jpeg_maker.h"
#include "tests/worker/image/program/support.h"

namespace leat::worker {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Ints = std::vector<int64_t>;
using Floats = std::vector<double>;

std::map<uint32_t, NodeDraw> DrawsOf(const Runner& runner,
                                     const std::string* jpeg, uint64_t sample,
                                     uint64_t epoch = 1, uint64_t step = 5) {
  StoredSample stored = StoredImage({}, 7);
  if (jpeg != nullptr) stored.fields[0].bytes = AsSpan(*jpeg);
  RowInput input{
      .seed = runner.seed, .epoch = epoch, .sample = sample, .step = step};
  if (jpeg != nullptr) input.fields = stored.fields;
  Scratch scratch{ImageLimits{}};
  std::map<uint32_t, NodeDraw> draws;
  for (NodeDraw& draw : runner.program->Draws(input, scratch))
    draws[draw.node] = std::move(draw);
  return draws;
}

Value Given(uint32_t node) { return Value(NodeRef{node, 0}); }

TEST(Draws, NumbersAreThoseOfTheRowWithoutItsRecord) {
  Graph graph = ChainOf({});
  graph.nodes.resize(2);
  graph.nodes.push_back({"coin_flip", {}, {}});
  graph.nodes.push_back({"uniform", {}, {{"low", 2.0}, {"high", 3.0}}});
  graph.nodes.push_back({"normal", {}, {{"mean", Given(3)}}});
  graph.nodes.push_back({"choice", {}, {{"values", Floats{4, 7, 9}}}});
  graph.nodes.push_back({"beta", {}, {{"per", Value(std::string("batch"))}}});
  graph.outputs = {{"flag", {2, 0}},
                   {"low", {3, 0}},
                   {"bell", {4, 0}},
                   {"one", {5, 0}},
                   {"lam", {6, 0}}};
  Runner runner(graph, 7);
  EXPECT_FALSE(runner.program->draws_need_fields());
  Scratch scratch{ImageLimits{}};
  bool seen[2] = {};
  for (uint64_t sample = 0; sample < 16; ++sample) {
    const StoredSample stored = StoredImage({}, 7);
    ASSERT_TRUE(runner.program
                    ->Run({.seed = runner.seed,
                           .epoch = 1,
                           .sample = sample,
                           .fields = stored.fields,
                           .step = 5},
                          scratch, runner.spans)
                    .ok());
    std::map<std::string, double> values;
    for (size_t f = 0; f < runner.outputs.size(); ++f) {
      float value = 0;
      if (runner.outputs[f].size() == 1)
        value = static_cast<float>(runner.outputs[f][0]);
      else
        memcpy(&value, runner.outputs[f].data(), sizeof value);
      values[runner.schema.fields[f].name] = value;
    }
    const auto draws = DrawsOf(runner, nullptr, sample);
    ASSERT_THAT(draws, SizeIs(5));
    // Nodes are renumbered if some are not needed; their order stays.
    std::vector<double> drawn;
    for (const auto& [node, draw] : draws) {
      ASSERT_THAT(draw.values, SizeIs(1)) << node << " " << draw.unknown;
      drawn.push_back(draw.values[0]);
    }
    EXPECT_EQ(drawn, (std::vector<double>{values["flag"], values["low"],
                                          values["bell"], values["one"],
                                          values["lam"]}));
    seen[static_cast<size_t>(drawn[0])] = true;
    EXPECT_EQ(DrawsOf(runner, nullptr, sample, 1, 6).rbegin()->second.values ==
                  draws.rbegin()->second.values,
              false)
        << "a batch's draw is its step's";
  }
  EXPECT_TRUE(seen[0] && seen[1]);
}

// A random_resized_crop takes the reported window, resized.
TEST(Draws, AWindowIsTheOneThatIsCut) {
  const std::string jpeg = leat::testing::MakeJpeg(
      {.width = 90, .height = 70, .orientation = 6, .seed = 3});
  for (const bool fuse : {true, false}) {
    Runner random(
        ChainOf({{"random_resized_crop", {}, {{"size", Ints{24, 24}}}}}), 11,
        fuse);
    EXPECT_TRUE(random.program->draws_need_fields());
    EXPECT_THAT(DrawsOf(random, nullptr, 4).at(2).unknown,
                HasSubstr("was not read"));
    Scratch scratch{ImageLimits{}};
    for (uint64_t sample = 0; sample < 4; ++sample) {
      ASSERT_TRUE(random.Run(jpeg, scratch, sample, 1).ok());
      const NodeDraw draw = DrawsOf(random, &jpeg, sample).at(2);
      ASSERT_THAT(draw.values, SizeIs(4)) << draw.unknown;
      Runner fixed(ChainOf({{"window",
                             {},
                             {{"y", draw.values[0]},
                              {"x", draw.values[1]},
                              {"height", draw.values[2]},
                              {"width", draw.values[3]}}},
                            {"resize", {}, {{"size", Ints{24, 24}}}}}),
                   11, fuse);
      ASSERT_TRUE(fixed.Run(jpeg, scratch).ok());
      EXPECT_EQ(random.outputs, fixed.outputs) << sample << " fuse " << fuse;
    }
  }
}

// Operators before a random window in the same view count.
TEST(Draws, AWindowBehindACropIsInTheCroppedImage) {
  const std::string jpeg = leat::testing::MakeJpeg({.width = 90, .height = 70});
  Runner runner(
      ChainOf({{"crop", {}, {{"size", Ints{40, 30}}}},
               {"random_crop",
                {},
                {{"area", Floats{1, 1}}, {"aspect", Floats{.75, .75}}}},
               {"resize", {}, {{"size", Ints{8, 8}}}}}),
      3);
  EXPECT_THAT(DrawsOf(runner, &jpeg, 0).at(3).values,
              ::testing::ElementsAre(0, 0, 40, 30));
}

TEST(Draws, OperationsAreNamed) {
  Runner runner(ChainOf({{"resize", {}, {{"size", Ints{8, 8}}}},
                         {"trivial_augment_wide", {}, {}},
                         {"noise_gaussian", {}, {}}}),
                3);
  std::vector<std::string> texts;
  for (uint64_t sample = 0; sample < 64; ++sample) {
    const auto draws = DrawsOf(runner, nullptr, sample);
    texts.push_back(draws.at(3).text);
    EXPECT_THAT(draws.at(3).unknown, IsEmpty());
    EXPECT_THAT(draws.at(4).unknown, HasSubstr("each element"));
  }
  EXPECT_THAT(texts, Contains("equalize"));
  EXPECT_THAT(texts, Contains(HasSubstr("rotate(")));
}

TEST(Draws, WhatEarlierRowsHaveLeftMakesNoneUnknown) {
  const Runner whole(ChainOf({{"rotate", {}, {{"angle", Value(10.0)}}},
                              {"random_crop", {}, {}},
                              {"resize", {}, {{"size", Ints{8}}}}}),
                     1, false);
  // The two files need memory in different places.
  const std::string turned =
      leat::testing::MakeJpeg({.width = 200, .height = 200, .orientation = 6});
  const std::string plain =
      leat::testing::MakeJpeg({.width = 300, .height = 300});
  const auto is_known = [&](const std::string& jpeg, Scratch* scratch) {
    StoredSample stored = StoredImage({}, 7);
    stored.fields[0].bytes = AsSpan(jpeg);
    const auto draws =
        whole.program->Draws({.seed = 1, .fields = stored.fields}, *scratch);
    return draws.at(0).unknown.empty();
  };
  const auto are_enough = [&](uint64_t bytes) {
    Scratch one({.max_scratch_bytes = bytes});
    Scratch other({.max_scratch_bytes = bytes});
    return is_known(turned, &one) && is_known(plain, &other);
  };
  uint64_t low = 1000, high = 10'000'000;
  while (low + 1 < high) {
    const uint64_t middle = (low + high) / 2;
    (are_enough(middle) ? high : low) = middle;
  }
  Scratch used({.max_scratch_bytes = high});
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(is_known(turned, &used));
    EXPECT_TRUE(is_known(plain, &used));
  }
}

TEST(Draws, OfADamagedRecordSayWhy) {
  const std::string jpeg = "no image at all";
  Runner runner(ChainOf({{"random_resized_crop", {}, {{"size", Ints{8, 8}}}}}),
                3);
  const NodeDraw draw = DrawsOf(runner, &jpeg, 0).at(2);
  EXPECT_THAT(draw.values, IsEmpty());
  EXPECT_THAT(draw.unknown, ::testing::Not(IsEmpty()));
}

}  // namespace
}  // namespace leat::worker
