// SPDX-License-Identifier: Apache-2.0
#include "worker/image/resample/geometry.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/status.h"
#include "worker/image/formulas/exact_math.h"

namespace leat::worker {

StoredSize Halved(StoredSize stored, int halvings) {
  return {ScaledAxis{.length = stored.height, .halvings = halvings}.shorter(),
          ScaledAxis{.length = stored.width, .halvings = halvings}.shorter()};
}

int64_t ScaledAxis::At(int64_t position) const {
  const int64_t stored = mirrored ? length - 1 - position : position;
  const int64_t group = std::min(stored >> halvings, (length >> halvings) - 1);
  return mirrored ? shorter() - 1 - group : group;
}

double ScaledAxis::Place(double place) const {
  const auto each = static_cast<double>(int64_t{1} << halvings);
  if (!mirrored) return place / each;
  return static_cast<double>(shorter()) -
         (static_cast<double>(length) - place) / each;
}

ImageSize View::size() const {
  const Rect& window = resampled_ ? after_ : before_;
  return {window.height, window.width};
}

void View::Crop(Rect window) {
  const ImageSize now = size();
  if (mirror_x_) window.x = now.width - window.x - window.width;
  if (mirror_y_) window.y = now.height - window.y - window.height;
  Rect& current = resampled_ ? after_ : before_;
  current = {current.x + window.x, current.y + window.y, window.width,
             window.height};
}

void View::Resize(ImageSize to, const Filters& filters) {
  Resize({to,
          {0, static_cast<double>(before_.height)},
          {0, static_cast<double>(before_.width)}},
         filters);
}

void View::Resize(const Resizing& resizing, const Filters& filters) {
  const auto axis = [&](int64_t in, int64_t out, const Resizing::Part& part) {
    const bool shrinks = part.end - part.begin > static_cast<double>(out);
    return ResampleAxis{static_cast<int>(in),
                        static_cast<int>(out),
                        part.begin,
                        part.end,
                        shrinks ? filters.shrink : filters.other,
                        filters.antialias};
  };
  resampled_ = true;
  by_dali_ = filters.dali;
  to_ = resizing.size;
  after_ = {0, 0, to_.width, to_.height};
  across_ = axis(before_.width, to_.width, resizing.columns);
  down_ = axis(before_.height, to_.height, resizing.rows);
}

namespace {

// `across`, `down`: how often a side becomes smaller by the resize.
int HalvingsFor(double across, double down) {
  const double both = std::min(across, down);
  int halvings = 0;
  while (halvings < kMostHalvings && both >= 2 << halvings) ++halvings;
  return halvings;
}

}  // namespace

int View::MostHalvings() const {
  return resampled_ ? HalvingsFor(across_.step(), down_.step()) : 0;
}

int View::HalvingsOfAll(ImageSize image) const {
  if (!resampled_) return 0;
  return HalvingsFor(
      static_cast<double>(image.width) / static_cast<double>(to_.width),
      static_cast<double>(image.height) / static_cast<double>(to_.height));
}

namespace {

// Halves a window of an axis, and its resize.
void HalveAxis(const ScaledAxis& axis, int64_t* first, int64_t* length,
               ResampleAxis* resized) {
  const auto begin = static_cast<double>(*first);
  const double from = axis.Place(begin);
  const double to = axis.Place(begin + static_cast<double>(*length));
  const int64_t last = axis.shorter() - 1;
  const int64_t own =
      std::clamp<int64_t>(static_cast<int64_t>(std::ceil(from - 0.5)), 0, last);
  const int64_t end = std::clamp<int64_t>(
      static_cast<int64_t>(std::floor(to - 0.5)) + 1, own + 1, last + 1);
  const auto origin = static_cast<double>(own);
  resized->begin = axis.Place(begin + resized->begin) - origin;
  resized->end = axis.Place(begin + resized->end) - origin;
  resized->in = static_cast<int>(end - own);
  *first = own;
  *length = end - own;
}

}  // namespace

void View::Halve(const ScaledAxis& across, const ScaledAxis& down) {
  HalveAxis(across, &before_.x, &before_.width, &across_);
  HalveAxis(down, &before_.y, &before_.height, &down_);
}

void View::Flip(bool horizontal, bool vertical) {
  mirror_x_ ^= horizontal;
  mirror_y_ ^= vertical;
}

namespace {

// √ is exact by IEEE 754; floor is exact.
int64_t Rounded(double x) { return static_cast<int64_t>(std::floor(x + 0.5)); }

int64_t Position(double u, int64_t room) {
  return std::min(room,
                  static_cast<int64_t>(u * static_cast<double>(room + 1)));
}

}  // namespace

Rect RandomWindow::Draw(ImageSize image, SampleRng* rng) const {
  const double u_y = rng->NextDouble();
  const double u_x = rng->NextDouble();
  const auto height = static_cast<double>(image.height);
  const auto width = static_cast<double>(image.width);
  for (int i = 0; i < attempts; ++i) {
    const double u_area = rng->NextDouble();
    const double u_aspect = rng->NextDouble();
    const double area =
        height * width * (least_area + u_area * (greatest_area - least_area));
    const double aspect = ExactExp(
        log_least_aspect + u_aspect * (log_greatest_aspect - log_least_aspect));
    const int64_t w = Rounded(std::sqrt(area * aspect));
    const int64_t h = Rounded(std::sqrt(area / aspect));
    if (w < 1 || h < 1 || w > image.width || h > image.height) continue;
    return {Position(u_x, image.width - w), Position(u_y, image.height - h), w,
            h};
  }
  ImageSize size = image;
  if (width / height < least_aspect)
    size.height =
        std::clamp<int64_t>(Rounded(width / least_aspect), 1, image.height);
  else if (width / height > greatest_aspect)
    size.width =
        std::clamp<int64_t>(Rounded(height * greatest_aspect), 1, image.width);
  return {(image.width - size.width) / 2, (image.height - size.height) / 2,
          size.width, size.height};
}

absl::Status CropWindow(ImageSize image, ImageSize size, double pos_y,
                        double pos_x, Rect* window) {
  if (image.height < size.height || image.width < size.width)
    return InvalidArgument(
        "image of {} × {} (width × height) is smaller than the crop of {} × {}",
        image.width, image.height, size.width, size.height);
  // The condition also refuses a NaN.
  if (!(pos_y >= 0 && pos_y <= 1 && pos_x >= 0 && pos_x <= 1))
    return InvalidArgument("crop position ({}, {}) is outside 0 to 1", pos_y,
                           pos_x);
  const auto at = [](double pos, int64_t room) {
    return Rounded(pos * static_cast<double>(room));
  };
  *window = {at(pos_x, image.width - size.width),
             at(pos_y, image.height - size.height), size.width, size.height};
  return absl::OkStatus();
}

Orientation Orientation::Of(int exif) {
  switch (exif) {
    case 2:
      return {false, true, false};
    case 3:
      return {false, true, true};
    case 4:
      return {false, false, true};
    case 5:
      return {true, false, false};
    case 6:
      return {true, false, true};
    case 7:
      return {true, true, true};
    case 8:
      return {true, true, false};
    default:
      return {};
  }
}

TurnedSize Orientation::Turned(StoredSize stored) const {
  if (transposed) return {stored.width, stored.height};
  return {stored.height, stored.width};
}

ScaledAxis Orientation::Across(StoredSize stored, int halvings) const {
  if (transposed) return {stored.height, mirror_y, halvings};
  return {stored.width, mirror_x, halvings};
}

ScaledAxis Orientation::Down(StoredSize stored, int halvings) const {
  if (transposed) return {stored.width, mirror_x, halvings};
  return {stored.height, mirror_y, halvings};
}

StoredRect Orientation::Stored(const TurnedRect& window,
                               StoredSize stored) const {
  StoredRect rect{window.x, window.y, window.width, window.height};
  if (transposed) {
    std::swap(rect.x, rect.y);
    std::swap(rect.width, rect.height);
  }
  if (mirror_x) rect.x = stored.width - rect.x - rect.width;
  if (mirror_y) rect.y = stored.height - rect.y - rect.height;
  return rect;
}

}  // namespace leat::worker
