// SPDX-License-Identifier: Apache-2.0
//
// Affine: an affine map of the plane, in double, and the size of a turned
// image.
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

  // Returns the map that applies `first` and then this.
  Affine After(const Affine& first) const;
  // kInvalidArgument: the map has no inverse.
  absl::StatusOr<Affine> Inverse() const;
  // The same, in the float operations of rule "dali" and in their order.
  absl::StatusOr<Affine> DaliInverse() const;
  // In fixed point. kInvalidArgument: a factor beyond 4096 or a coordinate
  // beyond 1e9, which fixed point cannot hold.
  absl::StatusOr<WarpMap> Fixed() const;
  // In floats, for rule "dali". kInvalidArgument: as above.
  absl::StatusOr<DaliMap> Floats() const;

 private:
  absl::Status CheckRange() const;
};

// Returns the map from the result to the image that is turned about its centre
// by `degrees`, in the float operations of rule "dali" and in their order.
// Sides are at most 65,500.
DaliMap DaliTurn(ImageSize image, ImageSize result, double degrees);

// DALI's rule: the size that holds the image turned by `degrees`. Each side has
// the parity of the image's side (of the other side, if that is nearer), since
// a shift by half a pixel would blur the image.
ImageSize RotatedSize(ImageSize image, double degrees);

}  // namespace leat::worker
