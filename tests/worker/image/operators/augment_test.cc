// SPDX-License-Identifier: Apache-2.0
//
// Compares each operation of automatic augmentation with a slow reference in
// double.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "core/operators/augmentation.h"
#include "gmock/gmock.h"
#include "tests/worker/image/operators/augment_support.h"
#include "worker/image/loops/values.h"

namespace leat::worker::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Bytes = std::vector<uint8_t>;

// Pixels as numbers, for references.
struct Image {
  explicit Image(const Array& array)
      : height(array.shape[0]),
        width(array.shape[1]),
        channels(array.shape[2]) {
    for (const uint8_t value : array.Values<uint8_t>()) values.push_back(value);
  }
  double At(int64_t y, int64_t x, int64_t c) const {
    return values[(y * width + x) * channels + c];
  }
  std::vector<double> Channel(int64_t c) const {
    std::vector<double> found;
    for (size_t i = static_cast<size_t>(c); i < values.size();
         i += static_cast<size_t>(channels))
      found.push_back(values[i]);
    return found;
  }

  int64_t height, width, channels;
  std::vector<double> values;
};

// Expects want(y, x, channel) for every value, to `tolerance`.
template <class Want>
void ExpectValues(const Array& got, const Image& in, double tolerance,
                  Want want) {
  const Bytes values = got.Values<uint8_t>();
  ASSERT_EQ(values.size(), in.values.size());
  size_t i = 0;
  for (int64_t y = 0; y < in.height; ++y)
    for (int64_t x = 0; x < in.width; ++x)
      for (int64_t c = 0; c < in.channels; ++c, ++i)
        ASSERT_NEAR(values[i], std::clamp(want(y, x, c), 0.0, 255.0), tolerance)
            << y << ", " << x << ", " << c;
}

// Calls use(image, its array) for images of several shapes.
void WithImages(const std::function<void(const Image&, const Array&)>& use) {
  uint32_t seed = 1;
  for (const Shape& shape : kAugmentShapes) {
    const Array array = RandomImage(shape, seed++);
    use(Image(array), array);
  }
}

double Mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) /
         static_cast<double>(values.size());
}

constexpr double kRounded = 0.501;

TEST(Augment, BrightnessContrastAndColorAreFactors) {
  WithImages([](const Image& in, const Array& array) {
    for (const double factor : {0.0, 0.1, 1.0, 1.73}) {
      ExpectValues(Augmented("brightness", factor, array), in, kRounded,
                   [&](int64_t y, int64_t x, int64_t c) {
                     return in.At(y, x, c) * factor;
                   });
      const double centre = in.channels == 1 ? Mean(in.Channel(0))
                                             : .299 * Mean(in.Channel(0)) +
                                                   .587 * Mean(in.Channel(1)) +
                                                   .114 * Mean(in.Channel(2));
      ExpectValues(Augmented("contrast", factor, array), in, kRounded,
                   [&](int64_t y, int64_t x, int64_t c) {
                     return centre + (in.At(y, x, c) - centre) * factor;
                   });
      // The inverse of RGB->YIQ is not exactly 1, 1, 1 for gray.
      ExpectValues(Augmented("color", factor, array), in, 1,
                   [&](int64_t y, int64_t x, int64_t c) {
                     if (in.channels == 1) return in.At(y, x, c);
                     const double gray = .299 * in.At(y, x, 0) +
                                         .587 * in.At(y, x, 1) +
                                         .114 * in.At(y, x, 2);
                     return gray + (in.At(y, x, c) - gray) * factor;
                   });
    }
  });
}

TEST(Augment, SharpnessLeadsAwayFromABlurredImage) {
  const auto reflected = [](int64_t at, int64_t size) {
    return size == 1 ? 0 : at < 0 ? -at : at >= size ? 2 * size - 2 - at : at;
  };
  WithImages([&](const Image& in, const Array& array) {
    for (const double factor : {0.0, 0.1, 1.0, 1.9})
      ExpectValues(Augmented("sharpness", factor, array), in, kRounded,
                   [&](int64_t y, int64_t x, int64_t c) {
                     double blurred = 4 * in.At(y, x, c);
                     for (int dy = -1; dy <= 1; ++dy)
                       for (int dx = -1; dx <= 1; ++dx)
                         blurred += in.At(reflected(y + dy, in.height),
                                          reflected(x + dx, in.width), c);
                     blurred /= 13;
                     return blurred + (in.At(y, x, c) - blurred) * factor;
                   });
  });
}

