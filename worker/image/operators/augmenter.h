// SPDX-License-Identifier: Apache-2.0
//
// Augmenter: operations of automatic augmentation on an image, one after the
// other.
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

  // kInvalidArgument: a side that is too long to be moved or turned.
  static absl::Status CheckSize(const Tensor& image);

  // Writes to `out`, of the shape of `in`, which shares no memory with it.
  // Takes the memory of one more image, if two of the steps need it.
  // kInvalidArgument: a place that fixed point does not hold. REQUIRES: uint8,
  // 1 or 3 channels; CheckSize(in).ok(); parameters within InfoOf(operation).
  absl::Status Run(std::span<const AugmentationStep> steps, const Tensor& in,
                   const Tensor& out) const;

  // What a step does, for a device. Errors: Run's.
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

// Each channel's values spread by their distribution; `out` may be in's memory.
// REQUIRES: uint8, 1 to 4 channels.
void Equalize(const Tensor& in, const Tensor& out);

}  // namespace leat::worker
