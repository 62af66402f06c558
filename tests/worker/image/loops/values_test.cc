// SPDX-License-Identifier: Apache-2.0
#include "worker/image/loops/values.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "gmock/gmock.h"
#include "tests/worker/image/operators/values_support.h"
#include "worker/image/loops/arithmetic.h"
#include "worker/image/loops/tensor.h"

namespace leat::worker::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Bytes = std::vector<uint8_t>;
using Singles = std::vector<float>;
using Int32s = std::vector<int32_t>;

uint8_t Rounded(double x) {
  return static_cast<uint8_t>(
      std::nearbyint(std::min(255.0, std::max(0.0, x))));
}

TEST(ValueLoops, ByteOfRoundsAsCastDoes) {
  for (int i = -2000; i < 3000; ++i)
    for (const float x : {i / 8.0f, std::nextafter(i / 8.0f, -9e9f),
                          std::nextafter(i / 8.0f, 9e9f)})
      ASSERT_EQ(ByteOf(x), Converted<uint8_t>(x)) << x;
  EXPECT_EQ(ByteOf(NAN), 0);
  EXPECT_EQ(ByteOf(INFINITY), 255);
  EXPECT_EQ(ByteOf(-INFINITY), 0);
}

TEST(ValueLoops, AreTheSameWithAndWithoutVectors) {
  const ValueLoops &plain = PlainValueLoops(), &best = BestValueLoops();
  const Bytes in = Ramp().Values<uint8_t>();
  const ColorMatrix matrix = {
      {{.9f, .2f, -.1f}, {-.3f, 1.2f, .01f}, {.1f, .1f, .7f}}, {3, -7, .5f}};
  for (const size_t count : {0, 1, 3, 7, 31, 33, 1023, 1024}) {
    Bytes a(3 * 1024), b(3 * 1024);
    plain.linear_bytes(in.data(), count, 1.7f, -20.3f, a.data());
    best.linear_bytes(in.data(), count, 1.7f, -20.3f, b.data());
    EXPECT_EQ(a, b);
    plain.matrix_bytes(matrix, in.data(), count, a.data());
    best.matrix_bytes(matrix, in.data(), count, b.data());
    EXPECT_EQ(a, b);
    plain.gray_bytes(matrix, in.data(), count, a.data());
    best.gray_bytes(matrix, in.data(), count, b.data());
    EXPECT_EQ(a, b);
    plain.every_third(in.data() + 2, count, a.data());
    best.every_third(in.data() + 2, count, b.data());
    EXPECT_EQ(a, b);
    if (count > 0) {
      EXPECT_EQ(b[count - 1], in[3 * count - 1]);
    }
    Singles f(3 * 1024), g(3 * 1024), h(3 * 1024), i(3 * 1024);
    plain.bytes_to_floats(in.data(), 3 * count, f.data());
    best.bytes_to_floats(in.data(), 3 * count, g.data());
    EXPECT_EQ(f, g);
    plain.matrix_floats(matrix, f.data(), count, h.data());
    best.matrix_floats(matrix, f.data(), count, i.data());
    EXPECT_EQ(h, i);
  }
}

TEST(ValueLoops, OfBytesRoundAndSaturateAsByteOfDoes) {
  Bytes in(256), out(256);
  std::iota(in.begin(), in.end(), uint8_t{0});
  for (const float factor :
       {0.0f, -0.0f, 0.5f, 1.0f, 1.7f, -0.4f, 1e-30f, 1e12f, -1e12f})
    for (const float constant :
         {0.0f, -0.0f, 0.5f, -0.25f, 255.5f, -1e9f, 8388608.0f, -8388608.0f,
          3e38f, -3e38f, INFINITY, -INFINITY, NAN, -NAN}) {
      BestValueLoops().linear_bytes(in.data(), in.size(), factor, constant,
                                    out.data());
      for (size_t i = 0; i < in.size(); ++i)
        ASSERT_EQ(out[i], ByteOf(Linear(in[i], factor, constant)))
            << +in[i] << " * " << factor << " + " << constant;
      const ColorMatrix matrix = {{{factor, 0.3f, -0.2f}}, {constant}};
      if (std::isnan(constant)) continue;
      BestValueLoops().gray_bytes(matrix, in.data(), in.size() / 3, out.data());
      for (size_t i = 0; i < in.size() / 3; ++i)
        ASSERT_EQ(out[i], ByteOf(MatrixRow(matrix, 0, in[3 * i], in[3 * i + 1],
                                           in[3 * i + 2])));
    }
}

