// SPDX-License-Identifier: Apache-2.0
//
// pad, reshape, slice, erase, crop_mirror_normalize against slow references.
#include <cmath>
#include <limits>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/image/operators/support.h"

namespace leat::worker {
namespace {

using testing::Apply;
using testing::Args;
using testing::Array;
using testing::FieldOf;
using testing::Floats;
using ::testing::HasSubstr;
using testing::Ints;
using testing::Text;

std::mt19937& Random() {
  static std::mt19937 random(5);
  return random;
}
int64_t Below(int64_t n) { return static_cast<int64_t>(Random()() % n); }

template <class T>
Array RandomArray(Shape shape) {
  int64_t count = 1;
  for (const int64_t side : shape) count *= side;
  std::vector<T> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<T>(Below(256)));
  return Array::Of<T>(std::move(shape), values);
}

// Calls use(index) for every index of a shape, in order.
template <class Use>
void ForEach(const Shape& shape, Use use) {
  Shape index(shape.size());
  for (;;) {
    use(index);
    size_t axis = shape.size();
    while (axis > 0 && ++index[axis - 1] == shape[axis - 1]) index[--axis] = 0;
    if (axis == 0) return;
  }
}

template <class T>
T At(const Array& array, const Shape& index) {
  size_t offset = 0;
  for (size_t i = 0; i < index.size(); ++i)
    offset = offset * array.shape[i] + index[i];
  T value;
  memcpy(&value, array.bytes.data() + offset * sizeof(T), sizeof value);
  return value;
}

// A tensor of `shape` whose element at `index` is in's at index + shift, or
// `fill` if there is none.
template <class T>
Array Shifted(const Array& in, const Shape& shape, const Shape& shift,
              const std::vector<T>& fill) {
  std::vector<T> values;
  ForEach(shape, [&](const Shape& index) {
    Shape from = index;
    bool inside = true;
    for (size_t i = 0; i < from.size(); ++i) {
      from[i] += shift[i];
      inside = inside && from[i] >= 0 && from[i] < in.shape[i];
    }
    values.push_back(inside ? At<T>(in, from)
                            : fill[fill.size() == 1 ? 0 : index.back()]);
  });
  return Array::Of<T>(shape, values);
}

Shape RandomShape(int64_t rank, int64_t most) {
  Shape shape;
  for (int64_t i = 0; i < rank; ++i) shape.push_back(1 + Below(most));
  return shape;
}

#define ASSERT_RESULT(result, want)                           \
  do {                                                        \
    ASSERT_TRUE((result).ok()) << Message((result).status()); \
    ASSERT_EQ((result)->shape, (want).shape);                 \
    ASSERT_TRUE(**(&(result)) == (want));                     \
  } while (false)

TEST(Pad, IsTheInputAndFillBehindIt) {
  for (int round = 0; round < 200; ++round) {
    const Array in = RandomArray<uint8_t>(RandomShape(1 + Below(4), 7));
    Shape want = in.shape, axes, shape, align;
    for (size_t axis = 0; axis < want.size(); ++axis) {
      if (Below(3) == 0) continue;
      axes.push_back(static_cast<int64_t>(axis));
      shape.push_back(Below(12));
      align.push_back(1 + Below(5));
      int64_t& side = want[axis];
      side = std::max(side, shape.back());
      while (side % align.back() != 0) ++side;
    }
    if (axes.empty()) continue;
    const auto result = Apply("pad",
                              {{"axes", axes},
                               {"shape", shape},
                               {"align", align},
                               {"fill_value", 7.6}},
                              {in});
    ASSERT_RESULT(result,
                  Shifted<uint8_t>(in, want, Shape(want.size()), {uint8_t{8}}));
  }
}

TEST(Pad, GivesEveryTypeItsFill) {
  EXPECT_EQ(Apply("pad", {{"shape", Ints{3}}, {"fill_value", -2.5}},
                  {Array::Of<float>({1}, {1.5f})})
                ->Values<float>(),
            (std::vector<float>{1.5f, -2.5f, -2.5f}));
  EXPECT_EQ(Apply("pad", {{"shape", Ints{3}}, {"fill_value", 1e12}},
                  {Array::Of<int64_t>({1}, {7})})
                ->Values<int64_t>(),
            (std::vector<int64_t>{7, 1'000'000'000'000, 1'000'000'000'000}));
  EXPECT_EQ(Apply("pad", {{"shape", Ints{2}}, {"fill_value", 1e12}},
                  {Array::Of<int32_t>({1}, {7})})
                ->Values<int32_t>()[1],
            std::numeric_limits<int32_t>::max());
  EXPECT_EQ(Apply("pad", {{"shape", Ints{2}}, {"fill_value", -9.0}},
                  {Array::Of<uint8_t>({1}, {7})})
                ->Values<uint8_t>()[1],
            0);
}

TEST(Pad, MakesOneShapeOfRaggedSamples) {
  const Args args = {{"shape", Ints{5, 4, 2}}, {"align", Ints{2}}};
  for (const Shape& shape : {Shape{1, 1, 2}, {5, 4, 2}, {6, 3, 2}}) {
    const Array in = RandomArray<int32_t>(shape);
    const auto result = Apply("pad", args, {Array(in).Open()});
    ASSERT_RESULT(result, Shifted<int32_t>(in, {6, 4, 2}, {0, 0, 0}, {0}));
  }
  const auto large =
      Apply("pad", args, {RandomArray<int32_t>({7, 4, 2}).Open()});
  EXPECT_THAT(std::string(Message(large.status())),
              HasSubstr("pad: axis 0 has 7 elements, more than \"shape\" gives "
                        "it: 6"));
}

TEST(Reshape, KeepsTheElements) {
  const Array in = RandomArray<float>({4, 6, 5});
  for (const Shape& shape :
       {Shape{120}, {-1, 8}, {2, 3, 4, 5}, {1, 1, -1, 1}}) {
    const auto result = Apply("reshape", {{"shape", shape}}, {in});
    ASSERT_TRUE(result.ok()) << Message(result.status());
    EXPECT_EQ(result->bytes, in.bytes);
  }
  const auto scalar =
      Apply("reshape", {{"shape", Ints{}}}, {Array::Of<int32_t>({1, 1}, {3})});
  ASSERT_TRUE(scalar.ok()) << Message(scalar.status());
  EXPECT_EQ(scalar->shape, Shape{});
  const auto ragged =
      Apply("reshape", {{"shape", Ints{8, 15}}}, {Array(in).Open()});
  EXPECT_EQ(ragged->bytes, in.bytes);
  const auto wrong =
      Apply("reshape", {{"shape", Ints{7, 15}}}, {Array(in).Open()});
  EXPECT_THAT(std::string(Message(wrong.status())),
              HasSubstr("reshape: 120 elements do not fill the shape (7, 15)"));
}

TEST(Reshape, TakesSizesOfTheInputsAxes) {
  const Array in = RandomArray<float>({4, 6, 5});
  struct Case {
    Ints shape, axes;
    Shape wanted;
  };
  for (const Case& each : {Case{{0, 1, -1, 0}, {0, -1, -1, 2}, {4, 1, 6, 5}},
                           Case{{1, 1, 1}, {2, 1, 0}, {5, 6, 4}},
                           Case{{-1, 0}, {-1, 1}, {20, 6}}}) {
    const Node reshape{
        "reshape", {}, {{"shape", each.shape}, {"axes", each.axes}}};
    const auto result = Apply({reshape}, {in});
    ASSERT_TRUE(result.ok()) << Message(result.status());
    EXPECT_EQ(result->shape, each.wanted);
    EXPECT_EQ(result->bytes, in.bytes);
    // An output has one size for all samples.
    const Node fixed{"reshape", {}, {{"shape", each.wanted}}};
    const auto open = Apply({reshape, fixed}, {Array(in).Open()});
    ASSERT_TRUE(open.ok()) << Message(open.status());
    EXPECT_EQ(open->bytes, in.bytes);
  }
  const auto wrong =
      Apply({Node{"reshape", {}, {{"shape", Ints{0, 0}}, {"axes", Ints{0, 1}}}},
             Node{"reshape", {}, {{"shape", Ints{24}}}}},
            {Array(in).Open()});
  EXPECT_THAT(std::string(Message(wrong.status())),
              HasSubstr("120 elements do not fill the shape (4, 6)"));
}

TEST(Slice, IsAPartOfTheInput) {
  const char* const policies[] = {"error", "pad", "trim"};
  for (int round = 0; round < 300; ++round) {
    const int64_t rank = 1 + Below(4);
    const Array in = RandomArray<uint8_t>(RandomShape(rank, 8));
    const std::string policy = policies[Below(3)];
    Shape start, length, want = in.shape, shift(rank);
    bool inside = true, empty = false;
    for (int64_t axis = 0; axis < rank; ++axis) {
      start.push_back(Below(12) - 4);
      length.push_back(1 + Below(8));
      int64_t begin = start.back(), end = begin + length.back();
      inside = inside && begin >= 0 && end <= in.shape[axis];
      if (policy == "trim") {
        begin = std::clamp<int64_t>(begin, 0, in.shape[axis]);
        end = std::clamp<int64_t>(end, 0, in.shape[axis]);
      }
      shift[axis] = begin;
      want[axis] = end - begin;
      empty = empty || begin >= end;
    }
    Args args = {{"start", start},
                 {"fill_values", Floats{9}},
                 {"out_of_bounds_policy", Text(policy.c_str())}};
    if (Below(2) == 0) {
      args["shape"] = length;
    } else {
      for (int64_t axis = 0; axis < rank; ++axis) length[axis] += start[axis];
      args["end"] = length;
    }
    const auto result = Apply("slice", args, {in});
    if (empty || (policy == "error" && !inside)) {
      ASSERT_FALSE(result.ok());
      continue;
    }
    ASSERT_RESULT(result, Shifted<uint8_t>(in, want, shift, {uint8_t{9}}));
  }
}

TEST(Slice, RoundsSharesAsDali) {
  // DALI 2.4's results on ten elements.
  const std::vector<uint8_t> ten{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  const auto slice = [&](double start, double length) {
    return Apply("slice",
                 {{"rel_start", Floats{start}}, {"rel_shape", Floats{length}}},
                 {Array::Of<uint8_t>({10}, ten)})
        ->Values<uint8_t>();
  };
  using Bytes = std::vector<uint8_t>;
  EXPECT_EQ(slice(.25, .5), (Bytes{3, 4, 5, 6, 7}));
  EXPECT_EQ(slice(.15, .35), (Bytes{2, 3, 4}));
  EXPECT_EQ(slice(.05, .9), (Bytes{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(slice(.25, .3), (Bytes{3, 4, 5}));
  // 0.0025 × 200 is 0.5 as a float, and less as a double.
  EXPECT_EQ(
      Apply("slice", {{"rel_start", Floats{.0025}}, {"rel_shape", Floats{.5}}},
            {RandomArray<uint8_t>({200})})
          ->shape,
      Shape{99});
}

TEST(Slice, StartsWhereTheSampleSays) {
  const Array in = RandomArray<uint8_t>({20, 30, 3});
  const Args args = {{"axes", Ints{0, 1}},
                     {"shape", Ints{5, 6}},
                     {"offset_0", FieldOf(1)},
                     {"offset_1", FieldOf(2)}};
  const auto result =
      Apply("slice", args, {in, Array::Scalar(7.4f), Array::Scalar(23.5f)});
  ASSERT_RESULT(result,
                Shifted<uint8_t>(in, {5, 6, 3}, {7, 24, 0}, {uint8_t{0}}));
  const auto outside =
      Apply("slice", args, {in, Array::Scalar(16), Array::Scalar(0)});
  EXPECT_THAT(std::string(Message(outside.status())),
              HasSubstr("slice: slice of the elements 16 to 21 of axis 0, "
                        "which has 20"));
  const auto nan =
      Apply("slice", args, {in, Array::Scalar(NAN), Array::Scalar(0)});
  EXPECT_THAT(std::string(Message(nan.status())),
              HasSubstr("slice: argument \"offset_0\" is nan"));
}

TEST(Erase, FillsRegions) {
  for (int round = 0; round < 200; ++round) {
    const Array in = RandomArray<uint8_t>({1 + Below(9), 1 + Below(9), 3});
    Floats anchor, shape;
    for (int64_t i = 2 * Below(4); i > 0; --i) {
      anchor.push_back(Below(120) / 10.0 - 3);
      shape.push_back(Below(70) / 10.0);
    }
    const std::vector<uint8_t> fill{1, 2, 3};
    std::vector<uint8_t> want;
    ForEach(in.shape, [&](const Shape& at) {
      bool erased = false;
      for (size_t r = 0; r < shape.size(); r += 2) {
        bool in_region = true;
        for (size_t i = 0; i < 2; ++i) {
          const auto begin =
              static_cast<int64_t>(static_cast<float>(anchor[r + i]));
          const auto end =
              static_cast<int64_t>(static_cast<float>(anchor[r + i]) +
                                   static_cast<float>(shape[r + i]));
          in_region = in_region && at[i] >= begin && at[i] < end;
        }
        erased = erased || in_region;
      }
      want.push_back(erased ? fill[at[2]] : At<uint8_t>(in, at));
    });
    const auto result = Apply(
        "erase",
        {{"anchor", anchor}, {"shape", shape}, {"fill_value", Floats{1, 2, 3}}},
        {in});
    ASSERT_RESULT(result, Array::Of<uint8_t>(in.shape, want));
  }
}

TEST(Erase, TakesARegionOfTheSample) {
  const Array in = RandomArray<float>({10, 20, 1});
  const auto erase = [&](float y, float height, bool enable) {
    return Apply(
        "erase",
        {{"normalized", Value(true)},
         {"y", FieldOf(1)},
         {"height", FieldOf(2)},
         {"width", Value(0.25)},
         {"x", Value(0.5)},
         {"enable", FieldOf(3)},
         {"fill_value", Floats{-1}}},
        {in, Array::Scalar(y), Array::Scalar(height), Array::Flag(enable)});
  };
  std::vector<float> want = in.Values<float>();
  EXPECT_EQ(erase(.3f, .2f, false)->Values<float>(), want);
  EXPECT_EQ(erase(.3f, 0, true)->Values<float>(), want);
  for (int y = 3; y < 5; ++y)
    for (int x = 10; x < 15; ++x) want[y * 20 + x] = -1;
  EXPECT_EQ(erase(.3f, .2f, true)->Values<float>(), want);
  EXPECT_THAT(std::string(Message(erase(0, -.5f, true).status())),
              HasSubstr("erase: argument \"height\" is -0.5, want a number 0"));
}

TEST(CropMirrorNormalize, IsAWindowMirroredAndNormalized) {
  const char* const policies[] = {"error", "pad", "trim"};
  for (int round = 0; round < 150; ++round) {
    const int64_t channels = 1 + Below(4);
    const Array in =
        RandomArray<uint8_t>({1 + Below(9), 1 + Below(9), channels});
    const std::string policy = policies[Below(3)];
    const Shape crop = {1 + Below(11), 1 + Below(11)};
    const double pos[] = {Below(101) / 100.0, Below(101) / 100.0};
    const bool mirror = Below(2) == 0, planes = Below(2) == 0,
               four = Below(2) == 0;
    Floats mean, std;
    for (int64_t c = 0; c < channels; ++c) {
      mean.push_back(Below(1000) / 10.0);
      std.push_back(1 + Below(1000) / 10.0);
    }
    int64_t at[2];
    Shape size = crop;
    bool inside = true;
    for (int i = 0; i < 2; ++i) {
      inside = inside && crop[i] <= in.shape[i];
      at[i] = std::llround(pos[i] * static_cast<double>(in.shape[i] - crop[i]));
      if (policy == "trim" && crop[i] > in.shape[i]) {
        at[i] = 0;
        size[i] = in.shape[i];
      }
    }
    const auto result = Apply("crop_mirror_normalize",
                              {{"crop", crop},
                               {"pos_y", Value(pos[0])},
                               {"pos_x", Value(pos[1])},
                               {"mirror", FieldOf(1)},
                               {"mean", mean},
                               {"std", std},
                               {"scale", Value(3.0)},
                               {"shift", Value(-0.5)},
                               {"pad_output", Value(four)},
                               {"fill_values", Floats{-7}},
                               {"output_layout", Text(planes ? "CHW" : "HWC")},
                               {"out_of_bounds_policy", Text(policy.c_str())}},
                              {in, Array::Flag(mirror)});
    if (policy == "error" && !inside) {
      ASSERT_FALSE(result.ok());
      continue;
    }
    const int64_t depth = four && channels == 3 ? 4 : channels;
    ASSERT_TRUE(result.ok()) << Message(result.status());
    ASSERT_EQ(result->shape, planes ? (Shape{depth, size[0], size[1]})
                                    : (Shape{size[0], size[1], depth}));
    ForEach({size[0], size[1], depth}, [&](const Shape& i) {
      const int64_t y = at[0] + i[0], x = at[1] + i[1], c = i[2];
      const int64_t to_x = mirror ? size[1] - 1 - i[1] : i[1];
      double want = -7;
      if (c >= channels)
        want = 0;
      else if (y >= 0 && y < in.shape[0] && x >= 0 && x < in.shape[1])
        want = (At<uint8_t>(in, {y, x, c}) - mean[c]) * 3 / std[c] - 0.5;
      const float got = At<float>(
          *result, planes ? Shape{c, i[0], to_x} : Shape{i[0], to_x, c});
      ASSERT_NEAR(got, want, 1e-4 * (1 + std::fabs(want)));
    });
  }
}

TEST(CropMirrorNormalize, GivesEveryTypeOfEveryType) {
  const Array bytes = Array::Of<uint8_t>({1, 4, 1}, {0, 100, 200, 255});
  const Array floats = Array::Of<float>({1, 4, 1}, {0, 100, 200, 255});
  for (const char* dtype : {"uint8", "float16", "float32"}) {
    const Args args = {{"dtype", Text(dtype)}, {"scale", Value(1.5)}};
    const auto a = Apply("crop_mirror_normalize", args, {bytes});
    ASSERT_TRUE(a.ok()) << Message(a.status());
    EXPECT_EQ(a->bytes, Apply("crop_mirror_normalize", args, {floats})->bytes);
    if (a->dtype == DType::kUint8) {
      EXPECT_EQ(a->Values<uint8_t>(), (std::vector<uint8_t>{0, 150, 255, 255}));
    }
  }
}

// Boxes of a sample; another sample may have any number of them.
Array Boxes(int64_t count) {
  std::vector<float> values;
  for (int64_t i = 0; i < count * 4; ++i)
    values.push_back(static_cast<float>(i + 1));
  return Array::Of<float>({count, 4}, values).Open();
}

TEST(Length, CountsTheElementsAlongAnAxis) {
  for (const int64_t count : {0, 1, 7}) {
    const auto boxes = Apply("length", {}, {Boxes(count)});
    ASSERT_TRUE(boxes.ok()) << Message(boxes.status());
    EXPECT_EQ(*boxes, Array::Of<int32_t>({}, {static_cast<int32_t>(count)}));
    EXPECT_EQ(*Apply("length", {{"axis", Value(int64_t{1})}}, {Boxes(count)}),
              Array::Of<int32_t>({}, {4}));
  }
  EXPECT_THAT(
      std::string(Message(
          Apply("length", {{"axis", Value(int64_t{2})}}, {Boxes(1)}).status())),
      HasSubstr("\"axis\" is 2, want one of the 2 axes of float32 "
                "(?, 4)"));
  EXPECT_FALSE(Apply("length", {}, {Array::Scalar(1)}).ok());
}

TEST(Pad, GivesASampleOfAnyLengthOneSize) {
  const Args args = {
      {"axes", Ints{0}}, {"shape", Ints{3}}, {"fill_value", Value(-1.0)}};
  for (const int64_t count : {0, 2, 3}) {
    const auto padded = Apply("pad", args, {Boxes(count)});
    ASSERT_TRUE(padded.ok()) << Message(padded.status());
    std::vector<float> want = Boxes(count).Values<float>();
    want.resize(12, -1);
    EXPECT_EQ(*padded, Array::Of<float>({3, 4}, want));
  }
  EXPECT_THAT(std::string(Message(Apply("pad", args, {Boxes(4)}).status())),
              HasSubstr("axis 0 has 4 elements, more than \"shape\" gives it: "
                        "3"));
}

TEST(Slice, CutsAndPadsASampleOfAnyLengthToOneSize) {
  for (const int64_t count : {0, 2, 3, 5}) {
    const auto first = Apply("slice",
                             {{"axes", Ints{0}},
                              {"shape", Ints{3}},
                              {"out_of_bounds_policy", Text("pad")},
                              {"fill_values", Floats{-1}}},
                             {Boxes(count)});
    ASSERT_TRUE(first.ok()) << Message(first.status());
    std::vector<float> want = Boxes(count).Values<float>();
    want.resize(12, -1);
    EXPECT_EQ(*first, Array::Of<float>({3, 4}, want));
  }
}

}  // namespace
}  // namespace leat::worker
