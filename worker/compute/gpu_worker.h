// SPDX-License-Identifier: Apache-2.0
//
// GpuWorker: a worker's GPUs, as the rest of the worker sees them. CMake
// chooses one of two folders that implement it: gpu/, or no_gpu/, which has no
// GPUs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/clock.h"
#include "core/plan/job.h"
#include "worker/compute/buffer_pool.h"
#include "worker/compute/row_kernel.h"
#include "worker/compute/wake_signal.h"

namespace leat::worker {

class DeviceImporter;  // worker/shared_memory/device_importer.h

// The value of --devices.
struct DeviceSelection {
  bool all = true;           // all that work; a warning names the others
  std::vector<int> indices;  // if not all: these, and each must work
};
// Parses "all", "none" or "0,1". kInvalidArgument: any other text.
absl::StatusOr<DeviceSelection> ParseDevices(std::string_view text);

// The most rows that go through a GPU together.
inline constexpr size_t kMaxGpuGroupRows = 128;

struct GpuConfig {
  DeviceSelection devices;
  // Groups of rows on a GPU at the same time, each in its own slot.
  int slots = 4;
  // Bytes per slot for coefficients and pixels on their way to the GPU,
  // page-locked and on the device; up to half of it holds values between
  // operators there. The CPU computes the rows that do not fit.
  uint64_t slot_bytes = 64ull << 20;
  // The sizes that are 0 follow from the GPU's memory (For).
  //
  // Bytes per slot for results on the device; limits the rows of a group.
  uint64_t group_bytes = 0;
  // Bytes per slot for images that are decoded on the device. A group with more
  // bytes of images that nvJPEG decodes is computed in several passes. In class
  // exact, the host decodes the images whose coefficients do not fit.
  uint64_t decode_bytes = 0;
  // The most working memory that the decoder, nvJPEG, may take per slot, for
  // device memory and for page-locked memory each. Images that need more are
  // decoded in smaller batches; a single image that needs more fails its group.
  uint64_t decoder_bytes = 0;
  // True if the slots' decoders use one handle of nvJPEG, each with a state of
  // its own, instead of a handle each. Bytes do not depend on it; which one is
  // faster was not measured.
  bool decoders_share = false;
  // A GPU is given up after this many failures without a success in between.
  int max_failures = 8;
  // Detects a GPU that does not come back; tests set their own clock. Outlives
  // the worker.
  const Clock* clock = &Clock::Real();

  // kInvalidArgument: names the flag.
  absl::Status Validate() const;
  // Returns the configuration of a GPU with so much memory, with all sizes set.
  GpuConfig For(uint64_t memory_bytes) const;
};

// An image with more decoded bytes than this is never given to nvJPEG. Constant
// in a release, without a flag, because it decides the bytes of a row.
inline constexpr uint64_t kMaxNvjpegImageBytes = 96ull << 20;

struct GpuInfo {
  int index = 0;
  std::string uuid;  // 32 hexadecimal digits
  std::string name;
  uint64_t memory_bytes = 0;
  std::string compute;
  int jpeg_engines = 0;
  int jpeg_cores = 0;
  std::string driver_version;
  std::string decoder_version;  // of nvJPEG; empty: it is missing
  std::string no_engines;       // why it has no engines; empty: it has some
};

// Returns how many images the engines of a GPU decode at the same time: engines
// × cores of the GPU that has the most; 1 if none has engines.
size_t JpegsAtOnce(const std::vector<GpuInfo>& devices);

struct GpuStats {
  int index = 0;
  int slots = 0;
  int slots_in_use = 0;
  uint64_t memory_bytes = 0;   // held
  uint64_t busy_ns_total = 0;  // time with at least one group on the GPU
  // Time on the GPU, summed over groups. Divided by the busy time, it is the
  // mean number of groups on the GPU; above 1 the GPU is never idle.
  uint64_t group_ns_total = 0;
  // Time in which groups were put on their queues, summed over groups; waits
  // between passes included.
  uint64_t enqueue_ns_total = 0;
  // The part of enqueue_ns_total in the decoder's calls.
  uint64_t decoder_ns_total = 0;
  // Time in which slots waited for the GPU, summed over groups. In the rest of
  // slots × time a slot had no group, or rows were prepared for its group.
  uint64_t waiting_ns_total = 0;
  // Copies of host memory that is not page-locked; a slot's thread waits for
  // each.
  uint64_t pageable_copies_total = 0;
  uint64_t groups_total = 0;
  uint64_t groups_failed_total = 0;
  uint64_t rows_exact_total = 0;
  // Rows counted above whose pixels kernels have computed from coefficients.
  uint64_t rows_coefficients_total = 0;
  // Rows counted above whose coefficients kernels have decoded, too.
  uint64_t rows_codes_total = 0;
  uint64_t rows_hardware_total = 0;
  uint64_t rows_kernels_total = 0;  // decoded on the GPU without engines
  uint64_t rows_host_total = 0;
  uint64_t splits_total = 0;

  uint64_t rows_total() const {
    return rows_exact_total + rows_hardware_total + rows_kernels_total +
           rows_host_total;
  }
};

// Thread-safe.
class GpuWorker {
 public:
  // Opens the GPUs that `config.devices` selects. `wake` is notified when a
  // slot becomes free. `on_fatal` is called at most once, on a thread of this
  // object, when no GPU can be used by this process any more; the process
  // should end. It may be called before Open returns, and then Open may never
  // return.
  // Errors: a GPU that was named does not work (says why). "all" is no error
  // without a GPU or in a build without GPU support.
  static absl::StatusOr<std::unique_ptr<GpuWorker>> Open(
      const GpuConfig& config, const ImageLimits& limits,
      std::shared_ptr<WakeSignal> wake,
      std::function<void(const absl::Status&)> on_fatal);
  // Waits for the GPUs. All kernels and groups have been destroyed before.
  virtual ~GpuWorker() = default;

  // Empty if this is a CPU worker.
  virtual const std::vector<GpuInfo>& devices() const = 0;
  // Returns the CPU's kernels if there is no GPU. Kernels do not outlive this
  // object.
  virtual RowKernelFactory kernels() = 0;
  virtual std::vector<DecoderClass> decoder_classes() const = 0;
  // Returns the bytes of rows that a GPU here computes together; 0: there is
  // no GPU.
  virtual uint64_t group_bytes() const = 0;
  // Returns memory for batches that GPUs write fast, which may outlive this
  // object; nullptr: ordinary memory.
  virtual std::shared_ptr<BufferMemory> buffer_memory() = 0;
  // Returns nullptr if no GPU memory can be shared.
  virtual DeviceImporter* importer() = 0;
  virtual std::vector<GpuStats> stats() const = 0;
};

}  // namespace leat::worker
