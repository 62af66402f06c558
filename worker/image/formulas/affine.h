// SPDX-License-Identifier: Apache-2.0
//
// Affine: a map of the plane, in double; and how large a turned image is.
#pragma once

#include "absl/status/statusor.h"
#include "core/tensor/image_size.h"
#include "worker/image/formulas/dali_pixel.h"
#include "worker/image/formulas/warp.h"

namespace leat::worker {

// (x, y) -> (a x + b y + c, d x + e y + f).
struct Affine {
  double a = 1, b = 0, c = 0;
  double d = 0, e = 1, f = 0;

  static Affine Move(double x, double y) { return {1, 0, x, 0, 1, y}; }
  static Affine Scale(double s) { return {s, 0, 0, 0, s, 0}; }
  static Affine Shear(double x, double y) { return {1, x, 0, y, 1, 0}; }
  // Turns by `degrees`, counter-clockwise where y points down; the same bits on
  // every machine. In fixed point, multiples of 90 are exact.
  static Affine Turn(double degrees);

  // This map after `first`.
  Affine After(const Affine& first) const;
  // kInvalidArgument: it has none.
  absl::StatusOr<Affine> Inverse() const;
  // The same in the floats and their order that rule "dali" has.
  absl::StatusOr<Affine> DaliInverse() const;
  // In fixed point. kInvalidArgument: a factor beyond 4096, or a place beyond
  // 1e9, which fixed point does not hold.
  absl::StatusOr<WarpMap> Fixed() const;
  // In floats, for rule "dali". kInvalidArgument: as above.
  absl::StatusOr<DaliMap> Floats() const;

 private:
  absl::Status CheckRange() const;
};

// From the result to the image that is turned about its centre by `degrees`, in
// the floats and their order that rule "dali" has. Sides are at most 65,500.
DaliMap DaliTurn(ImageSize image, ImageSize result, double degrees);

// DALI's rule: what holds the image turned by `degrees`, of its parity (of its
// other side's, if that is nearer), since halves of pixels would blur it.
ImageSize RotatedSize(ImageSize image, double degrees);

}  // namespace leat::worker
