// SPDX-License-Identifier: Apache-2.0
//
// View: the combined effect of a chain of geometric operators on an image,
// computed before any pixel: crop, resize, crop, mirror, in this order.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "core/random/philox.h"
#include "core/shapes/resize_rule.h"
#include "core/tensor/image_size.h"
#include "worker/image/base/rect.h"
#include "worker/image/resample/table.h"

namespace leat::worker {

// The filter for a side that becomes smaller, and that for any other side.
struct Filters {
  Filter shrink = Filter::kLinear, other = Filter::kLinear;
  bool antialias = true;
  bool dali = false;  // rule "dali": as DaliResampler computes it
};

inline constexpr int kMostHalvings = 3;  // 1/8

// Returns the size of an image decoded at 1 / 2^halvings: halves are rounded
// up.
StoredSize Halved(StoredSize stored, int halvings);

// An axis of the turned image after halving. Pixels are grouped from the stored
// image's first on, which is the last one where the axis is mirrored. The last
// group may be incomplete: its pixel then mixes in values that an encoder put
// beyond the image.
struct ScaledAxis {
  int64_t length = 0;     // of the whole image
  bool mirrored = false;  // relative to the stored image
  int halvings = 0;

  int64_t shorter() const {
    return (length + (int64_t{1} << halvings) - 1) >> halvings;
  }
  // Returns the pixel that represents a pixel of the whole image. It is never
  // the pixel of an incomplete group, but then the one next to it.
  // REQUIRES: length >= 1 << halvings.
  int64_t At(int64_t position) const;
  // Converts a coordinate between the whole image's pixels to one between the
  // halved image's pixels. It is exact.
  double Place(double place) const;
};

class View {
 public:
  explicit View(ImageSize source)
      : before_{0, 0, source.width, source.height} {}

  // Returns the size of the image after the operators so far.
  ImageSize size() const;
  bool resampled() const { return resampled_; }
  bool by_dali() const { return by_dali_; }
  bool mirrored() const { return mirror_x_ || mirror_y_; }

  // REQUIRES: the window lies inside size().
  void Crop(Rect window);
  // Resizes all of it, or a part (in pixels of size()).
  // REQUIRES: !resampled(), !mirrored().
  void Resize(ImageSize to, const Filters& filters);
  void Resize(const Resizing& resizing, const Filters& filters);
  void Flip(bool horizontal, bool vertical);

  // Returns the most halvings of the source that leave the window at least as
  // large as its resized size, along both axes; 0 if nothing is resized.
  int MostHalvings() const;
  // Returns the same for a window that is all of an image of this size.
  int HalvingsOfAll(ImageSize image) const;
  // Makes this the same view of the source at 1 / 2^halvings, with these axes.
  // The resize keeps its position and its scale, to fractions of a pixel. The
  // window gets those of the smaller pixels whose middle lies inside it.
  // REQUIRES: 0 < halvings <= MostHalvings().
  void Halve(const ScaledAxis& across, const ScaledAxis& down);

  // before() is the window of the source, to() the size that it is resized to
  // (if resampled()), after() the window of that; mirror_x() and mirror_y() say
  // whether the result is mirrored at last.
  const Rect& before() const { return before_; }
  ImageSize to() const { return to_; }
  const Rect& after() const { return after_; }
  // How before() becomes to(). REQUIRES: resampled().
  const ResampleAxis& across() const { return across_; }
  const ResampleAxis& down() const { return down_; }
  bool mirror_x() const { return mirror_x_; }
  bool mirror_y() const { return mirror_y_; }

 private:
  Rect before_;
  bool resampled_ = false, by_dali_ = false;
  ImageSize to_;
  Rect after_;
  ResampleAxis across_, down_;
  bool mirror_x_ = false, mirror_y_ = false;
};

// A random window of an image.
//
// Draws: one block (two doubles) for the position, then one per attempt: area ~
// U(area), aspect ~ exp(U(ln aspect)); width = √(area × aspect), height =
// √(area / aspect), halves up; accepted if both are in [1, side]. After
// `attempts` refusals it is the central window of the nearest allowed aspect.
// The position is uniform over the integers that fit.
struct RandomWindow {
  double least_area = 0.08, greatest_area = 1;
  double least_aspect = 0.75, greatest_aspect = 4.0 / 3;
  double log_least_aspect = 0, log_greatest_aspect = 0;
  int attempts = 10;

  Rect Draw(ImageSize image, SampleRng* rng) const;
};

// Returns the window of `size` at (pos_y, pos_x) of `image`: round(pos × room),
// halves up. kInvalidArgument: the image is smaller (names both).
absl::Status CropWindow(ImageSize image, ImageSize size, double pos_y,
                        double pos_x, Rect* window);

// EXIF orientation: pixel (x, y) of the turned image is pixel (u, v) of the
// stored one, where (u, v) = (x, y), or (y, x) if `transposed`, counted from
// the other side where mirrored.
struct Orientation {
  bool transposed = false;
  bool mirror_x = false, mirror_y = false;  // of the stored image

  static Orientation Of(int exif);
  bool identity() const { return !transposed && !mirror_x && !mirror_y; }
  TurnedSize Turned(StoredSize stored) const;
  // Returns the stored window that becomes `window` of the turned image.
  StoredRect Stored(const TurnedRect& window, StoredSize stored) const;
  // Return the turned image's axes, if the image is decoded at 1 / 2^halvings.
  ScaledAxis Across(StoredSize stored, int halvings) const;
  ScaledAxis Down(StoredSize stored, int halvings) const;
};

}  // namespace leat::worker
