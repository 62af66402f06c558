// SPDX-License-Identifier: Apache-2.0
//
// Scratch::State: a Scratch's members.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "worker/image/loops/tensor.h"
#include "worker/image/program/scratch.h"
#include "worker/image/views/damaged_view.h"
#include "worker/image/views/image_scratch.h"

namespace leat::worker {

// The values of the row in progress, by node, and the memory of those that are
// not outputs.
struct RowValues {
  std::vector<Tensor> values;
  std::vector<std::vector<std::byte>> buffers;
  std::vector<std::vector<std::byte>> copies;  // of stored values
  // Values that show an image of a damaged file: almost always empty.
  std::vector<std::pair<uint32_t, DamagedView>> damaged;
};

struct Scratch::State : ImageScratch {
  using ImageScratch::ImageScratch;

  RowValues row, partner;
  uint64_t steps_run = 0;  // in all programs; for tests
};

}  // namespace leat::worker
