// SPDX-License-Identifier: Apache-2.0
//
// The kernels of stages: their names and launches. Bodies are in map.h,
// image.h, noise.h, bytes.h and standard.h.
#pragma once

#include <cstdint>

#include "worker/gpu/kernels/bytes.h"
#include "worker/gpu/kernels/image.h"
#include "worker/gpu/kernels/map.h"
#include "worker/gpu/kernels/noise.h"
#include "worker/gpu/kernels/standard.h"
#include "worker/gpu/layout/launch_config.h"

namespace leat::worker {

// Indexed by StageKind. A kernel's only parameter is the address of the rows'
// descriptors, a uint64_t.
inline constexpr const char* kStageKernels[kStageKinds] = {
    "leat_stage_map",     "leat_stage_pixels",     "leat_stage_resample",
    "leat_stage_warp",    "leat_stage_blur",       "leat_stage_noise",
    "leat_stage_count",   "leat_stage_byte_table", "leat_stage_byte_lookup",
    "leat_stage_sharpen", "leat_stage_standard"};

inline constexpr uint32_t kStageBlock = 128;  // threads

// Returns the launch for `rows` rows with at most `threads` each.
inline LaunchConfig StageLaunchConfig(uint32_t threads, uint32_t rows) {
  LaunchConfig config;
  config.grid_x = (threads + kStageBlock - 1) / kStageBlock;
  config.grid_y = rows;
  config.block_x = kStageBlock;
  return config;
}

template <StageKind kKind>
LEAT_PIXEL void StageThread(uint64_t rows, uint32_t thread, uint32_t row) {
  if constexpr (kKind == StageKind::kMap)
    MapThread(rows, thread, row);
  else if constexpr (kKind == StageKind::kPixels)
    PixelsThread(rows, thread, row);
  else if constexpr (kKind == StageKind::kResample)
    ResampleThread(rows, thread, row);
  else if constexpr (kKind == StageKind::kWarp)
    WarpThread(rows, thread, row);
  else if constexpr (kKind == StageKind::kBlur)
    BlurThread(rows, thread, row);
  else if constexpr (kKind == StageKind::kNoise)
    NoiseThread(rows, thread, row);
  else if constexpr (kKind == StageKind::kCount)
    CountThread(rows, thread, row);
  else if constexpr (kKind == StageKind::kByteTable)
    ByteTableThread(rows, thread, row);
  else if constexpr (kKind == StageKind::kByteLookup)
    ByteLookupThread(rows, thread, row);
  else if constexpr (kKind == StageKind::kSharpen)
    SharpenThread(rows, thread, row);
  else
    StandardThread(rows, thread, row);
}

}  // namespace leat::worker
