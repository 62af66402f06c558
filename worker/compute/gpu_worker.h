// SPDX-License-Identifier: Apache-2.0
//
// GpuWorker: a worker's GPUs, as the rest of the worker sees them. One of two
// folders implements it, chosen by CMake: gpu/, or no_gpu/, which has none.
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

// --devices.
struct DeviceSelection {
  bool all = true;           // that work; those that do not are warned of
  std::vector<int> indices;  // if not all: these, and each must work
};
// "all", "none", "0,1". kInvalidArgument: other text.
absl::StatusOr<DeviceSelection> ParseDevices(std::string_view text);

// Rows that go through a GPU together, at most.
inline constexpr size_t kMaxGpuGroupRows = 128;

struct GpuConfig {
  DeviceSelection devices;
  // Groups of rows on a GPU at the same time, each in a slot of its own.
  int slots = 4;
  // A slot's memory for coefficients and pixels on their way to the GPU, pinned
  // and on the device; up to half of it is for values between operators there.
  // Rows that find no room in it are computed by the CPU.
  uint64_t slot_bytes = 64ull << 20;
  // Rows of a group: a slot's memory for results on the device.
  uint64_t group_bytes = 16ull << 20;
  // A slot's memory for images that are made on the device. A group of which
  // nvJPEG decodes more is computed in several passes; in class exact, images
  // for whose coefficients there is no more room are decoded by the host.
  uint64_t decode_bytes = 256ull << 20;
  // The most that the decoder, nvJPEG, may take to work in, of the device's
  // memory and of page-locked memory each, for a slot. Images that need more
  // are decoded in smaller batches; one that needs more alone fails its group.
  uint64_t decoder_bytes = 1ull << 30;
  // Failures of a GPU without a success in between, after which it is given up.
  int max_failures = 8;
  // By which a GPU that does not come back is found out; tests' own. Outlives
  // the worker.
  const Clock* clock = &Clock::Real();

  // kInvalidArgument: names the flag.
  absl::Status Validate() const;
};

// An image of more decoded bytes than this is never given to nvJPEG. The
// release's, without a flag: it decides bytes.
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
  std::string decoder_version;  // of nvJPEG; empty: not there
  std::string no_engines;       // why it has no engines; empty: it has
};

// Images that the engines of a GPU decode at the same time: engines × cores, of
// the GPU that has the most; 1: none has engines.
size_t JpegsAtOnce(const std::vector<GpuInfo>& devices);

struct GpuStats {
  int index = 0;
  int slots = 0;
  int slots_in_use = 0;
  uint64_t memory_bytes = 0;   // held
  uint64_t busy_ns_total = 0;  // with at least one group on the GPU
  // Over the busy time, groups on the GPU: above 1 it is never idle.
  uint64_t group_ns_total = 0;
  uint64_t groups_total = 0;
  uint64_t groups_failed_total = 0;
  uint64_t rows_exact_total = 0;
  // Of these, rows whose pixels kernels have made of coefficients.
  uint64_t rows_coefficients_total = 0;
  uint64_t rows_hardware_total = 0;
  uint64_t rows_kernels_total = 0;  // decoded there without engines
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
  // Opens what `config.devices` selects. `wake`: notified when a slot becomes
  // free. `on_fatal`: at most once, on a thread of this object's: no GPU of
  // this process can be used any more; the process should end. It may come
  // before this returns, which then may never be.
  // Errors: a GPU that was named does not work (says why). All without one, or
  // without any support in this build, is no error.
  static absl::StatusOr<std::unique_ptr<GpuWorker>> Open(
      const GpuConfig& config, const ImageLimits& limits,
      std::shared_ptr<WakeSignal> wake,
      std::function<void(const absl::Status&)> on_fatal);
  // Waits for the GPUs. Kernels and groups are gone before.
  virtual ~GpuWorker() = default;

  // Empty: this is a CPU worker.
  virtual const std::vector<GpuInfo>& devices() const = 0;
  // The CPU's where there is no GPU. Kernels do not outlive this object.
  virtual RowKernelFactory kernels() = 0;
  virtual std::vector<DecoderClass> decoder_classes() const = 0;
  // Memory for batches that GPUs write fast; may outlive this object. nullptr:
  // ordinary memory.
  virtual std::shared_ptr<BufferMemory> buffer_memory() = 0;
  // nullptr: no memory of a GPU can be shared.
  virtual DeviceImporter* importer() = 0;
  virtual std::vector<GpuStats> stats() const = 0;
};

}  // namespace leat::worker