TEST(MirrorRow, TurnsPixelsOfAnySizeAndNumberAndNothingElse) {
  for (const size_t size : {1, 3, 4, 6, 12})
    for (size_t pixels = 0; pixels < 100; ++pixels) {
      std::vector<std::byte> row(pixels * size + 2), wanted;
      for (size_t i = 0; i < row.size(); ++i) row[i] = std::byte(i * 37 + 1);
      wanted = row;
      for (size_t p = 0; p < pixels; ++p)
        for (size_t i = 0; i < size; ++i)
          wanted[1 + p * size + i] = row[1 + (pixels - 1 - p) * size + i];
      MirrorRow(row.data() + 1, pixels, size);
      ASSERT_EQ(row, wanted) << pixels << " pixels of " << size;
    }
}

TEST(ArithmeticLoops, AreTheSameWithAndWithoutVectors) {
  std::mt19937 random(1);
  std::vector<uint64_t> a(1024), b(1024), plain(1024), best(1024);
  for (auto* list : {&a, &b})
    for (uint64_t& word : *list) word = uint64_t{random()} << 32 | random();
  for (uint64_t& word : b) word |= 0x0101010101010101u;  // no divisor is 0
  for (const char* op :
       {"add", "sub", "mul", "div", "floordiv", "min", "max", "lt", "le", "eq",
        "ne", "bitwise_and", "bitwise_or", "bitwise_xor", "neg", "abs"})
    for (const DType dtype :
         {DType::kUint8, DType::kInt32, DType::kInt64, DType::kFloat32}) {
      const BinaryLoops loops = FindBinaryLoops(op, dtype);
      if (loops.plain == nullptr) continue;
      for (const size_t count : {1, 5, 100, 1000}) {
        loops.plain(a.data(), b.data(), count, plain.data());
        loops.best(a.data(), b.data(), count, best.data());
        EXPECT_EQ(plain, best) << op << " " << Name(dtype);
      }
    }
}

TEST(Brightness, FollowsItsFormulaOnBytesAndFloats) {
  const Array image = Ramp();
  const Bytes in = image.Values<uint8_t>();
  const Args args = {{"brightness", Value(1.3)},
                     {"brightness_shift", Value(-0.1)},
                     {"contrast", Value(0.7)}};
  const Bytes out =
      Computed("brightness_contrast", args, {image}).Values<uint8_t>();
  Args as_floats = args;
  as_floats["dtype"] = Text("float32");
  const Singles floats =
      Computed("brightness_contrast", as_floats, {image}).Values<float>();
  for (size_t i = 0; i < in.size(); ++i) {
    const double linear = 1.3 * (128 + 0.7 * (in[i] - 128.0));
    ASSERT_NEAR(out[i], Rounded(linear - 0.1 * 255), linear < 25.6 ? 1 : 0.5);
    ASSERT_NEAR(floats[i], linear - 0.1, 1e-4);
  }
  EXPECT_EQ(Computed("brightness", {}, {image}), image);
  EXPECT_EQ(Computed("contrast", {}, {image}), image);
  EXPECT_THAT(
      Computed("contrast",
               {{"contrast", Value(0.0)}, {"contrast_center", Floats{7}}},
               {image})
          .Values<uint8_t>(),
      ::testing::Each(7));
}

