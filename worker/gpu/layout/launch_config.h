// SPDX-License-Identifier: Apache-2.0
//
// LaunchConfig: the number of threads in a kernel's launch.
#pragma once

#include <cstdint>

namespace leat::worker {

struct LaunchConfig {
  uint32_t grid_x = 1, grid_y = 1, grid_z = 1;     // blocks
  uint32_t block_x = 1, block_y = 1, block_z = 1;  // threads per block
  uint32_t shared_bytes = 0;
};

}  // namespace leat::worker