TEST(Augment, PosterizeKeepsTheHighestBitsAndAtLeastOne) {
  WithImages([](const Image& in, const Array& array) {
    for (const double bits : {0.0, 0.4, 1.0, 2.5, 3.5, 4.0, 7.6, 8.0}) {
      const int kept = std::max(1, static_cast<int>(std::nearbyint(bits)));
      const double step = 1 << (8 - kept);
      ExpectValues(Augmented("posterize", bits, array), in, 0,
                   [&](int64_t y, int64_t x, int64_t c) {
                     return std::floor(in.At(y, x, c) / step) * step;
                   });
    }
  });
}

TEST(Augment, SolarizeAndItsLikeWorkFromAThresholdOn) {
  WithImages([](const Image& in, const Array& array) {
    for (const double threshold : {0.0, 76.8, 100.0, 255.0, 256.0})
      ExpectValues(Augmented("solarize", threshold, array), in, 0,
                   [&](int64_t y, int64_t x, int64_t c) {
                     const double v = in.At(y, x, c);
                     return v < threshold ? v : 255 - v;
                   });
    for (const double shift : {0.0, 33.9, 110.0, 127.0})
      ExpectValues(Augmented("solarize_add", shift, array), in, 0,
                   [&](int64_t y, int64_t x, int64_t c) {
                     const double v = in.At(y, x, c);
                     return v < 128 ? v + std::floor(shift) : v;
                   });
    ExpectValues(
        Augmented("invert", 5, array), in, 0,
        [&](int64_t y, int64_t x, int64_t c) { return 255 - in.At(y, x, c); });
    EXPECT_EQ(Augmented("identity", 5, array), array);
  });
}

TEST(Augment, AutoContrastAndEqualizeSpreadEachChannel) {
  WithImages([](const Image& in, const Array& array) {
    ExpectValues(Augmented("auto_contrast", 0, array), in, kRounded,
                 [&](int64_t y, int64_t x, int64_t c) {
                   const auto values = in.Channel(c);
                   const auto [least, greatest] =
                       std::minmax_element(values.begin(), values.end());
                   const double v = in.At(y, x, c);
                   return *least == *greatest
                              ? v
                              : (v - *least) * 255 / (*greatest - *least);
                 });
    ExpectValues(
        Augmented("equalize", 0, array), in, kRounded,
        [&](int64_t y, int64_t x, int64_t c) {
          const auto values = in.Channel(c);
          const double least = *std::min_element(values.begin(), values.end());
          const double v = in.At(y, x, c);
          const auto above = std::count_if(values.begin(), values.end(),
                                           [&](double u) { return u > least; });
          const auto upto =
              std::count_if(values.begin(), values.end(),
                            [&](double u) { return u > least && u <= v; });
          return above == 0 ? v
                            : 255.0 * static_cast<double>(upto) /
                                  static_cast<double>(above);
        });
    EXPECT_EQ(Computed("equalize", {}, {array}),
              Augmented("equalize", 0, array));
  });
}

// The image at (x, y), where the centre of the first pixel is (0.5, 0.5).
double LinearAt(const Image& in, double y, double x, int64_t c,
                std::optional<double> fill) {
  const auto pixel = [&](int64_t v, int64_t u) {
    if (fill && (u < 0 || v < 0 || u >= in.width || v >= in.height))
      return *fill;
    return in.At(std::clamp<int64_t>(v, 0, in.height - 1),
                 std::clamp<int64_t>(u, 0, in.width - 1), c);
  };
  const double left = std::floor(x - 0.5), top = std::floor(y - 0.5);
  const double fx = x - 0.5 - left, fy = y - 0.5 - top;
  const auto u = static_cast<int64_t>(left), v = static_cast<int64_t>(top);
  return (pixel(v, u) * (1 - fx) + pixel(v, u + 1) * fx) * (1 - fy) +
         (pixel(v + 1, u) * (1 - fx) + pixel(v + 1, u + 1) * fx) * fy;
}

