// SPDX-License-Identifier: Apache-2.0
//
// The header of a .npy file (numpy.lib.format): magic, version 1 to 3, the
// length, and a Python dictionary as text,
//   {'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }
// It is not parsed as Python: it must have the three keys once each, in any
// order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "absl/status/statusor.h"
#include "core/tensor/tensor.h"

namespace leat::worker {

inline constexpr size_t kNumpyPrefixBytes = 12;
inline constexpr size_t kMaxNumpyHeaderBytes = 64 << 10;

struct NumpyHeader {
  DType dtype = DType::kUint8;
  // The elements are float64, which no tensor has; `dtype` only has their size.
  bool float64 = false;
  bool fortran_order = false;
  Shape shape;
  uint64_t data_offset = 0;
  uint64_t data_bytes = 0;  // that the shape claims
  friend bool operator==(const NumpyHeader&, const NumpyHeader&) = default;
};

// Returns the bytes of prefix and dictionary, from the file's first
// kNumpyPrefixBytes (or all it has). kDataLoss: not a .npy file, or over
// kMaxNumpyHeaderBytes. kUnimplemented: another version.
absl::StatusOr<size_t> NumpyHeaderBytes(std::span<const std::byte> begin);

// The types of elements that a caller accepts: a tensor's, a tensor's and
// float64, or integers.
enum class NumpyElements : uint8_t { kOfTensors, kFloat64Too, kIntegers };

// `header` has NumpyHeaderBytes() bytes. kDataLoss: malformed. kUnimplemented
// (kInvalidArgument if `wanted` is kIntegers): the elements are big-endian or
// of another type; the text names their type and the accepted ones.
absl::StatusOr<NumpyHeader> ParseNumpyHeader(
    std::span<const std::byte> header,
    NumpyElements wanted = NumpyElements::kOfTensors);

}  // namespace leat::worker
