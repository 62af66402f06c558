// SPDX-License-Identifier: Apache-2.0
//
// Compares rotate, warp_affine, gaussian_blur and jpeg_compression_distortion
// with slow references in double.
#include <cmath>
#include <random>

#include "core/hash.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/image/operators/support.h"
#include "worker/image/formulas/affine.h"

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
  static std::mt19937 random(6);
  return random;
}
int64_t Below(int64_t n) { return static_cast<int64_t>(Random()() % n); }
double Between(double low, double high) {
  return low + (high - low) * static_cast<double>(Random()()) / 4294967296.0;
}

std::vector<double> AsDoubles(const Array& image) {
  std::vector<double> values;
  if (image.dtype == DType::kUint8)
    for (const uint8_t v : image.Values<uint8_t>()) values.push_back(v);
  else
    for (const float v : image.Values<float>()) values.push_back(v);
  return values;
}

Array RandomImage(Shape shape, bool bytes) {
  std::vector<uint8_t> values(shape[0] * shape[1] * shape[2]);
  for (uint8_t& value : values) value = static_cast<uint8_t>(Below(256));
  if (bytes) return Array::Of<uint8_t>(std::move(shape), values);
  return Array::Of<float>(std::move(shape), {values.begin(), values.end()});
}

struct Reference {
  const Array& in;
  std::optional<double> fill;
  std::vector<double> pixels = AsDoubles(in);

  double At(int64_t y, int64_t x, int64_t c) const {
    const int64_t height = in.shape[0], width = in.shape[1];
    if (fill && (x < 0 || y < 0 || x >= width || y >= height)) return *fill;
    x = std::clamp<int64_t>(x, 0, width - 1);
    y = std::clamp<int64_t>(y, 0, height - 1);
    return pixels[(y * width + x) * in.shape[2] + c];
  }
  double Linear(double y, double x, int64_t c) const {
    y -= 0.5;
    x -= 0.5;
    const auto y0 = static_cast<int64_t>(std::floor(y));
    const auto x0 = static_cast<int64_t>(std::floor(x));
    const double fy = y - static_cast<double>(y0),
                 fx = x - static_cast<double>(x0);
    return (At(y0, x0, c) * (1 - fx) + At(y0, x0 + 1, c) * fx) * (1 - fy) +
           (At(y0 + 1, x0, c) * (1 - fx) + At(y0 + 1, x0 + 1, c) * fx) * fy;
  }
  double Nearest(double y, double x, int64_t c) const {
    return At(static_cast<int64_t>(std::floor(y)),
              static_cast<int64_t>(std::floor(x)), c);
  }
};

bool NearBorder(double at) { return std::fabs(at - std::round(at)) < 1e-4; }

// Expects `result` to be `in`, warped by `m` (from the result to the image).
void ExpectWarped(const Array& in, const Array& result, const Affine& m,
                  bool nearest, std::optional<double> fill, bool dali = false) {
  const Reference reference{in, fill};
  const std::vector<double> got = AsDoubles(result);
  // Positions of floats are off by some 1e-5.
  const double tolerance = in.dtype == DType::kUint8 ? 0.75
                           : dali                    ? 2e-2
                                                     : 2e-3;
  size_t i = 0;
  for (int64_t y = 0; y < result.shape[0]; ++y)
    for (int64_t x = 0; x < result.shape[1]; ++x) {
      const double u = static_cast<double>(x) + 0.5;
      const double v = static_cast<double>(y) + 0.5;
      const double sx = m.a * u + m.b * v + m.c, sy = m.d * u + m.e * v + m.f;
      for (int64_t c = 0; c < in.shape[2]; ++c, ++i) {
        if (nearest && (NearBorder(sx) || NearBorder(sy))) continue;
        const double want = nearest ? reference.Nearest(sy, sx, c)
                                    : reference.Linear(sy, sx, c);
        ASSERT_NEAR(got[i], want, tolerance) << x << ", " << y;
      }
    }
}

Args WarpArgs(bool nearest, std::optional<double> fill) {
  Args args = {{"interpolation", Text(nearest ? "nearest" : "linear")}};
  if (fill) args["fill_value"] = Floats{*fill};
  return args;
}

