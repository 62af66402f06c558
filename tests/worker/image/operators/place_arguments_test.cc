// SPDX-License-Identifier: Apache-2.0
//
// Arguments that the operators on place and shape refuse.
#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/image/operators/support.h"

namespace leat::worker {
namespace {

using testing::Apply;
using testing::Args;
using testing::Array;
using testing::Floats;
using ::testing::HasSubstr;
using testing::Ints;
using testing::Text;

TEST(GeometryOperators, WrongArgumentsAreRefusedWhenAJobIsCreated) {
  const Array image =
      Array::Of<uint8_t>({8, 9, 3}, std::vector<uint8_t>(8 * 9 * 3));
  const struct {
    const char* op;
    Args args;
    const char* message;
  } kWrong[] = {
      {"pad", {{"fill_value", Value(NAN)}}, "fill_value"},
      {"pad", {{"axes", Ints{3}}}, "want distinct axes of 3"},
      {"pad", {{"axes", Ints{1, 1}}}, "want distinct axes of 3"},
      {"pad", {{"shape", Ints{1, 2}}}, "want 3, one for each"},
      {"pad", {{"align", Ints{0}}}, "align"},
      {"reshape", {{"shape", Ints{-1, -1}}}, "do not fill"},
      {"reshape", {{"shape", Ints{5, -1}}}, "do not fill"},
      {"reshape", {{"shape", Ints{0, -1}}}, "do not fill"},
      {"reshape", {{"shape", Ints(9, 1)}}, "want at most 8"},
      {"reshape",
       {{"shape", Ints{1, 1}}, {"axes", Ints{0}}},
       "\"axes\" is [0], want an axis"},
      {"reshape",
       {{"shape", Ints{1}}, {"axes", Ints{3}}},
       "or -1, for each of 1 sizes"},
      {"slice",
       {{"start", Ints{0, 0, 0}}, {"rel_start", Floats{0, 0, 0}}},
       "want one of them"},
      {"slice",
       {{"end", Ints{1, 1, 1}}, {"shape", Ints{1, 1, 1}}},
       "want one of them"},
      {"slice", {{"rel_start", Floats{INFINITY}}}, "rel_start"},
      {"slice",
       {{"start", Ints{9}}, {"axes", Ints{0}}},
       "elements 9 to 8 of axis 0"},
      {"slice", {{"fill_values", Floats{1, 2}}}, "fill_values"},
      {"slice", {{"axes", Ints{0}}, {"offset_1", Value(1.0)}}, "offset_1"},
      {"erase", {{"shape", Floats{1, 2, 3}}}, "a multiple of the 2 axes"},
      {"erase", {{"shape", Floats{-1, 2}}}, "shape"},
      {"erase", {{"fill_value", Floats{1, NAN, 2}}}, "fill_value"},
      {"crop_mirror_normalize",
       {{"crop", Ints{9, 9}}},
       "larger than the image"},
      {"crop_mirror_normalize", {{"crop", Ints{1, 2, 3}}}, "crop"},
      {"crop_mirror_normalize", {{"mean", Floats{1, 2}}}, "mean"},
      {"crop_mirror_normalize", {{"std", Floats{0}}}, "std"},
      {"crop_mirror_normalize", {{"pos_x", Value(1.01)}}, "pos_x"},
      {"crop_mirror_normalize",
       {{"output_layout", Text("WHC")}},
       "output_layout"},
      {"rotate", {}, "angle"},
      {"rotate", {{"angle", Value(NAN)}, {"keep_size", Value(true)}}, "angle"},
      {"rotate",
       {{"angle", Value(1.)}, {"keep_size", Value(true)}, {"size", Ints{3}}},
       "both given"},
      {"rotate",
       {{"angle", Value(1.)}, {"fill_value", Floats{3, 4}}},
       "fill_value"},
      {"rotate",
       {{"angle", Value(1.)}, {"interpolation", Text("cubic")}},
       "interpolation"},
      {"warp_affine", {{"matrix", Floats{1, 2, 3}}}, "want 6"},
      {"warp_affine", {{"matrix", Floats{1, 0, INFINITY, 0, 1, 0}}}, "matrix"},
      {"warp_affine",
       {{"matrix", Floats{1, 2, 0, 2, 4, 0}}, {"inverse_map", Value(false)}},
       "determinant 0"},
      {"window", {}, "height"},
      {"window", {{"height", Value(3.)}}, "\"width\" is missing"},
      {"window",
       {{"height", Value(0.4)}, {"width", Value(3.)}},
       "\"height\" is 0.4, want at least a pixel"},
      {"window", {{"height", Value(3.)}, {"width", Value(NAN)}}, "width"},
      {"window", {{"height", Value(-3.)}, {"width", Value(3.)}}, "height"},
      {"window", {{"height", Value(1e9)}, {"width", Value(3.)}}, "height"},
      {"window",
       {{"height", Value(9.)}, {"width", Value(9.)}},
       "rows 0 to 9 and the columns 0 to 9, want at least a pixel, inside the "
       "image of 8 × 9"},
      {"window",
       {{"height", Value(5.)}, {"width", Value(5.)}, {"x", Value(4.5)}},
       "columns 5 to 10"},
      {"window",
       {{"height", Value(1.01)},
        {"width", Value(1.)},
        {"normalized_shape", Value(true)}},
       "\"height\" is 1.01, want a number 0 to 1"},
      {"window",
       {{"height", Value(3.)},
        {"width", Value(1.)},
        {"y", Value(2.)},
        {"normalized_anchor", Value(true)}},
       "\"y\" is 2, want a number 0 to 1"},
      {"random_crop", {{"area", Floats{0.5}}}, "area"},
      {"random_crop", {{"area", Floats{0.5, 0.4}}}, "area"},
      {"random_crop", {{"area", Floats{0, 0.4}}}, "area"},
      {"random_crop", {{"aspect", Floats{1, NAN}}}, "aspect"},
      {"random_crop", {{"attempts", Value(int64_t{0})}}, "attempts"},
      {"peek_shape", {}, "want an encoded image"},
      {"stored_bytes", {}, "want an encoded image"},
      {"gaussian_blur", {}, "both 0"},
      {"gaussian_blur", {{"window_size", Value(int64_t{4})}}, "odd"},
      {"gaussian_blur", {{"sigma", Value(-1.0)}}, "sigma"},
      {"jpeg_compression_distortion", {{"quality", Value(0.0)}}, "quality"},
  };
  for (const auto& [op, args, message] : kWrong) {
    const auto result = Apply(op, args, {image});
    ASSERT_FALSE(result.ok()) << op << " " << message;
    EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(Message(result.status())), HasSubstr(message))
        << op;
    EXPECT_THAT(std::string(Message(result.status())), HasSubstr(op));
  }
}

// The results have 2^64 bytes, which are 0 in 64 bits, and 2^80.
TEST(GeometryOperators, AResultOfMoreBytesThanANumberHoldsIsRefused) {
  const std::vector<Node> nodes = {{"pad", {}, {{"align", Ints{1 << 16}}}},
                                   {"length", {}, {}}};
  for (const Shape& shape : {Shape{1, 1, 1, 1}, Shape{1, 1, 1, 1, 1}}) {
    const Array one = Array::Of<uint8_t>(shape, {7}).Open();
    const auto result = Apply(nodes, {one});
    EXPECT_EQ(result.status().code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(Message(result.status())),
                HasSubstr("bytes of working memory, over the limit"));
  }
}

TEST(GeometryOperators, AnImageWithoutPixelsIsRefused) {
  const Node nodes[] = {
      {"rotate", {}, {{"angle", Value(30.)}, {"size", Ints{4}}}},
      {"rotate",
       {},
       {{"angle", Value(30.)}, {"size", Ints{4}}, {"rule", Text("dali")}}},
      {"warp_affine", {}, {{"size", Ints{4}}}},
      {"gaussian_blur", {}, {{"sigma", Value(1.)}}},
      {"jpeg_compression_distortion", {}, {}},
      {"augment",
       {},
       {{"operation", Text("rotate")}, {"magnitude", Value(30.)}}},
      {"augment",
       {},
       {{"operation", Text("contrast")}, {"magnitude", Value(.5)}}},
      {"resize", {}, {{"size", Ints{4}}}},
      {"random_resized_crop", {}, {{"size", Ints{4}}}},
  };
  for (const Node& node : nodes)
    for (const Shape& shape : {Shape{0, 8, 3}, Shape{8, 0, 3}}) {
      const Array none = Array::Of<uint8_t>(shape, {}).Open();
      const auto result = Apply({node, {"length", {}, {}}}, {none});
      EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument)
          << node.op;
    }
}

