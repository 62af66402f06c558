// SPDX-License-Identifier: Apache-2.0
//
// DeviceForm: what an operator does to one sample's value, as numbers that a
// kernel of a device can be given. The formulas are those of the headers that
// both compilers take (formulas/color.h, formulas/arithmetic.h, formulas/warp.h
// …).
//
// Spans are the operator kernel's memory and live as long as it does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "core/random/philox.h"
#include "core/tensor/tensor.h"
#include "worker/image/formulas/augment.h"
#include "worker/image/formulas/color.h"
#include "worker/image/formulas/dali_pixel.h"
#include "worker/image/formulas/draws.h"
#include "worker/image/formulas/warp.h"
#include "worker/image/loops/box_copy.h"

namespace leat::worker {

// Linear of every element, in floats.
struct LinearForm {
  float factor = 1, constant = 0;
};
// MatrixRow of every pixel: of as many channels as the value has, the others
// being 0, to as many as the result has.
struct MatrixForm {
  ColorMatrix matrix{};
};
// An element of `table` by an integer; those that are negative or `places` and
// more have the last one. Every byte has a place.
struct LookupForm {
  std::span<const std::byte> table;  // of the result's type
  uint64_t places = 0;
};
// For each element `classes` elements, of which the one that it names is `on`
// and the others are `off`. Another number than 0 to classes - 1 is an error.
struct OneHotForm {
  std::span<const std::byte> off, on;  // an element of the result's type each
  uint64_t classes = 0;
};
// An operator of loops/arithmetic.h on two values, converted to `type` before;
// the result is of `computed` before it is converted to the result's.
struct ArithmeticForm {
  std::string_view op;
  DType type = DType::kFloat32, computed = DType::kFloat32;
  bool swapped = false;  // the second input comes first
  bool unary = false;    // of the first alone, and `second` where it has bytes
  std::span<const std::byte> second;  // an element of `type`; empty: none
  bool divides = false;               // a divisor of 0 is an error
};
// Inside any of `boxes` of the result the first, outside all the second: of the
// input, moved by `shift` (element i of the result is i + shift of the input),
// and a pattern that begins anew with each last axis.
struct BoxForm {
  std::vector<Box> boxes;
  std::array<int64_t, kMaxAxes> shift{};
  bool fills_inside = false;           // or the input is inside
  std::span<const std::byte> pattern;  // an element, or a last axis of them
};
// crop_mirror_normalize: rows and columns [at, at + size) of the image, of
// which it need not have all; the results are laid out as the node says.
struct WindowForm {
  int64_t at[2] = {}, size[2] = {};
  bool mirror = false;
  // Normalized has one of each a channel of the image; what lies outside it,
  // before it is converted to the result's type.
  std::span<const float> means, factors, fills;
  float shift = 0;
  bool planes = false;
};
// Inside the box the second input, outside the first.
struct PasteForm {
  Box box;
};
struct WarpForm {
  bool dali = false, nearest = false;
  WarpMap map;                // unless dali
  DaliMap dali_map;           // if dali
  std::optional<float> fill;  // unset: the nearest pixel of the edge
};
// Weights of the pixel itself, of its neighbours at the distance 1, 2, …
struct BlurForm {
  std::vector<float> weights;
};

// standardize: of the elements that have the same places on the other axes.
struct StandardForm {
  uint32_t reduced = 0;  // bit i: axis i
  // Given: one, or one for each group; none: computed.
  std::span<const double> means, deviations;
  double ddof = 0, epsilon = 0, scale = 1;
  float shift = 0;
};

struct NoiseForm {
  NoiseKind kind = NoiseKind::kNormal;
  SampleRng::Origin origin;
  float mean = 0, deviation = 0;  // of kNormal
  float factor = 0;               // of kShot; 0: none
  // For kSaltAndPepper: words below `noisy` change `group` elements, those
  // below `salted` to the one, the others to the other, of the value's type.
  uint64_t noisy = 0, salted = 0;
  uint32_t group = 1;
  std::byte salt[8] = {}, pepper[8] = {};
};

// A table of 256 entries for each channel maps the bytes of an image. A device
// computes it from the image, since some maps depend on how often bytes occur.
struct ByteTableForm {
  ByteMap kind = ByteMap::kSame;
  int32_t number = 0;              // of masks and solarizing
  float factor = 1, constant = 0;  // of Linear; the factor of contrast, too
};
struct SharpenForm {
  SharpnessWeights weights;
};
using AugmentationForm =
    std::variant<ByteTableForm, MatrixForm, WarpForm, SharpenForm>;
// Operations on an image of bytes, one after the other.
struct AugmentForm {
  absl::InlinedVector<AugmentationForm, 4> operations;
};

using DeviceForm =
    std::variant<std::monostate, LinearForm, MatrixForm, LookupForm, OneHotForm,
                 ArithmeticForm, BoxForm, WindowForm, PasteForm, WarpForm,
                 BlurForm, NoiseForm, AugmentForm, StandardForm>;

}  // namespace leat::worker
