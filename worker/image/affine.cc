// SPDX-License-Identifier: Apache-2.0
#include "worker/image/affine.h"

#include <cmath>

#include "core/status.h"
#include "worker/image/exact_math.h"

namespace leat::worker {
namespace {

constexpr double kMostFactor = 4096;
constexpr double kMostPlace = 1e9;

double Sine(double degrees) { return ExactSinPi(degrees / 180); }
double Cosine(double degrees) { return ExactSinPi(degrees / 180 + 0.5); }

int64_t FixedPoint(double x) {
  return static_cast<int64_t>(std::floor(x * 0x1.0p32 + 0.5));
}

}  // namespace

Affine Affine::Turn(double degrees) {
  const double s = Sine(degrees), c = Cosine(degrees);
  return {c, s, 0, -s, c, 0};
}

Affine Affine::After(const Affine& first) const {
  return {a * first.a + b * first.d,     a * first.b + b * first.e,
          a * first.c + b * first.f + c,  //
          d * first.a + e * first.d,     d * first.b + e * first.e,
          d * first.c + e * first.f + f};
}

absl::StatusOr<Affine> Affine::Inverse() const {
  const double determinant = a * e - b * d;
  if (!(std::fabs(determinant) > 1e-12))
    return InvalidArgument(
        "an affine map of the determinant {} cannot be inverted", determinant);
  const double r = 1 / determinant;
  return Affine{e * r,  -b * r, (b * f - e * c) * r,
                -d * r, a * r,  (d * c - a * f) * r};
}

absl::StatusOr<WarpMap> Affine::Fixed() const {
  for (const double factor : {a, b, d, e})
    if (!(std::fabs(factor) <= kMostFactor))
      return InvalidArgument(
          "an affine map from the result to the image with the factor {}, "
          "want at most {}",
          factor, kMostFactor);
  const double x = c + (a + b) / 2, y = f + (d + e) / 2;
  for (const double place : {x, y})
    if (!(std::fabs(place) <= kMostPlace))
      return InvalidArgument(
          "an affine map to the place {} of the image, want at most {}", place,
          kMostPlace);
  return WarpMap{FixedPoint(x), FixedPoint(y), FixedPoint(a),
                 FixedPoint(b), FixedPoint(d), FixedPoint(e)};
}

ImageSize TurnedSize(ImageSize image, double degrees) {
  const double s = std::fabs(Sine(degrees)), c = std::fabs(Cosine(degrees));
  const auto height = static_cast<double>(image.height);
  const auto width = static_cast<double>(image.width);
  const auto side = [](double exact, int64_t parity) {
    const auto least = static_cast<int64_t>(std::ceil(exact - 0.01));
    return least + (least + parity) % 2;
  };
  const bool upright = s <= c;
  return {side(c * height + s * width, upright ? image.height : image.width),
          side(c * width + s * height, upright ? image.width : image.height)};
}

}  // namespace leat::worker
