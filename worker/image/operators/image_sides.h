// SPDX-License-Identifier: Apache-2.0
//
// The check of operators that read a pixel near each place of an image. A value
// whose first size differs from sample to sample, such as uint8[?,28,3], may
// have no rows.
#pragma once

#include <cstdint>
#include <limits>

#include "absl/status/status.h"
#include "core/status.h"
#include "worker/image/loops/tensor.h"

namespace leat::worker {

// kInvalidArgument: the image has no pixel, or a side over `most`.
inline absl::Status CheckSides(
    const Tensor& image, int64_t most = std::numeric_limits<int64_t>::max()) {
  for (const size_t axis : {0, 1}) {
    if (image.dims[axis] < 1)
      return InvalidArgument("image of {} × {} (width × height) has no pixel",
                             image.dims[1], image.dims[0]);
    if (image.dims[axis] > most)
      return InvalidArgument(
          "image of {} × {} (width × height), want at most {}", image.dims[1],
          image.dims[0], most);
  }
  return absl::OkStatus();
}

}  // namespace leat::worker