TEST(Brightness, TakesAValueForEachSampleAndRefusesNone) {
  const Array image = Array::Of<uint8_t>({1, 1, 3}, {10, 20, 200});
  const Args args = {{"brightness", FieldOf(1)}};
  EXPECT_THAT(Computed("brightness", args, {image, Array::Scalar(1.5f)})
                  .Values<uint8_t>(),
              ElementsAre(15, 30, 255));
  EXPECT_THAT(Refusal("brightness", args, {image, Array::Scalar(NAN)}),
              AllOf(HasSubstr("brightness"), HasSubstr("nan")));
  EXPECT_THAT(Refusal("brightness", {{"brightness", Value(2e6)}}, {image}),
              HasSubstr("-1000000 to 1000000"));
}

TEST(ColorTwist, TurnsGraysIntoThemselvesAndComposes) {
  const Array grays =
      Array::Of<float>({1, 2, 3}, Singles{.25, .25, .25, .75, .75, .75});
  const Array image =
      Array::Of<float>({1, 2, 3}, Singles{.9f, .2f, .1f, 0, .5f, 1});
  const Singles turned =
      Computed("hue", {{"hue", Value(77.0)}}, {grays}).Values<float>();
  for (int i = 0; i < 6; ++i) EXPECT_NEAR(turned[i], i < 3 ? .25 : .75, 2e-3);
  // A third of a turn, three times.
  Array thrice = image;
  for (int i = 0; i < 3; ++i)
    thrice = Computed("hue", {{"hue", Value(120.0)}}, {thrice});
  const Singles want = image.Values<float>(), got = thrice.Values<float>();
  for (int i = 0; i < 6; ++i) EXPECT_NEAR(got[i], want[i], 1e-5);
  const Array both = Computed(
      "hsv", {{"saturation", Value(0.5)}, {"value", Value(2.0)}}, {image});
  const Array first =
      Computed("saturation", {{"saturation", Value(0.5)}}, {image});
  const Array one_by_one =
      Computed("brightness", {{"brightness", Value(2.0)}}, {first});
  for (int i = 0; i < 6; ++i)
    EXPECT_NEAR(both.Values<float>()[i], one_by_one.Values<float>()[i], 1e-5);
  EXPECT_EQ(Computed("color_twist", {}, {Ramp()}), Ramp());
  EXPECT_THAT(Refusal("hue", {}, {Array::Of<uint8_t>({1, 1, 1}, {3})}),
              HasSubstr("want 3 channels"));
}

TEST(ColorSpaces, AreThoseOfTheStandard) {
  const Array pixels = Array::Of<uint8_t>(
      {1, 4, 3}, {255, 0, 0, 0, 255, 0, 255, 255, 255, 10, 20, 30});
  const auto converted = [](const Array& in, const char* from, const char* to) {
    return Computed("color_space_conversion",
                    {{"image_type", Text(from)}, {"output_type", Text(to)}},
                    {in});
  };
  EXPECT_THAT(
      converted(pixels, "rgb", "ycbcr").Values<uint8_t>(),
      ElementsAre(81, 90, 240, 145, 54, 34, 235, 128, 128, 32, 134, 123));
  EXPECT_THAT(converted(pixels, "rgb", "gray").Values<uint8_t>(),
              ElementsAre(76, 150, 255, 18));
  EXPECT_THAT(converted(pixels, "bgr", "gray").Values<uint8_t>(),
              ElementsAre(29, 150, 255, 22));
  EXPECT_THAT(converted(pixels, "ycbcr", "gray").Values<uint8_t>(),
              ElementsAre(255, 0, 255, 0));
  const Array swapped = converted(pixels, "rgb", "bgr");
  EXPECT_EQ(converted(swapped, "bgr", "rgb"), pixels);
  EXPECT_EQ(converted(swapped, "bgr", "ycbcr"),
            converted(pixels, "rgb", "ycbcr"));
  const Array gray = converted(pixels, "rgb", "gray");
  EXPECT_EQ(gray.shape, (Shape{1, 4, 1}));
  EXPECT_THAT(
      converted(gray, "gray", "rgb").Values<uint8_t>(),
      ElementsAre(76, 76, 76, 150, 150, 150, 255, 255, 255, 18, 18, 18));
  EXPECT_EQ(converted(gray, "gray", "ycbcr").Values<uint8_t>()[0], 81);
}

