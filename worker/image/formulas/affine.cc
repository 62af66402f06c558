// SPDX-License-Identifier: Apache-2.0
#include "worker/image/formulas/affine.h"

#include <cmath>

#include "core/status.h"
#include "worker/image/formulas/exact_math.h"

namespace leat::worker {
namespace {

constexpr double kMostFactor = 4096;
constexpr double kMostPlace = 1e9;

double Sine(double degrees) { return ExactSinPi(degrees / 180); }
double Cosine(double degrees) { return ExactSinPi(degrees / 180 + 0.5); }

int64_t FixedPoint(double x) {
  return static_cast<int64_t>(std::floor(x * 0x1.0p32 + 0.5));
}

DaliMap AsFloats(const Affine& m) {
  return {static_cast<float>(m.a), static_cast<float>(m.b),
          static_cast<float>(m.c), static_cast<float>(m.d),
          static_cast<float>(m.e), static_cast<float>(m.f)};
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

absl::StatusOr<Affine> Affine::DaliInverse() const {
  const DaliMap m = AsFloats(*this);
  const float main = m.xx * m.yy, other = m.xy * m.yx;
  const float determinant = main - other;
  if (determinant == 0)
    return InvalidArgument(
        "an affine map of the determinant 0 cannot be inverted");
  const float xx = m.yy / determinant, xy = -m.xy / determinant;
  const float yx = -m.yx / determinant, yy = m.xx / determinant;
  const float from_x = -xx * m.x0, x_from_y = -xy * m.y0;
  const float from_y = -yx * m.x0, y_from_y = -yy * m.y0;
  return Affine{xx, xy, from_x + x_from_y, yx, yy, from_y + y_from_y};
}

absl::Status Affine::CheckRange() const {
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
  return absl::OkStatus();
}

absl::StatusOr<WarpMap> Affine::Fixed() const {
  RETURN_IF_ERROR(CheckRange());
  const double x = c + (a + b) / 2, y = f + (d + e) / 2;
  return WarpMap{FixedPoint(x), FixedPoint(y), FixedPoint(a),
                 FixedPoint(b), FixedPoint(d), FixedPoint(e)};
}

absl::StatusOr<DaliMap> Affine::Floats() const {
  RETURN_IF_ERROR(CheckRange());
  return AsFloats(*this);
}

DaliMap DaliTurn(ImageSize image, ImageSize result, double degrees) {
  constexpr double kPi = 3.14159265358979323846;
  const float radians =
      static_cast<float>(degrees) * static_cast<float>(kPi / 180);
  const double turn = static_cast<double>(radians) / kPi;
  const auto c = static_cast<float>(ExactSinPi(turn + 0.5));
  const auto s = static_cast<float>(ExactSinPi(turn));
  const auto half = [](int64_t side) {
    return static_cast<float>(side) * 0.5f;
  };
  const float x = -half(result.width), y = -half(result.height);
  const float cx = c * x, sy = -s * y, sx = s * x, cy = c * y;
  return {c, -s, (cx + sy) + half(image.width),  //
          s, c,  (sx + cy) + half(image.height)};
}

ImageSize RotatedSize(ImageSize image, double degrees) {
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
