// SPDX-License-Identifier: Apache-2.0
//
// DeviceForm: an operator's effect on one sample's value, as numbers that a
// kernel of a device takes. The formulas are those of the headers that both
// compilers compile (formulas/color.h, formulas/arithmetic.h, formulas/warp.h
// …).
//
// Spans point into the operator kernel's memory and live as long as it does.
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

// Applies Linear to every element, in floats.
struct LinearForm {
  float factor = 1, constant = 0;
};
// Applies MatrixRow to every pixel: row i of the matrix gives channel i of the
// result; channels that the value lacks count as 0.
struct MatrixForm {
  ColorMatrix matrix{};
};
// Looks up an element of `table` by an integer. Integers that are negative or
// at least `places` give the last element. `places` is at least 256.
struct LookupForm {
  std::span<const std::byte> table;  // of the result's type
  uint64_t places = 0;
};
// Turns each element into `classes` elements: `on` at the element's index,
// `off` elsewhere. A number outside 0 … classes - 1 is an error.
struct OneHotForm {
  std::span<const std::byte> off, on;  // one element of the result's type each
  uint64_t classes = 0;
};
// Applies an operator of loops/arithmetic.h to two values that are first
// converted to `type`. Its result has the type `computed`, and is then
// converted to the result's type.
struct ArithmeticForm {
  std::string_view op;
  DType type = DType::kFloat32, computed = DType::kFloat32;
  bool swapped = false;  // the second input comes first
  // takes the first input, and `second` if that is not empty
  bool unary = false;
  std::span<const std::byte> second;  // an element of `type`; empty: none
  bool divides = false;               // a divisor of 0 is an error
};
// Fills boxes. Inside any of `boxes` the result is one of two things, outside
// all of them the other: the input moved by `shift` (element i of the result is
// i + shift of the input), and a pattern that restarts with each last axis.
struct BoxForm {
  std::vector<Box> boxes;
  std::array<int64_t, kMaxAxes> shift{};
  bool fills_inside = false;  // the pattern is inside; else the input is
  std::span<const std::byte> pattern;  // an element, or a last axis of them
};
// crop_mirror_normalize: takes rows and columns [at, at + size) of the image,
// and beyond it `fills`; the results have the layout that the node says.
struct WindowForm {
  int64_t at[2] = {}, size[2] = {};
  bool mirror = false;
  // One element per channel of the image: Normalized takes the means and
  // factors; `fills` are the values outside the image, not yet converted to the
  // result's type.
  std::span<const float> means, factors, fills;
  float shift = 0;
  bool planes = false;
};
// Takes the second input inside the box, the first outside.
struct PasteForm {
  Box box;
};
struct WarpForm {
  bool dali = false, nearest = false;
  WarpMap map;                // unless dali
  DaliMap dali_map;           // if dali
  std::optional<float> fill;  // unset: the nearest pixel of the edge
};
// Weights of the pixel itself and of its neighbours at the distances 1, 2, …
struct BlurForm {
  std::vector<float> weights;
};

// standardize: a group has the elements that agree in their index on all axes
// that are not reduced.
struct StandardForm {
  uint32_t reduced = 0;  // bit i: axis i
  // Given values: one, or one per group; empty: computed from the elements.
  std::span<const double> means, deviations;
  double ddof = 0, epsilon = 0, scale = 1;
  float shift = 0;
};

struct NoiseForm {
  NoiseKind kind = NoiseKind::kNormal;
  SampleRng::Origin origin;
  float mean = 0, deviation = 0;  // for kNormal
  float factor = 0;               // for kShot; 0: no noise
  // For kSaltAndPepper: one word is drawn per `group` elements. Words below
  // `noisy` change them: words below `salted` to `salt`, others to `pepper`,
  // which are of the value's type.
  uint64_t noisy = 0, salted = 0;
  uint32_t group = 1;
  std::byte salt[8] = {}, pepper[8] = {};
};

// Maps the bytes of an image by a table of 256 entries per channel. A device
// computes the table from the image, since some maps depend on the histogram.
struct ByteTableForm {
  ByteMap kind = ByteMap::kSame;
  int32_t number = 0;              // for masks and solarizing
  float factor = 1, constant = 0;  // for Linear; `factor` also for contrast
};
struct SharpenForm {
  SharpnessWeights weights;
};
using AugmentationForm =
    std::variant<ByteTableForm, MatrixForm, WarpForm, SharpenForm>;
// Operations on an image of bytes, applied one after the other.
struct AugmentForm {
  absl::InlinedVector<AugmentationForm, 4> operations;
};

using DeviceForm =
    std::variant<std::monostate, LinearForm, MatrixForm, LookupForm, OneHotForm,
                 ArithmeticForm, BoxForm, WindowForm, PasteForm, WarpForm,
                 BlurForm, NoiseForm, AugmentForm, StandardForm>;

}  // namespace leat::worker