TEST(WarpAffine, IsTheImageUnderItsMatrix) {
  for (int round = 0; round < 200; ++round) {
    const Array in = RandomImage({1 + Below(20), 1 + Below(20), 1 + Below(4)},
                                 Below(3) != 0);
    const bool nearest = Below(2) == 0, extreme = Below(8) == 0;
    const std::optional<double> fill =
        Below(2) == 0 ? std::optional(42.0) : std::nullopt;
    const double factor = extreme ? 4000 : 1.5;
    const auto number = [&] { return Between(-factor, factor); };
    const Floats m = {number(), number(), Between(-20, 20),
                      number(), number(), Between(-20, 20)};
    Args args = WarpArgs(nearest, fill);
    args["matrix"] = m;
    const bool dali = Below(3) == 0;
    args["rule"] = Text(dali ? "dali" : "fixed");
    args["size"] = Ints{1 + Below(30), 1 + Below(30)};
    const auto result = Apply("warp_affine", args, {in});
    ASSERT_TRUE(result.ok()) << Message(result.status());
    if (extreme) continue;  // it must not crash
    ExpectWarped(in, *result, {m[0], m[1], m[2], m[3], m[4], m[5]}, nearest,
                 fill, dali);
  }
}

TEST(WarpAffine, TakesTheMatrixOfEitherDirection) {
  const Array in = RandomImage({9, 7, 3}, true);
  const Affine forward{1.2, 0.3, -2, -0.4, 0.9, 1};
  const Affine back = *forward.Inverse();
  for (const char* rule : {"fixed", "dali"}) {
    const auto a = Apply("warp_affine",
                         {{"matrix", Floats{1.2, 0.3, -2, -0.4, 0.9, 1}},
                          {"inverse_map", Value(false)},
                          {"rule", Text(rule)}},
                         {in});
    ASSERT_TRUE(a.ok()) << Message(a.status());
    ExpectWarped(in, *a, back, false, std::nullopt);
  }
}

TEST(WarpAffine, TurnsEnlargesShearsAndMovesEachSample) {
  const Array in = RandomImage({21, 32, 3}, true);
  const float v[] = {30, 1.5f, 0.2f, -0.1f, 3, -2};
  const auto result =
      Apply("warp_affine",
            {{"angle", FieldOf(1)},
             {"scale", FieldOf(2)},
             {"shear_x", FieldOf(3)},
             {"shear_y", FieldOf(4)},
             {"translate_x", FieldOf(5)},
             {"translate_y", FieldOf(6)},
             {"fill_value", Floats{0}}},
            {in, Array::Scalar(v[0]), Array::Scalar(v[1]), Array::Scalar(v[2]),
             Array::Scalar(v[3]), Array::Scalar(v[4]), Array::Scalar(v[5])});
  ASSERT_TRUE(result.ok()) << Message(result.status());
  // From the result's centre outwards: shear, scale, turn, move.
  const double s = std::sin(v[0] * M_PI / 180), c = std::cos(v[0] * M_PI / 180);
  const Affine linear =
      Affine{c * v[1], s * v[1], 0, -s * v[1], c * v[1], 0}.After(
          {1, v[2], 0, v[3], 1, 0});
  const Affine forward = Affine::Move(16 + v[4], 10.5 + v[5])
                             .After(linear)
                             .After(Affine::Move(-16, -10.5));
  ExpectWarped(in, *result, *forward.Inverse(), false, 0.0);
}

TEST(WarpAffine, ExtremeMapsAreBadSamples) {
  const Array in = RandomImage({4, 4, 3}, true);
  const auto scale = [&](double m, float s) {
    return std::string(Message(
        Apply("warp_affine",
              {{"matrix", Floats{m, 0, 0, 0, m, 0}}, {"scale", FieldOf(1)}},
              {in, Array::Scalar(s)})
            .status()));
  };
  EXPECT_EQ(scale(1, 1), "");
  EXPECT_THAT(scale(100, 0.001f), HasSubstr("want at most 4096"));
  EXPECT_THAT(scale(1, 0), HasSubstr("warp_affine: argument \"scale\" is 0"));
  EXPECT_THAT(scale(1, -NAN), HasSubstr("nan"));
  EXPECT_THAT(scale(1, INFINITY), HasSubstr("inf"));
}

TEST(Rotate, QuartersOfATurnAreExact) {
  const Array in = RandomImage({5, 8, 3}, true);
  const auto pixels = in.Values<uint8_t>();
  for (const double angle : {0., 90., 180., 270., -90., 360. * 1000 + 90}) {
    for (const bool nearest : {false, true}) {
      Args args = WarpArgs(nearest, std::nullopt);
      args["angle"] = Value(angle);
      const int quarters = static_cast<int>(std::lround(angle / 90)) & 3;
      const Shape shape = quarters % 2 ? Shape{8, 5, 3} : Shape{5, 8, 3};
      args["size"] = Ints{shape[0], shape[1]};
      const auto result = Apply("rotate", args, {in});
      ASSERT_TRUE(result.ok()) << Message(result.status());
      const auto got = result->Values<uint8_t>();
      for (int64_t y = 0; y < shape[0]; ++y)
        for (int64_t x = 0; x < shape[1]; ++x) {
          const int64_t from_y[] = {y, x, 4 - y, 4 - x};
          const int64_t from_x[] = {x, 7 - y, 7 - x, y};
          for (int64_t c = 0; c < 3; ++c)
            ASSERT_EQ(got[(y * shape[1] + x) * 3 + c],
                      pixels[(from_y[quarters] * 8 + from_x[quarters]) * 3 + c])
                << angle;
        }
    }
  }
}

