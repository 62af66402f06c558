// SPDX-License-Identifier: Apache-2.0
//
// Bench: a GPU of a measurement's own, without the worker's threads; and rows
// for the fused kernel whose images lie in its memory.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/clock.h"
#include "core/pipeline/graph.h"
#include "core/tensor/image_size.h"
#include "cuda/nvjpeg.h"
#include "tests/gpu/gpu_check.h"
#include "worker/gpu/cuda/cuda_queue.h"
#include "worker/gpu/fused_program.h"
#include "worker/gpu/slots.h"

namespace leat::gpu_check {

struct Bench {
  std::unique_ptr<worker::CudaDevice> gpu;
  std::shared_ptr<const cuda::Nvjpeg> library;  // null: none on this machine
  std::unique_ptr<worker::Slots> slots;         // two
  bool has_engines() const { return gpu->info().jpeg_engines > 0; }
  worker::Slot& slot() const { return *slots->all()[0]; }
  // Of a slot of the bench's.
  static cuda::Stream StreamOf(const worker::Slot& slot) {
    return static_cast<const worker::CudaQueue&>(*slot.queue).stream();
  }
  // Free bytes of the device.
  size_t FreeBytes() const;
};

// The driver is initialised, the context current on this thread.
absl::StatusOr<Bench> OpenBench(const Setup& setup);
// For steps that need the engines: false, and why, is reported.
bool OpenEngines(const Setup& setup, std::string_view what, Report* report,
                 Bench* bench);

double SecondsSince(MonotonicTime start);

inline constexpr double kMiB = 0x1p20;

// Of a decoder's bytes against another's.
struct Difference {
  int most = 0;
  double sum = 0, bytes = 0;
  size_t images = 0;
  void Add(std::span<const uint8_t> a, std::span<const uint8_t> b);
  double mean() const;
};

// A whole file for the slot's decoder, by the engines if they take it.
absl::StatusOr<worker::JpegToDecode> WholeJpeg(const worker::Slot& slot,
                                               const std::string& file,
                                               ImageSize size, bool luma,
                                               worker::DeviceAddress address);

// Rows of a graph whose first field is made of pixels. Their images lie one
// behind the other in the slot's memory, three bytes a pixel; their fields from
// slot.device_outputs.
struct FusedRows {
  std::unique_ptr<worker::FusedProgram> program;
  size_t rows = 0;
  std::vector<worker::DeviceAddress> images;  // by row; none: it is left out
  size_t field_bytes = 0;                     // of a row
  double bytes = 0;  // that a launch has to read and write at least
};
// Descriptors are on the device when this returns. As many of the images as the
// slot has room for.
absl::StatusOr<FusedRows> BindRows(const Setup& setup, const Bench& bench,
                                   const Graph& graph,
                                   std::span<const ImageSize> sizes);
absl::Status Launch(const Bench& bench, const FusedRows& rows);

}  // namespace leat::gpu_check
