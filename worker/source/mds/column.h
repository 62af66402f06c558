// SPDX-License-Identifier: Apache-2.0
//
// MdsColumn: one column of MDS samples, and its type in Leat.
//
//   jpeg, png                      an encoded image
//   bytes                          uint8 (?,), unless the reader declares what
//                                  they are: an image, or elements of a type
//   str                            uint8 (?,), UTF-8
//   uint8, int32, int64, float16, float32, int (= int64)     unchanged
//   int8, int16, uint16, uint32    unchanged
//   float64                        float32, rounded to nearest
//   ndarray:DTYPE:SHAPE            the same per element, with that shape
//
// Others are refused: pkl (would run code), json, pil, uint64, arrays whose
// shape is not declared, lists.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/pipeline/operators.h"

namespace leat::worker {

enum class MdsElement : uint8_t {
  kBytes,  // of any number
  kUint8,
  kInt8,
  kInt16,
  kUint16,
  kInt32,
  kUint32,
  kInt64,
  kFloat16,
  kFloat32,
  kFloat64
};

struct MdsColumn {
  ValueType type;
  MdsElement element = MdsElement::kBytes;
  uint64_t elements = 1;      // unless kBytes
  uint64_t stored_bytes = 0;  // of all elements; unless kBytes
};

// `size`: the size in the index, 0 for any. `declared`: what the reader says
// that the column is; nullptr: nothing. kUnimplemented: an encoding that is
// refused; kDataLoss: a malformed one, or of another size; kInvalidArgument: it
// is not what is declared. All name it.
absl::StatusOr<MdsColumn> ParseMdsColumn(std::string_view encoding,
                                         uint64_t size,
                                         const ValueType* declared);

// Returns the bytes of the column's value in a sample, converted.
uint64_t ConvertedBytes(const MdsColumn& column, uint64_t stored_bytes);
// REQUIRES: `to` has ConvertedBytes(from.size()); `from` has stored_bytes,
// unless kBytes.
void ConvertMds(const MdsColumn& column, std::span<const std::byte> from,
                std::span<std::byte> to);

// Sets the shape of a converted value of kBytes, which has the sizes that its
// type leaves open; other values keep theirs. kInvalidArgument: the bytes are no
// value of the type.
absl::Status SetShapeOfBytes(const MdsColumn& column,
                             std::span<const std::byte> bytes, Shape* shape);

}  // namespace leat::worker
