// SPDX-License-Identifier: Apache-2.0
//
// The messages in Caffe's and Caffe2's LMDB files: an image and its label.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "core/tensor/tensor.h"

namespace leat::worker {

struct CaffeRecord {
  bool encoded = false;
  std::span<const std::byte> image;  // in the message's own bytes
  // The shape of raw pixels; the product is the image's bytes.
  int64_t height = 0, width = 0, channels = 0;
  bool planes = false;               // one channel after the other: (c, h, w)
  DType label_type = DType::kInt32;  // or kFloat32
  uint32_t label = 0;                // its bits
};

// Parses a caffe.Datum. Its flag `encoded` says what `data` is; if it is
// absent, data of exactly channels * height * width bytes is raw pixels, other
// data encoded. kDataLoss: malformed, without pixels, or of other sizes than
// declared. kUnimplemented: pixels as floats.
absl::StatusOr<CaffeRecord> ParseDatum(std::span<const std::byte> value);

// Parses a caffe2.TensorProtos: first the image, STRING (encoded) or BYTE (raw
// height, width[, channels]); then the label, one INT32 or FLOAT. Further
// tensors are skipped. kDataLoss: malformed, or without these. kUnimplemented:
// tensors of other types.
absl::StatusOr<CaffeRecord> ParseTensorProtos(std::span<const std::byte> value);

}  // namespace leat::worker
