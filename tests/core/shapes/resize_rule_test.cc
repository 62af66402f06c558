// SPDX-License-Identifier: Apache-2.0
#include "core/shapes/resize_rule.h"

#include <cmath>
#include <random>

#include "core/pipeline/operators.h"
#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/pipeline/graph_support.h"

namespace leat {
namespace {

using enum ResizeMode;
using ::testing::HasSubstr;
using testing::Text;
using Ints = std::vector<int64_t>;
using Floats = std::vector<double>;
using Args = std::map<std::string, Value>;

ImageSize SizeOf(ImageSize image, const ResizeRule& rule) {
  const auto resizing = rule.Of(image);
  EXPECT_TRUE(resizing.ok()) << Message(resizing.status());
  return resizing.ok() ? resizing->size : ImageSize{};
}

TEST(ResizeRule, KeepsTheAspectInItsModes) {
  const ImageSize image{480, 640};
  EXPECT_EQ(SizeOf(image, {kStretch, {224, 224}}), (ImageSize{224, 224}));
  EXPECT_EQ(SizeOf(image, {kNotSmaller, {224, 224}}), (ImageSize{224, 299}));
  EXPECT_EQ(SizeOf(image, {kNotLarger, {224, 224}}), (ImageSize{168, 224}));
  EXPECT_EQ(SizeOf({1, 60000}, {kNotLarger, {224, 224}}), (ImageSize{1, 224}));
}

// The sizes are those of DALI 2.4.
TEST(ResizeRule, CompletesASideThatIsNotGiven) {
  const ImageSize image{375, 500};
  EXPECT_EQ(SizeOf(image, {kDefault, {0, 224}}), (ImageSize{168, 224}));
  EXPECT_EQ(SizeOf(image, {kDefault, {100, 0}}), (ImageSize{100, 133}));
  EXPECT_EQ(SizeOf(image, {kDefault, {100, 90}}), (ImageSize{100, 90}));
  EXPECT_EQ(SizeOf(image, {kStretch, {0, 224}}), (ImageSize{375, 224}));
  EXPECT_EQ(SizeOf(image, {kNotLarger, {0, 100}}), (ImageSize{75, 100}));
  EXPECT_EQ(SizeOf(image, {kNotSmaller, {200, 0}}), (ImageSize{200, 267}));
  EXPECT_EQ(SizeOf(image, {kNotLarger, {333.5, 333.5}}), (ImageSize{250, 334}));
}

// The sizes are those of DALI 2.4: a scale of 31 / 56 is a float below the
// quotient.
TEST(ResizeRule, ComputesInDalisFloatsIfAsked) {
  ResizeRule rule{kNotSmaller, {31, 31}};
  EXPECT_EQ(SizeOf({56, 84}, rule), (ImageSize{31, 47}));
  rule.dali = true;
  EXPECT_EQ(SizeOf({56, 84}, rule), (ImageSize{31, 46}));
  EXPECT_EQ(SizeOf({56, 196}, rule), (ImageSize{31, 108}));
  EXPECT_EQ(SizeOf({480, 640},
                   {.mode = kNotLarger, .want = {224, 224}, .dali = true}),
            (ImageSize{168, 224}));
  EXPECT_EQ(
      SizeOf({375, 500}, {.mode = kDefault, .want = {0, 224}, .dali = true}),
      (ImageSize{168, 224}));
  EXPECT_EQ(
      SizeOf(
          {375, 500},
          {.mode = kStretch, .want = {0, 224}, .most = {300, 0}, .dali = true}),
      (ImageSize{300, 224}));
  EXPECT_EQ(SizeOf({100, 300}, {.mode = kNotSmaller,
                                .want = {90, 0},
                                .most = {0, 120},
                                .dali = true}),
            (ImageSize{40, 120}));
}

TEST(ResizeRule, StaysBelowTheLargestSize) {
  const ImageSize image{375, 500};
  EXPECT_EQ(SizeOf(image, {kNotSmaller, {256, 256}, {300, 300}}),
            (ImageSize{225, 300}));
  EXPECT_EQ(SizeOf(image, {kNotSmaller, {256, 256}, {0, 900}}),
            (ImageSize{256, 341}));
  EXPECT_EQ(SizeOf(image, {kStretch, {600, 600}, {400, 450}}),
            (ImageSize{400, 450}));
  EXPECT_EQ(SizeOf(image, {kDefault, {0, 600}, {400, 600}}),
            (ImageSize{400, 600}));
}

TEST(ResizeRule, NeverBreaksItsPromise) {
  for (int64_t h = 1; h < 40; ++h)
    for (int64_t w = 1; w < 40; ++w)
      for (int64_t want_h = 1; want_h < 12; ++want_h)
        for (int64_t want_w = 1; want_w < 12; ++want_w) {
          const std::array<double, 2> want{static_cast<double>(want_h),
                                           static_cast<double>(want_w)};
          const auto small = SizeOf({h, w}, {kNotSmaller, want});
          ASSERT_TRUE(small.height >= want_h && small.width >= want_w);
          const auto large = SizeOf({h, w}, {kNotLarger, want});
          ASSERT_TRUE(large.height <= want_h && large.width <= want_w);
        }
}

// Halves are rounded up, without a previous rounding: existing pipelines rely
// on this.
TEST(ResizeRule, WholeNumbersAreRoundedAsFractions) {
  std::mt19937 random(3);
  const auto side = [&](int most) {
    return std::uniform_int_distribution<int64_t>(1, most)(random);
  };
  for (int round = 0; round < 20'000; ++round) {
    const ImageSize image{side(2000), side(2000)};
    const int64_t want = side(500);
    const auto scaled = [&](int64_t of, int64_t from) {
      return std::max<int64_t>(1, (2 * of * want + from) / (2 * from));
    };
    const ImageSize by_height{want, scaled(image.width, image.height)};
    const ImageSize by_width{scaled(image.height, image.width), want};
    const bool flat = image.height <= image.width;
    const auto length = static_cast<double>(want);
    ASSERT_EQ(SizeOf(image, {kNotSmaller, {length, length}}),
              flat ? by_height : by_width);
    ASSERT_EQ(SizeOf(image, {kNotLarger, {length, length}}),
              flat ? by_width : by_height);
    ASSERT_EQ(SizeOf(image, {kDefault, {length, 0}}), by_height);
  }
}

TEST(ResizeRule, SpreadsARegion) {
  ResizeRule rule{kDefault, {0, 50}};
  rule.has_region = true;
  rule.start = {10, 20};
  rule.end = {40.5, 120};
  auto resizing = *rule.Of({100, 200});
  EXPECT_EQ(resizing.size, (ImageSize{15, 50}));  // 30.5 × 50 / 100 = 15.25
  EXPECT_EQ(resizing.rows, (Resizing::Part{10, 40.5}));
  EXPECT_EQ(resizing.columns, (Resizing::Part{20, 120}));
  rule.subpixel_scale = true;
  resizing = *rule.Of({100, 200});
  EXPECT_DOUBLE_EQ(resizing.rows.begin, 25.25 - 15);  // 15 rows at scale ½
  EXPECT_DOUBLE_EQ(resizing.rows.end, 25.25 + 15);
  EXPECT_EQ(resizing.columns, (Resizing::Part{20, 120}));
  rule.relative = true;
  rule.start = {0, 0.25};
  rule.end = {1, 0.75};
  EXPECT_EQ(rule.Of({100, 200})->columns, (Resizing::Part{50, 150}));
}

TEST(ResizeRule, AStretchedRegionKeepsTheMiddlesInside) {
  std::mt19937 random(5);
  std::uniform_real_distribution<double> length(0.01, 30);
  for (int round = 0; round < 2000; ++round) {
    ResizeRule rule{kNotSmaller, {length(random), length(random)}};
    rule.subpixel_scale = true;
    const auto resizing = rule.Of({7, 61});
    ASSERT_TRUE(resizing.ok());
    const auto first = [](const Resizing::Part& part, int64_t count) {
      return part.begin +
             (part.end - part.begin) / (2 * static_cast<double>(count));
    };
    ASSERT_GE(first(resizing->rows, resizing->size.height), 0);
    ASSERT_GE(first(resizing->columns, resizing->size.width), 0);
  }
}

TEST(ResizeRule, RefusesWhatCannotBe) {
  ResizeRule rule{kNotSmaller, {65500, 65500}};
  EXPECT_THAT(std::string(Message(rule.Of({1, 60000}).status())),
              HasSubstr("resized to 65500 × 3930000000 (height × width), want "
                        "at most 1048576 a side"));
  rule = {kStretch, {5, 5}};
  rule.has_region = true;
  rule.end = {11, 10};
  EXPECT_THAT(std::string(Message(rule.Of({10, 10}).status())),
              HasSubstr("region from (0, 0) to (11, 10) is not inside the "
                        "image of 10 × 10"));
  rule.end = {NAN, 10};
  EXPECT_FALSE(rule.Of({10, 10}).ok());
  for (const double side : {0.0, -1.0, 65501.0, double{NAN}, double{INFINITY}})
    EXPECT_EQ(WithSide({kNotSmaller}, side).status().code(),
              absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(WithSide({kNotLarger}, -3).status())),
              HasSubstr("argument \"longer\" is -3, want more than 0"));
}

// The reader, a decode, and a resize.
Graph Resized(Args args, bool cropped = false) {
  Graph graph;
  graph.nodes = {
      {"readers.image_folder", {}, {{"path", Text("/data")}}},
      {"decode", {{0, 0}}, {}},
  };
  if (cropped)
    graph.nodes.push_back({"crop", {{1, 0}}, {{"size", Ints{30, 40}}}});
  graph.nodes.push_back({"resize",
                         {{static_cast<uint32_t>(graph.nodes.size()) - 1, 0}},
                         std::move(args)});
  graph.outputs = {
      {"image", {static_cast<uint32_t>(graph.nodes.size()) - 1, 0}}};
  return graph;
}

TEST(Resize, ArgumentsAddedLaterChangeNoTextOfAPipelineWithoutThem) {
  const auto checked = Check(Resized({{"size", Ints{224}}}));
  ASSERT_TRUE(checked.ok()) << Message(checked.status());
  EXPECT_TRUE(checked->graph.nodes[2].args.contains("shorter"));
  // The text is as before these arguments existed.
  EXPECT_EQ(CanonicalText(checked->graph.nodes[2]),
            "resize (1:0) antialias=true interpolation=\"linear\" "
            "mode=\"stretch\" size=ints[224,224]");
  const auto given =
      Check(Resized({{"size", Ints{224}}, {"max_size", Ints{300}}}));
  ASSERT_TRUE(given.ok());
  EXPECT_THAT(CanonicalText(given->graph.nodes[2]),
              HasSubstr(" max_size=ints[300,300] mode"));
}

TEST(Resize, TypesSayWhatIsKnown) {
  const auto shape = [](Args args, bool cropped) {
    Graph graph = Resized(std::move(args), cropped);
    const auto last = static_cast<uint32_t>(graph.nodes.size()) - 1;
    graph.nodes.push_back({"reshape", {{last, 0}}, {{"shape", Ints{-1}}}});
    graph.outputs.clear();
    graph.nodes.push_back({"crop", {{last, 0}}, {{"size", Ints{1}}}});
    graph.outputs = {{"image", {last + 2, 0}}};
    const auto checked = Check(graph);
    EXPECT_TRUE(checked.ok()) << Message(checked.status());
    return checked.ok() ? checked->types[last][0].shape : Shape{};
  };
  EXPECT_EQ(shape({{"size", Ints{0, 20}}}, false), (Shape{-1, 20, 3}));
  EXPECT_EQ(shape({{"size", Ints{0, 20}}}, true), (Shape{30, 20, 3}));
  EXPECT_EQ(shape({{"size", Ints{0, 20}}, {"mode", Text("default")}}, true),
            (Shape{15, 20, 3}));
  EXPECT_EQ(shape({{"size", Ints{9, 20}}, {"max_size", Ints{8}}}, false),
            (Shape{8, 8, 3}));
  EXPECT_EQ(shape({{"shorter", Value(15.0)}}, false), (Shape{-1, -1, 3}));
  EXPECT_EQ(shape({{"shorter", Value(15.0)}}, true), (Shape{15, 20, 3}));
  EXPECT_EQ(shape({{"longer", Value(20.0)}}, true), (Shape{15, 20, 3}));
}

TEST(Resize, WrongArgumentsAreRefused) {
  const struct {
    Args args;
    const char* message;
  } kWrong[] = {
      {{}, "0 of them are given, want exactly one"},
      {{{"size", Ints{5}}, {"shorter", Value(5.0)}}, "2 of them are given"},
      {{{"longer", Value(5.0)}, {"shorter", Value(5.0)}}, "2 of them"},
      {{{"size", Ints{0}}}, "\"size\" is (0, 0)"},
      {{{"size", Ints{-3, 4}}}, "\"size\": ints[-3,4], want integers 0"},
      {{{"size", Ints{1, 2, 3}}}, "\"size\" has 3 numbers"},
      {{{"size", Ints{65'501}}}, "65501"},
      {{{"shorter", Value(NAN)}}, "\"shorter\": nan"},
      {{{"shorter", Value(-1.0)}}, "\"shorter\": -1"},
      {{{"shorter", Value(9.0)}, {"mode", Text("not_larger")}},
       "\"mode\" is \"not_larger\""},
      {{{"size", Ints{5}}, {"max_size", Ints{0}}}, "max_size"},
      {{{"size", Ints{5}}, {"max_size", Ints{1, 2, 3}}}, "max_size"},
      {{{"size", Ints{5}}, {"roi_start", Floats{1, 2}}},
       "\"roi_start\" is given without \"roi_end\""},
      {{{"size", Ints{5}}, {"roi_end", Floats{1, 2}}},
       "\"roi_end\" is given without \"roi_start\""},
      {{{"size", Ints{5}}, {"roi_relative", Value(true)}}, "roi_relative"},
      {{{"size", Ints{5}},
        {"roi_start", Floats{1, 8}},
        {"roi_end", Floats{3, 8}}},
       "want the first to be less; flip mirrors"},
      {{{"size", Ints{5}}, {"roi_start", Floats{0}}, {"roi_end", Floats{NAN}}},
       "roi_end"},
      {{{"size", Ints{5}},
        {"roi_start", Floats{0}},
        {"roi_end", Floats{1, 1.5}},
        {"roi_relative", Value(true)}},
       "at most 1"},
      {{{"size", Ints{5}}, {"roi_start", Floats{0}}, {"roi_end", Floats{31}}},
       "not inside the image of 30 × 40"},
      {{{"size", Ints{5}}, {"min_filter", Text("box")}}, "min_filter"},
      {{{"shorter", Value(60'000.0)}}, "over 67108864 bytes a row"},
  };
  for (const auto& [args, message] : kWrong) {
    const auto status = Check(Resized(args, true)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << message;
    EXPECT_THAT(std::string(Message(status)), HasSubstr(message));
  }
}

TEST(ResizeRule, RefusesAnImageWithoutPixelsAndOneOfTooLongSides) {
  constexpr int64_t kMost = 1 << 20;
  const ResizeRule rule{kStretch, {8, 8}};
  for (const ImageSize image :
       {ImageSize{0, 8}, ImageSize{8, 0}, ImageSize{kMost + 1, 8},
        ImageSize{8, int64_t{400'000'000}}}) {
    EXPECT_THAT(Message(rule.Of(image).status()),
                HasSubstr("want sides of 1 to 1048576"));
    EXPECT_TRUE(absl::IsInvalidArgument(rule.Of(image).status()));
  }
  EXPECT_TRUE(rule.Of({kMost, 1}).ok());
}

}  // namespace
}  // namespace leat
