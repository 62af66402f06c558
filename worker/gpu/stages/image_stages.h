// SPDX-License-Identifier: Apache-2.0
//
// Several families of stages of images share these functions.
#pragma once

#include <cstdint>

#include "worker/gpu/stages/stage.h"

namespace leat::worker {

inline uint64_t PixelsOf(Sizes image) { return ElementsOf(image.first(2)); }
// Returns the threads of a launch with one per pixel, as Stage::threads does.
inline uint32_t PixelThreadsFor(const StageTensor& image) {
  return image.by_row() ? 0 : static_cast<uint32_t>(PixelsOf(image.shape));
}
// kUnimplemented: the image's channels are not known, or more than `most`.
absl::Status WantChannels(const StageTensor& image, int64_t most);

PixelsRow PixelsRowOf(const MatrixForm& form, const StageRow& row,
                      const StageTensor& in, const StageTensor& out);
WarpRow WarpRowOf(const WarpForm& form, const StageRow& row,
                  const StageTensor& in, const StageTensor& out);

}  // namespace leat::worker
