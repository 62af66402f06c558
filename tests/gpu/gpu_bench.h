// SPDX-License-Identifier: Apache-2.0
//
// Bench: a GPU of a measurement's own, without the worker's threads.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "cuda/nvjpeg.h"
#include "tests/gpu/gpu_check.h"
#include "worker/gpu/slots.h"

namespace leat::gpu_check {

struct Bench {
  std::unique_ptr<worker::Gpu> gpu;
  std::shared_ptr<const cuda::Nvjpeg> library;
  std::unique_ptr<const worker::NvjpegDevice> nvjpeg;
  std::unique_ptr<worker::Slots> slots;  // two
};

absl::StatusOr<Bench> OpenBench(const Setup& setup);

}  // namespace leat::gpu_check