TEST(Arithmetic, PromotesAsDaliDoes) {
  const auto type = [](Array a, Array b) {
    return Computed("add", {}, {std::move(a), std::move(b)}, 2).dtype;
  };
  const Array byte = Array::Of<uint8_t>({}, {3}), flag = Array::Flag(true);
  const Array whole = Array::Of<int32_t>({}, {3});
  const Array wide = Array::Of<int64_t>({}, {3}), real = Array::Scalar(3);
  EXPECT_EQ(type(byte, byte), DType::kUint8);
  EXPECT_EQ(type(byte, whole), DType::kInt32);
  EXPECT_EQ(type(whole, wide), DType::kInt64);
  EXPECT_EQ(type(wide, real), DType::kFloat32);
  EXPECT_EQ(type(flag, byte), DType::kUint8);
  EXPECT_EQ(Computed("div", {}, {byte, byte}, 2).dtype, DType::kFloat32);
  EXPECT_EQ(Computed("mul", {}, {flag, flag}, 2).dtype, DType::kBool);
  EXPECT_THAT(Refusal("add", {}, {flag, flag}, 2), HasSubstr("bool"));
  EXPECT_THAT(Refusal("bitwise_and", {}, {real, byte}, 2),
              HasSubstr("float32"));
}

TEST(Arithmetic, WrapsDividesAndCompares) {
  const Array a = Array::Of<uint8_t>({3}, {200, 100, 3});
  const Array b = Array::Of<uint8_t>({3}, {100, 100, 5});
  const auto bytes = [&](const char* op) {
    return Computed(op, {}, {a, b}, 2).Values<uint8_t>();
  };
  EXPECT_THAT(bytes("add"), ElementsAre(44, 200, 8));
  EXPECT_THAT(bytes("sub"), ElementsAre(100, 0, 254));
  EXPECT_THAT(bytes("mul"), ElementsAre(32, 16, 15));
  EXPECT_THAT(bytes("floordiv"), ElementsAre(2, 1, 0));
  EXPECT_THAT(bytes("min"), ElementsAre(100, 100, 3));
  EXPECT_THAT(bytes("max"), ElementsAre(200, 100, 5));
  EXPECT_THAT(bytes("lt"), ElementsAre(0, 0, 1));
  EXPECT_THAT(bytes("le"), ElementsAre(0, 1, 1));
  EXPECT_THAT(bytes("gt"), ElementsAre(1, 0, 0));
  EXPECT_THAT(bytes("ge"), ElementsAre(1, 1, 0));
  EXPECT_THAT(bytes("eq"), ElementsAre(0, 1, 0));
  EXPECT_THAT(bytes("ne"), ElementsAre(1, 0, 1));
  EXPECT_THAT(bytes("bitwise_xor"), ElementsAre(172, 0, 6));
  EXPECT_THAT(Computed("div", {}, {a, b}, 2).Values<float>(),
              ElementsAre(2, 1, 0.6f));
  const int32_t least = std::numeric_limits<int32_t>::min();
  const Array s = Array::Of<int32_t>({4}, Int32s{-7, 7, least, -6});
  const Array d = Array::Of<int32_t>({4}, Int32s{2, -2, -1, 3});
  EXPECT_THAT(Computed("floordiv", {}, {s, d}, 2).Values<int32_t>(),
              ElementsAre(-4, -4, least, -2));
  EXPECT_THAT(Computed("abs", {}, {s}).Values<int32_t>(),
              ElementsAre(7, 7, least, 6));
  EXPECT_THAT(Computed("neg", {}, {a}).Values<uint8_t>(),
              ElementsAre(56, 156, 253));
  EXPECT_THAT(Computed("invert", {}, {a}).Values<uint8_t>(),
              ElementsAre(55, 155, 252));
  EXPECT_THAT(Computed("invert", {}, {Array::Flag(true)}).Values<uint8_t>(),
              ElementsAre(0));
  EXPECT_THAT(Refusal("floordiv", {},
                      {s, Array::Of<int32_t>({4}, Int32s{1, 0, 1, 1})}, 2),
              HasSubstr("divisor is 0"));
}

