// SPDX-License-Identifier: Apache-2.0
//
// Operators on whole tensors: mirrored copies, normalize, cast, transpose.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/tensor/tensor.h"
#include "worker/image/base/rect.h"

namespace leat::worker {

inline constexpr int kMaxAxes = 8;

// One sample's value of a node. Borrows its memory.
struct Tensor {
  DType dtype = DType::kUint8;
  int rank = 0;
  std::array<int64_t, kMaxAxes> dims{};
  std::byte* data = nullptr;

  // Return the greatest size_t if there are more: sizes of samples and of
  // arguments may have any product.
  size_t elements() const;
  size_t bytes() const;
};

// Copies the window of an image (height, width, channels) to `out`, dense.
void CopyWindow(const Tensor& image, const Rect& window, bool mirror_x,
                bool mirror_y, std::byte* out);
// Reverses the order of `pixels` pixels in place.
void MirrorRow(std::byte* row, size_t pixels, size_t pixel_bytes);

// (x - mean) × (scale / std) + shift, per channel, as core/tensor/pointwise.h
// defines.
class Normalizer {
 public:
  // `mean`, `std`: one number or `channels`.
  Normalizer(std::span<const double> mean, std::span<const double> std,
             double scale, double shift, int channels, DType out);
  // The last axis of in.dims is the channels; `out` holds as many elements.
  void Run(const Tensor& in, std::byte* out) const;

  // Both have one element per channel.
  const std::vector<float>& means() const { return mean_; }
  const std::vector<float>& factors() const { return factor_; }
  float shift() const { return shift_; }

 private:
  float At(float x, int channel) const;

  int channels_;
  DType out_;
  std::vector<float> mean_, factor_;
  float shift_;
  // The results for every byte and every channel, and the same as float16.
  std::vector<float> floats_;
  std::vector<uint16_t> halves_;
};

void Cast(const Tensor& in, DType dtype, std::byte* out);
// Axis i of the result is axis perm[i] of `in`.
void Transpose(const Tensor& in, std::span<const int64_t> perm, std::byte* out);

}  // namespace leat::worker
