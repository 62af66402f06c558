// SPDX-License-Identifier: Apache-2.0
//
// Bench: a GPU for measurements, without the worker's threads; and rows for the
// fused kernel whose images are in its memory.
#pragma once

#include <array>
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
#include "worker/gpu/cuda/queue.h"
#include "worker/gpu/fused/program.h"
#include "worker/gpu/resources/slots.h"

namespace leat::gpu_check {

// Counts writes of decoders outside of the requested images.
struct Beside {
  size_t images = 0;   // examined
  size_t in_room = 0;  // images beside which whole MCUs were written
  size_t outside = 0;  // images that were written beyond these
};

struct Bench {
  std::unique_ptr<worker::CudaDevice> gpu;
  std::shared_ptr<const cuda::Nvjpeg> library;  // nullptr: none on this machine
  std::unique_ptr<worker::Slots> slots;
  bool has_engines() const { return gpu->info().jpeg_engines > 0; }
  worker::Slot& slot() const { return *slots->all()[0]; }
  // The stream of one of the bench's slots.
  static cuda::Stream StreamOf(const worker::Slot& slot) {
    return static_cast<const worker::CudaQueue&>(*slot.queue).stream();
  }
  // Counts of GuardedImages: by engines, and by CUDA.
  std::shared_ptr<std::array<Beside, 2>> beside =
      std::make_shared<std::array<Beside, 2>>();
  // Returns the device's free bytes.
  size_t FreeBytes() const;
};

// Initialises the driver, and makes the context current on this thread.
absl::StatusOr<Bench> OpenBench(const Setup& setup, int slots = 2);
// For steps that need the engines. False: the reason is reported.
bool OpenEngines(const Setup& setup, std::string_view what, Report* report,
                 Bench* bench);

double SecondsSince(MonotonicTime start);

inline constexpr double kMiB = 0x1p20;

// Differences between the bytes of two decoders.
struct Difference {
  int most = 0;
  double sum = 0, bytes = 0;
  size_t images = 0;
  void Add(std::span<const uint8_t> a, std::span<const uint8_t> b);
  double mean() const;
};

// Describes a whole file for the slot's decoder, by the engines if they take
// it.
absl::StatusOr<worker::JpegToDecode> WholeJpeg(const worker::Slot& slot,
                                               const std::string& file,
                                               ImageSize size, bool luma,
                                               worker::DeviceAddress address);

// An image in the device's memory, placed as a worker does: with room for whole
// MCUs, and guard bytes before and after it.
class GuardedImage {
 public:
  // `at`: memory of bytes() bytes. REQUIRES: the bench outlives it.
  GuardedImage(const Bench* bench, const worker::DecodeShape& shape,
               int64_t channels, worker::DeviceAddress at);

  worker::DeviceAddress address() const { return at_ + kGuardBytes; }
  size_t pitch() const { return pitch_; }
  size_t bytes() const { return pitch_ * rows_ + 2 * kGuardBytes; }

  // Fills everything before decoding. Returns when it is done.
  absl::Status Fill(worker::DeviceQueue* queue, uint8_t fill);
  // Returns the image's bytes, row after row, without the room. Counts other
  // changes since Fill. Waits for the queue.
  absl::StatusOr<std::vector<uint8_t>> Fetch(worker::DeviceQueue* queue,
                                             bool engines) const;

 private:
  static constexpr size_t kGuardBytes = 4096;
  const Bench& bench_;
  const worker::DeviceAddress at_;
  const size_t row_bytes_, image_rows_, pitch_, rows_;
  uint8_t fill_ = 0;
};

// Reports a finding about all guarded images of the bench.
void SayBeside(const Bench& bench, std::string_view what, Report* report);

// Rows of a graph whose first field is computed from pixels. Their images are
// contiguous in the slot's memory, three bytes per pixel; their fields begin at
// slot.device_outputs.
struct FusedRows {
  std::unique_ptr<worker::FusedProgram> program;
  size_t rows = 0;
  std::vector<worker::DeviceAddress> images;  // by row; none: row left out
  size_t field_bytes = 0;                     // per row
  double bytes = 0;  // least that a launch has to read and write
};
// Binds as many of the images as the slot has room for. Descriptors are on the
// device when this returns.
absl::StatusOr<FusedRows> BindRows(const Setup& setup, const Bench& bench,
                                   const Graph& graph,
                                   std::span<const ImageSize> sizes);
absl::Status Launch(const Bench& bench, const FusedRows& rows);

}  // namespace leat::gpu_check