// Tables of weights grow with the sides.
TEST(GeometryOperators, AnImageOfAVeryLongSideIsNotResized) {
  constexpr int64_t kLong = (1 << 20) + 1;
  const Array image =
      Array::Of<uint8_t>({1, kLong, 1}, std::vector<uint8_t>(kLong)).Open();
  for (const char* op : {"resize", "random_resized_crop"}) {
    const auto result = Apply(op, {{"size", Ints{4}}}, {image});
    EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(Message(result.status())),
                HasSubstr("want sides of 1 to 1048576"));
  }
}

// Valid values for the arguments without a default.
Args Required(const OperatorInfo& info) {
  Args args;
  for (const ArgInfo& arg : info.args) {
    if (arg.default_value) continue;
    const double number = arg.min <= arg.max ? (arg.min + arg.max) / 2 : 1;
    if (arg.type == ArgType::kInts) args[arg.name] = Ints{4, 3};
    if (arg.type == ArgType::kFloats) args[arg.name] = Floats{number};
    if (arg.type == ArgType::kFloat) args[arg.name] = number;
    if (arg.type == ArgType::kInt) args[arg.name] = static_cast<int64_t>(4);
    if (arg.type == ArgType::kString && !arg.choices.empty())
      args[arg.name] = arg.choices[0];
  }
  return args;
}

