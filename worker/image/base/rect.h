// SPDX-License-Identifier: Apache-2.0
//
// Rectangles, and the image they belong to: the one stored in the file, or the
// one that its EXIF orientation makes of it. Rectangles and sizes of the two
// are distinct types: Orientation (resample/geometry.h) converts between them,
// and code that confuses them does not compile.
#pragma once

#include <concepts>
#include <cstdint>

#include "core/tensor/image_size.h"

namespace leat::worker {

struct Rect {
  int64_t x = 0;
  int64_t y = 0;
  int64_t width = 0;
  int64_t height = 0;
  friend bool operator==(const Rect&, const Rect&) = default;
};

// A Plain that belongs to one of the images. It converts to Plain where the
// image does not matter.
template <class Plain, class Image>
struct Of : Plain {
  constexpr Of() = default;
  constexpr explicit Of(const Plain& plain) : Plain(plain) {}
  template <class Other>
  Of(const Of<Plain, Other>&) = delete;
  // Takes the numbers of Plain, in its order.
  template <std::convertible_to<int64_t>... Numbers>
  requires(sizeof...(Numbers) > 1) constexpr Of(Numbers... numbers)
      : Plain{static_cast<int64_t>(numbers)...} {}
};
template <class Plain, class A, class B>
bool operator==(const Of<Plain, A>&, const Of<Plain, B>&) = delete;
template <class Plain, class A>
bool operator==(const Of<Plain, A>& a, const Of<Plain, A>& b) {
  return static_cast<const Plain&>(a) == static_cast<const Plain&>(b);
}

using StoredRect = Of<Rect, struct InStoredImage>;
using TurnedRect = Of<Rect, struct InTurnedImage>;
using StoredSize = Of<ImageSize, struct InStoredImage>;
using TurnedSize = Of<ImageSize, struct InTurnedImage>;

}  // namespace leat::worker
