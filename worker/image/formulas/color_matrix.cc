// SPDX-License-Identifier: Apache-2.0
#include "worker/image/formulas/color_matrix.h"

#include <array>

#include "worker/image/formulas/exact_math.h"

namespace leat::worker {
namespace {

using Matrix3 = std::array<std::array<double, 3>, 3>;

constexpr Matrix3 kIdentity = {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
constexpr Matrix3 kRgbToYiq = {
    {{.299, .587, .114}, {.596, -.274, -.321}, {.211, -.523, .311}}};
// Its inverse.
constexpr Matrix3 kYiqToRgb = {
    {{0.9996643205124055, 0.9565411896520853, 0.6208617020575727},
     {0.9996248232318958, -0.27227450319254143, -0.6474512712965979},
     {1.0028122537690158, -1.1068480906311549, 1.705405678384988}}};

Matrix3 Times(const Matrix3& a, const Matrix3& b) {
  Matrix3 product{};
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j)
      for (int k = 0; k < 3; ++k) product[i][j] += a[i][k] * b[k][j];
  return product;
}

// R(hue) · diag(1, saturation, saturation).
Matrix3 Turned(double hue, double saturation) {
  const double sine = ExactSinPi(hue / 180);
  const double cosine = ExactSinPi(hue / 180 + 0.5);
  return {{{1, 0, 0},
           {0, cosine * saturation, sine * saturation},
           {0, -sine * saturation, cosine * saturation}}};
}

}  // namespace

ColorMatrix TwistMatrix(double hue, double saturation, double factor,
                        double constant) {
  Matrix3 matrix = kIdentity;
  if (hue != 0 || saturation != 1)
    matrix = Times(kYiqToRgb, Times(Turned(hue, saturation), kRgbToYiq));
  ColorMatrix result;
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j)
      result.m[i][j] = static_cast<float>(matrix[i][j] * factor);
    result.constant[i] = static_cast<float>(constant);
  }
  return result;
}

}  // namespace leat::worker
