// SPDX-License-Identifier: Apache-2.0
//
// ImageSize is used by the shape inference and the kernels.
#pragma once

#include <cstdint>

namespace leat {

struct ImageSize {
  int64_t height = 0;
  int64_t width = 0;
  friend bool operator==(const ImageSize&, const ImageSize&) = default;
};

}  // namespace leat
