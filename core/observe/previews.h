// SPDX-License-Identifier: Apache-2.0
//
// Previews shows rows of a batch to people: a field as 8-bit RGB, and a label.
// Pure. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace leat {

struct RgbImage {
  int width = 0;
  int height = 0;
  std::vector<uint8_t> rgb;  // height × width × 3
};

// A FieldRows is one field of some rows. It borrows the memory, which must
// outlive it.
struct FieldRows {
  std::string_view name;
  std::string_view dtype;          // NumPy's name
  std::span<const int64_t> shape;  // rows first
  std::span<const std::byte> data;
};

// Describes one row of a field as an image: (H,W), (H,W,1|3|4) or (1|3|4,H,W);
// the first that fits.
struct ImageShape {
  int64_t height = 0, width = 0, channels = 0;
  bool channels_first = false;
};
// kInvalidArgument: the shape or the dtype is not an image's.
absl::StatusOr<ImageShape> ImageShapeOf(const FieldRows& field);

// Returns the index of the field named `wanted`, or of the first field that is
// an image if `wanted` is empty. kInvalidArgument: there is none; lists the
// fields.
absl::StatusOr<size_t> FindImage(std::span<const FieldRows> fields,
                                 std::string_view wanted);

struct Previews {
  std::vector<RgbImage> rows;
  // How values were mapped to brightness, if not one to one: "stretched from
  // ...".
  std::string note;
};
// Converts the rows of a field. uint8 is unchanged. Of other dtypes, rows whose
// values are all in [0, 1] are scaled by 255, and those in [0, 255] are
// unchanged; others are stretched from the smallest to the largest value of
// each channel over all rows, which undoes a normalisation well enough for
// display. NaN is black. Alpha is dropped.
absl::StatusOr<Previews> ToPreviews(const FieldRows& field);

// Returns the picture shrunk by area average until no side exceeds `largest`;
// if both sides are under `smallest`, enlarged by the smallest integer factor
// that reaches `smallest`.
RgbImage Fit(const RgbImage& picture, int smallest, int largest);

// Returns a row's value if `field` has one integer per row; otherwise nullopt.
std::optional<int64_t> WholeAt(const FieldRows& field, size_t row);
// Returns the field "label", or else the only field of one integer per row;
// nullptr: there is none.
const FieldRows* FindLabel(std::span<const FieldRows> fields);
// Returns the class's name, or the number; empty: the rows have no label.
std::string LabelText(const FieldRows* label, size_t row,
                      std::span<const std::string> classes);

// Says where a row comes from.
struct RowOrigin {
  std::string_view source;  // of the mixture; empty: the job is none
  std::span<const std::string> classes;  // of the row's dataset
};
// Returns the label, and before it the source: "web: cat". Empty: the row has
// neither.
std::string LabelText(const FieldRows* label, size_t row,
                      const RowOrigin& origin);

}  // namespace leat