// Compares every pair of shapes that fits with a plain walk over the indices.
TEST(Arithmetic, BroadcastsAsNumpyDoes) {
  const std::vector<Shape> shapes = {
      {},          {3},        {1},         {40, 3},   {40, 1},    {1, 3},
      {21, 40, 3}, {21, 1, 1}, {21, 40, 1}, {1, 1, 3}, {21, 1, 3}, {1, 40, 1}};
  const auto iota = [](const Shape& shape, int scale) {
    int64_t count = 1;
    for (const int64_t size : shape) count *= size;
    Int32s values;
    for (int64_t i = 0; i < count; ++i)
      values.push_back(static_cast<int32_t>(i) * scale);
    return Array::Of<int32_t>(shape, values);
  };
  const auto at = [](const Array& array, int64_t y, int64_t x, int64_t c) {
    const int64_t index[] = {y, x, c};
    int64_t offset = 0;
    for (size_t i = 0; i < array.shape.size(); ++i) {
      const int64_t here = index[3 - array.shape.size() + i];
      offset = offset * array.shape[i] + (array.shape[i] == 1 ? 0 : here);
    }
    int32_t value;
    memcpy(&value, &array.bytes[4 * offset], 4);
    return value;
  };
  for (const Shape& left : shapes)
    for (const Shape& right : shapes) {
      const Array a = iota(left, 1), b = iota(right, 10'000);
      const Array sum = Computed("add", {}, {a, b}, 2);
      for (int y = 0; y < 21; ++y)
        for (int x = 0; x < 40; ++x)
          for (int c = 0; c < 3; ++c)
            ASSERT_EQ(at(sum, y, x, c), at(a, y, x, c) + at(b, y, x, c));
    }
  EXPECT_THAT(Refusal("add", {}, {iota({3}, 1), iota({4}, 1)}, 2),
              AllOf(HasSubstr("(3,)"), HasSubstr("(4,)")));
}

TEST(Where, ChoosesByValue) {
  const Array which = Array::Of<uint8_t>({2, 2}, {1, 0, 0, 1}).As(DType::kBool);
  const Array a = Array::Of<uint8_t>({2, 2}, {1, 2, 3, 4});
  EXPECT_THAT(
      Computed("where", {}, {which, a, Array::Scalar(.5f)}, 3).Values<float>(),
      ElementsAre(1, .5f, .5f, 4));
  EXPECT_THAT(Refusal("where", {}, {a, a, a}, 3), HasSubstr("want bool"));
}

TEST(Constant, IsCheckedAndGivenAsItIs) {
  const Array none = Array::Flag(true);
  const Array given = Computed("constant",
                               {{"values", Floats{1, -2.5, 300, 4}},
                                {"shape", Ints{2, 2}},
                                {"dtype", Text("uint8")}},
                               {none}, 0);
  EXPECT_EQ(given.shape, (Shape{2, 2}));
  EXPECT_THAT(given.Values<uint8_t>(), ElementsAre(1, 0, 255, 4));
  EXPECT_THAT(
      Refusal("constant", {{"values", Floats{1, 2, 3}}, {"shape", Ints{2, 2}}},
              {none}, 0),
      HasSubstr("3 elements"));
}

}  // namespace
}  // namespace leat::worker::testing
