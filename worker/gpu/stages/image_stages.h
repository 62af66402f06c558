// SPDX-License-Identifier: Apache-2.0
//
// Descriptors of images that several operators write; all but their heads.
#pragma once

#include <cstdint>

#include "worker/gpu/stages/stage.h"

namespace leat::worker {

inline uint32_t PixelsOf(const StageTensor& image) {
  return static_cast<uint32_t>(image.shape[0] * image.shape[1]);
}

PixelsRow PixelsRowOf(const MatrixForm& form, const StageRow& row,
                      const StageTensor& in, const StageTensor& out);
WarpRow WarpRowOf(const WarpForm& form, const StageRow& row,
                  const StageTensor& in, const StageTensor& out);

}  // namespace leat::worker