TEST(Augment, MovesShearsAndTurnsTheImage) {
  WithImages([](const Image& in, const Array& array) {
    for (const double m : {-0.6, 0.25, 3.0})
      for (const bool filled : {false, true}) {
        const auto expect = [&](const char* operation, auto source) {
          const Args more = {{"border", Text(filled ? "fill" : "edge")},
                             {"fill_value", Value(99.0)}};
          const std::optional<double> fill =
              filled ? std::optional(99.0) : std::nullopt;
          ExpectValues(Augmented(operation, m, array, more), in, 0.75,
                       [&](int64_t v, int64_t u, int64_t c) {
                         const double y = static_cast<double>(v) + 0.5;
                         const double x = static_cast<double>(u) + 0.5;
                         const auto [sx, sy] = source(x, y);
                         return LinearAt(in, sy, sx, c, fill);
                       });
        };
        using Place = std::pair<double, double>;
        expect("translate_x", [&](double x, double y) {
          return Place{x - m, y};
        });
        expect("translate_y", [&](double x, double y) {
          return Place{x, y - m};
        });
        expect("shear_x", [&](double x, double y) {
          return Place{x - m * y, y};
        });
        expect("shear_y", [&](double x, double y) {
          return Place{x, y - m * x};
        });
        expect("rotate", [&](double x, double y) {
          const double s = std::sin(m * M_PI / 180);
          const double c = std::cos(m * M_PI / 180);
          const double cx = static_cast<double>(in.width) / 2;
          const double cy = static_cast<double>(in.height) / 2;
          return Place{cx + c * (x - cx) - s * (y - cy),
                       cy + s * (x - cx) + c * (y - cy)};
        });
      }
  });
}

TEST(Augment, IsTheOperatorOfThatKindWhereThereIsOne) {
  const Array image = RandomImage({40, 30, 3}, 5);
  EXPECT_EQ(Augmented("brightness", 1.3, image),
            Computed("brightness", {{"brightness", Value(1.3)}}, {image}));
  EXPECT_EQ(Augmented("color", 0.4, image),
            Computed("saturation", {{"saturation", Value(0.4)}}, {image}));
  const Args filled = {{"fill_value", Floats{128}}};
  Args args = filled;
  args["angle"] = Value(17.0);
  args["keep_size"] = Value(true);
  EXPECT_EQ(Augmented("rotate", 17, image), Computed("rotate", args, {image}));
  args = filled;
  args["matrix"] = Floats{1, 0.25, 0, 0, 1, 0};
  args["inverse_map"] = Value(false);
  EXPECT_EQ(Augmented("shear_x", 0.25, image),
            Computed("warp_affine", args, {image}));
}

TEST(Augment, TakesItsMagnitudeFromTheSample) {
  const Array image = RandomImage({4, 5, 3}, 6);
  const auto args = [](const char* operation) {
    return Args{{"operation", Text(operation)}, {"magnitude", FieldOf(1)}};
  };
  EXPECT_EQ(Computed("augment", args("solarize"), {image, Array::Scalar(90)}),
            Augmented("solarize", 90, image));
  EXPECT_THAT(Refusal("augment", args("solarize"), {image, Array::Scalar(257)}),
              AllOf(HasSubstr("257"), HasSubstr("solarize")));
  EXPECT_THAT(Refusal("augment", args("rotate"), {image, Array::Scalar(NAN)}),
              HasSubstr("magnitude"));
}

TEST(Augment, RefusesAnImageThatIsTooLongToBeTurned) {
  const auto run = [](int64_t width) {
    const Shape shape = {1, width, 1};
    const Bytes values(static_cast<size_t>(width), 7);
    return Apply({Node{"rand_augment",
                       {},
                       {{"n", Value(int64_t{1})}, {"m", Value(int64_t{3})}}},
                  Node{"crop", {}, {{"size", Ints{1, 1}}}}},
                 {Array::Of<uint8_t>(shape, values).Open()});
  };
  EXPECT_TRUE(run(65'500).ok());
  const absl::Status status = run(65'501).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(status)), HasSubstr("65501"));
}

}  // namespace
}  // namespace leat::worker::testing
