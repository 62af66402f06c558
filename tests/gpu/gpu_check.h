// SPDX-License-Identifier: Apache-2.0
//
// leat_gpu_check: what its steps share. Each step is a process of its own.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/compute/gpu_worker.h"

namespace leat::gpu_check {

// Which case a figure is of: name and value, in the order of the table.
using Case = std::vector<std::pair<std::string_view, std::string>>;

// What was found, for people and as lines of JSON (tests/gpu/findings.py) in a
// file. A line is in the file before the call returns, so that a step that
// crashes keeps what it has found.
class Report {
 public:
  Report() = default;
  ~Report();
  Report(const Report&) = delete;
  Report& operator=(const Report&) = delete;
  // False: the file cannot be written.
  bool Open(const std::string& path);

  void Check(std::string_view name, bool ok, std::string_view note = "");
  void Figure(std::string_view name, double value, std::string_view unit,
              const Case& of = {}, std::string_view note = "");
  void Missing(std::string_view name, std::string_view why);
  void Fact(std::string_view name, std::string_view text);
  bool ok() const { return ok_; }

 private:
  void Write(const std::string& line);
  bool ok_ = true;
  std::FILE* file_ = nullptr;
};

struct Setup {
  std::string folder;              // of photos
  std::vector<std::string> files;  // their bytes
  int device = 0;
  int threads = 1;
  bool quick = false;
  bool first = false;  // a first answer; the same step without it has the rest
  std::shared_ptr<worker::WakeSignal> wake;
  worker::GpuConfig config;  // of a worker on this device

  // A measurement's time, in seconds.
  double Seconds(double full, double of_quick = 0.2) const {
    return quick ? of_quick : full;
  }
  // Returns how often a check repeats its work; less often in a quick run.
  int Times(int full, int of_quick) const { return quick ? of_quick : full; }
};

// A worker's GPU with `slots` slots.
absl::StatusOr<std::unique_ptr<worker::GpuWorker>> OpenWorker(
    const Setup& setup, int slots);
bool HasNvjpeg(const worker::GpuWorker& gpus);

// The driver, each backend of nvJPEG, its engines; the kernels' registers,
// spills and occupancy.
void CheckHandles(const Setup& setup, Report* report);
// nvJPEG's backends without allocators.
void CheckNulls(const Setup& setup, Report* report);
// Class exact: the CPU's bytes, for random pipelines and for the photos.
void CheckExact(const Setup& setup, Report* report);
// Whole images: the engines against nvJPEG's CUDA backend and libjpeg-turbo.
void CheckWhole(const Setup& setup, Report* report);
// The same of the photos' middles, through the worker's kernel. A part of the
// step above.
void CheckPhotos(const Setup& setup, Report* report);
// Regions, scales, both, gray, odd sides: what the engines take, and its bytes.
void CheckShapes(const Setup& setup, Report* report);
// The kernel directly behind a batch; batches directly behind other work.
void CheckBehind(const Setup& setup, Report* report);
// Truncated and bit-flipped files: codes, time, memory, the images beside them.
void CheckDamage(const Setup& setup, Report* report);
// Device memory over many groups.
void CheckMemory(const Setup& setup, Report* report);
// nvJPEG's engines alone, of photos: whole and in part, and by how it is
// called.
void MeasureNvjpeg(const Setup& setup, Report* report);
// nvJPEG alone, of drawn squares: by backend, threads and size.
void MeasureSquares(const Setup& setup, Report* report);
// Copies, page-locking, the fused kernel alone.
void MeasureCopies(const Setup& setup, Report* report);
// Files to rows with 4 slots, with kept coefficients and without: rate, cores,
// memory, times of groups.
void MeasureSlots(const Setup& setup, Report* report);
// Files to rows with 1 and 2 slots.
void MeasureFewSlots(const Setup& setup, Report* report);

}  // namespace leat::gpu_check
