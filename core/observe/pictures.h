// SPDX-License-Identifier: Apache-2.0
//
// Pictures: rows of a batch for people: a field as 8-bit RGB, and a label.
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

struct Picture {
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

// One row of a field, read as an image: (H,W), (H,W,1|3|4) or (1|3|4,H,W); the
// first that fits.
struct ImageShape {
  int64_t height = 0, width = 0, channels = 0;
  bool channels_first = false;
};
// kInvalidArgument: the shape or the dtype is no image's.
absl::StatusOr<ImageShape> ImageShapeOf(const FieldRows& field);

// Returns the place of the field called `wanted`, or if that is empty of the
// first that is an image. kInvalidArgument: none; lists the fields.
absl::StatusOr<size_t> FindImage(std::span<const FieldRows> fields,
                                 std::string_view wanted);

struct Pictures {
  std::vector<Picture> rows;
  // How values became brightness, if not one to one: "stretched from ...".
  std::string note;
};
// uint8 is shown as it is. Floats in [0, 1] are scaled by 255 and floats in
// [0, 255] taken as they are; others, and other integers, are stretched from
// the least to the greatest value of each channel over all rows, which undoes a
// normalisation well enough to look at. NaN is black. Alpha is dropped.
absl::StatusOr<Pictures> ToPictures(const FieldRows& field);

// Shrunk by area average until no side exceeds `largest`; if both sides are
// under `smallest`, enlarged by the least whole factor that mends it.
Picture Fit(const Picture& picture, int smallest, int largest);

// One whole number a row; nullopt: `field` is not that.
std::optional<int64_t> WholeAt(const FieldRows& field, size_t row);
// The field "label", or else the only whole number of the rows; nullptr: none.
const FieldRows* FindLabel(std::span<const FieldRows> fields);
// The class's name, or the number; empty: the rows have no label.
std::string LabelText(const FieldRows* label, size_t row,
                      std::span<const std::string> classes);

}  // namespace leat
