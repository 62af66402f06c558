// SPDX-License-Identifier: Apache-2.0
//
// Rectangles, and in which image they are: the one that is stored in the file,
// or the one that its EXIF orientation makes of it. Rectangles and sizes of the
// two are types of their own: Orientation (resample/geometry.h) leads from one
// to the other, and what confuses them does not compile.
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

// A Plain of one of the images. Whoever does not care takes it as a Plain.
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