TEST(Rotate, SizesAreDalis) {
  // DALI 2.4's canvas of 7 × 9 (height × width).
  const struct {
    double angle;
    int64_t height, width;
  } kSizes[] = {{0, 7, 9},    {10, 9, 11},  {30, 11, 13},  {44, 13, 13},
                {45, 13, 13}, {46, 13, 13}, {60, 13, 11},  {89.9, 11, 9},
                {90, 9, 7},   {100, 11, 9}, {135, 13, 13}, {180, 7, 9},
                {270, 9, 7},  {-30, 11, 13}};
  for (const auto& [angle, height, width] : kSizes)
    EXPECT_EQ(RotatedSize({7, 9}, angle), (ImageSize{height, width})) << angle;
}

TEST(Rotate, TurnsEachSampleAboutItsCentre) {
  for (int round = 0; round < 60; ++round) {
    const Array in = RandomImage(
        {1 + Below(30), 1 + Below(30), 1 + 2 * Below(2)}, Below(2) == 0);
    const auto angle = static_cast<float>(Between(-400, 400));
    const bool nearest = Below(2) == 0;
    const std::optional<double> fill =
        Below(2) == 0 ? std::optional(100.0) : std::nullopt;
    const bool dali = Below(3) == 0;
    Args args = WarpArgs(nearest, fill);
    args["angle"] = FieldOf(1);
    args["rule"] = Text(dali ? "dali" : "fixed");
    const ImageSize size = RotatedSize({in.shape[0], in.shape[1]}, angle);
    // The canvas differs from sample to sample: pad makes its shape visible.
    const auto result = Apply(
        {{"rotate", {}, args},
         {"pad",
          {},
          {{"axes", Ints{0, 1}}, {"shape", Ints{size.height, size.width}}}}},
        {Array(in).Open(), Array::Scalar(angle)});
    ASSERT_TRUE(result.ok()) << Message(result.status());
    const double s = std::sin(angle * M_PI / 180),
                 c = std::cos(angle * M_PI / 180);
    const Affine turn{c, -s, 0, s, c, 0};
    const Affine map =
        Affine::Move(static_cast<double>(in.shape[1]) / 2,
                     static_cast<double>(in.shape[0]) / 2)
            .After(turn)
            .After(Affine::Move(static_cast<double>(-size.width) / 2,
                                static_cast<double>(-size.height) / 2));
    ExpectWarped(in, *result, map, nearest, fill, dali);
  }
}

TEST(Affine, SineAndCosineAreThoseOfTheLongDouble) {
  for (int round = 0; round < 2000; ++round) {
    const double degrees =
        round < 1000 ? Between(-720, 720) : Between(-1e6, 1e6);
    const Affine turn = Affine::Turn(degrees);
    const long double radians =
        std::fmod(static_cast<long double>(degrees), 360.0L) *
        3.14159265358979323846264338327950288L / 180;
    const double tolerance = round < 1000 ? 3e-15 : 3e-12;
    ASSERT_NEAR(turn.a, static_cast<double>(std::cos(radians)), tolerance);
    ASSERT_NEAR(turn.b, static_cast<double>(std::sin(radians)), tolerance);
  }
}

int64_t Mirrored(int64_t i, int64_t n) {
  while (n > 1 && (i < 0 || i >= n)) i = i < 0 ? -i : 2 * (n - 1) - i;
  return n > 1 ? i : 0;
}

