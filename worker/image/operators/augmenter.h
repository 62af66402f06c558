// SPDX-License-Identifier: Apache-2.0
//
// Augmenter: applies operations of automatic augmentation to an image, one
// after the other.
#pragma once

#include <optional>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/operators/augmentation.h"
#include "worker/image/formulas/affine.h"
#include "worker/image/loops/tensor.h"
#include "worker/image/loops/warp.h"
#include "worker/image/operators/device_form.h"

namespace leat::worker {

// Immutable; thread-safe.
class Augmenter {
 public:
  struct Options {
    WarpFilter filter = WarpFilter::kLinear;
    std::optional<float> fill = 128;  // unset: the nearest pixel of the edge
    bool relative = false;            // translations are parts of the sides
    bool dali = false;                // rule "dali"
  };
  explicit Augmenter(const Options& options) : options_(options) {}

  // kInvalidArgument: there is no pixel, or a side is too long to be moved or
  // turned.
  static absl::Status CheckSize(const Tensor& image);

  // Writes to `out`, which has the shape of `in` and shares no memory with it.
  // Allocates the memory of one more image, if two of the steps need it.
  // kInvalidArgument: a coordinate that fixed point cannot hold. REQUIRES:
  // uint8, 1 or 3 channels; CheckSize(in).ok(); parameters within
  // InfoOf(operation).
  absl::Status Run(std::span<const AugmentationStep> steps, const Tensor& in,
                   const Tensor& out) const;

  // Returns a step's effect, for a device. Errors: as for Run.
  absl::StatusOr<AugmentationForm> FormOf(const AugmentationStep& step,
                                          const Tensor& in) const;

 private:
  absl::StatusOr<WarpForm> WarpOf(const AugmentationStep& step,
                                  const Tensor& in) const;
  absl::Status RunOne(const AugmentationStep& step, const Tensor& in,
                      const Tensor& out) const;
  absl::Status Move(const AugmentationStep& step, const Tensor& in,
                    const Tensor& out) const;

  const Options options_;
};

// Equalizes each channel by the distribution of its values; `out` may be in's
// memory.
// REQUIRES: uint8, 1 to 4 channels.
void Equalize(const Tensor& in, const Tensor& out);

}  // namespace leat::worker