TEST(AllOperators, ASamplesNumberThatIsNoneIsRefusedOrHarmless) {
  const Array image =
      Array::Of<uint8_t>({8, 9, 3}, std::vector<uint8_t>(8 * 9 * 3, 100));
  int tried = 0;
  for (const OperatorInfo& info : AllOperators()) {
    for (const ArgInfo& arg : info.args) {
      if (!arg.per_sample || arg.type != ArgType::kFloat || info.inputs != 1)
        continue;
      Args args = Required(info);
      args[arg.name] = testing::FieldOf(1);
      const auto apply = [&](float value) {
        return Apply(info.name.c_str(), args, {image, Array::Scalar(value)})
            .status();
      };
      if (!apply(0.5f).ok()) continue;
      ++tried;
      for (const float value : {NAN, INFINITY, -INFINITY, 3e38f, -3e38f}) {
        const absl::Status status = apply(value);
        if (status.ok()) continue;
        EXPECT_THAT(Message(status),
                    ::testing::AnyOf(HasSubstr(arg.name), HasSubstr(info.name)))
            << value;
      }
    }
  }
  EXPECT_GE(tried, 15);
}

// As in DALI's slice, products are floats, and both ends are rounded.
TEST(Window, LiesWhereItIsSaid) {
  std::vector<uint8_t> pixels(8 * 9);
  for (size_t i = 0; i < pixels.size(); ++i)
    pixels[i] = static_cast<uint8_t>(i);
  const Array image = Array::Of<uint8_t>({8, 9, 1}, pixels);
  const auto window = [&](Args args) {
    const auto result = Apply("window", std::move(args), {image});
    EXPECT_TRUE(result.ok()) << Message(result.status());
    return result.ok() ? *result : Array{};
  };
  EXPECT_EQ(window({{"y", Value(1.4)},
                    {"x", Value(6.5)},
                    {"height", Value(2.)},
                    {"width", Value(1.6)}}),
            Array::Of<uint8_t>({2, 2, 1}, {16, 17, 25, 26}));
  EXPECT_EQ(window({{"y", Value(0.5)},
                    {"x", Value(0.9)},
                    {"height", Value(0.25)},
                    {"width", Value(0.1)},
                    {"normalized_anchor", Value(true)},
                    {"normalized_shape", Value(true)}}),
            Array::Of<uint8_t>({2, 1, 1}, {44, 53}));
  EXPECT_EQ(window({{"y", Value(0.5)},
                    {"height", Value(1.)},
                    {"width", Value(3.)},
                    {"normalized_anchor", Value(true)}}),
            Array::Of<uint8_t>({1, 3, 1}, {36, 37, 38}));
  EXPECT_EQ(window({{"y", Value(7.)},
                    {"height", Value(0.125)},
                    {"width", Value(0.2)},
                    {"normalized_shape", Value(true)}}),
            Array::Of<uint8_t>({1, 2, 1}, {63, 64}));
}

}  // namespace
}  // namespace leat::worker