TEST(GaussianBlur, IsTheSumOfItsWindow) {
  for (int round = 0; round < 40; ++round) {
    const int64_t h = 1 + Below(14), w = 1 + Below(14), channels = 1 + Below(4);
    const bool bytes = Below(2) == 0;
    const Array in = RandomImage({h, w, channels}, bytes);
    double sigma = Below(3) == 0 ? 0 : static_cast<float>(Between(0.05, 5));
    const int64_t window = sigma == 0 || Below(2) == 0 ? 1 + 2 * Below(9) : 0;
    const auto result =
        Apply("gaussian_blur",
              {{"sigma", FieldOf(1)}, {"window_size", Value(window)}},
              {in, Array::Scalar(static_cast<float>(sigma))});
    ASSERT_TRUE(result.ok()) << Message(result.status());
    const int64_t radius =
        window ? (window - 1) / 2 : static_cast<int64_t>(std::ceil(3 * sigma));
    if (sigma == 0) sigma = (static_cast<double>(radius) - 1) * 0.3 + 0.8;
    std::vector<double> weights;
    double sum = 0;
    for (int64_t k = -radius; k <= radius; ++k) {
      weights.push_back(
          std::exp(-static_cast<double>(k * k) / (2 * sigma * sigma)));
      sum += weights.back();
    }
    const std::vector<double> pixels = AsDoubles(in), got = AsDoubles(*result);
    for (int64_t y = 0; y < h; ++y)
      for (int64_t x = 0; x < w; ++x)
        for (int64_t c = 0; c < channels; ++c) {
          double want = 0;
          for (int64_t j = -radius; j <= radius; ++j)
            for (int64_t i = -radius; i <= radius; ++i)
              want += weights[j + radius] * weights[i + radius] / (sum * sum) *
                      pixels[(Mirrored(y + j, h) * w + Mirrored(x + i, w)) *
                                 channels +
                             c];
          ASSERT_NEAR(got[(y * w + x) * channels + c], want,
                      bytes ? 0.501 : 1e-3);
        }
  }
  const auto zero = Apply("gaussian_blur", {{"sigma", FieldOf(1)}},
                          {RandomImage({3, 3, 1}, true), Array::Scalar(0)});
  EXPECT_THAT(std::string(Message(zero.status())),
              HasSubstr("gaussian_blur: argument \"sigma\" is 0"));
}

TEST(JpegDistortion, TakesMoreAwayTheLowerTheQuality) {
  std::vector<uint8_t> smooth;
  for (int i = 0; i < 50 * 67 * 3; ++i)
    smooth.push_back(
        static_cast<uint8_t>(128 + 90 * std::sin(i * 0.013) + i % 9));
  const Array in = Array::Of<uint8_t>({50, 67, 3}, smooth);
  double last = 0;
  for (const float quality : {100.0f, 75.0f, 25.0f, 5.0f}) {
    const auto result =
        Apply("jpeg_compression_distortion", {{"quality", FieldOf(1)}},
              {in, Array::Scalar(quality)});
    ASSERT_TRUE(result.ok()) << Message(result.status());
    const std::vector<double> got = AsDoubles(*result);
    double error = 0;
    for (size_t i = 0; i < smooth.size(); ++i)
      error += std::pow(got[i] - smooth[i], 2);
    EXPECT_GT(error, last);
    last = error;
  }
  for (const float quality : {0.0f, 101.0f, NAN})
    EXPECT_THAT(
        std::string(Message(Apply("jpeg_compression_distortion",
                                  {{"quality", FieldOf(1)}},
                                  {in, Array::Scalar(quality)})
                                .status())),
        HasSubstr("jpeg_compression_distortion: argument \"quality\" is"));
  const Array gray = RandomImage({1, 1, 1}, true);
  EXPECT_TRUE(Apply("jpeg_compression_distortion", {}, {gray}).ok());
}

// The same on every machine: only a decision may change it.
TEST(WarpKernels, BytesAreGolden) {
  std::vector<float> values;
  for (int i = 0; i < 40 * 30 * 3; ++i)
    values.push_back(static_cast<float>((i * 7919) % 1009) / 7);
  const Array floats = Array::Of<float>({40, 30, 3}, values);
  const Array bytes =
      Array::Of<uint8_t>({40, 30, 3}, {values.begin(), values.end()});
  Sha256 hash;
  for (const Array& in : {floats, bytes}) {
    hash.Update(Apply("rotate",
                      {{"angle", Value(17.3)}, {"keep_size", Value(true)}},
                      {in})
                    ->bytes);
    hash.Update(Apply("gaussian_blur", {{"sigma", Value(1.7)}}, {in})->bytes);
    hash.Update(Apply("warp_affine",
                      {{"scale", Value(1.3)},
                       {"shear_x", Value(.2)},
                       {"fill_value", Floats{3}}},
                      {in})
                    ->bytes);
  }
  std::string hex;
  for (const uint8_t byte : hash.Finish()) hex += fmt::format("{:02x}", byte);
  EXPECT_EQ(hex.substr(0, 16), "ca445a41aaccb3b0");
}

}  // namespace
}  // namespace leat::worker
