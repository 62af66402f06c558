// SPDX-License-Identifier: Apache-2.0
//
// leat_gpu_check: shared by its steps. Each step is a process of its own.
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

// The case of a figure: name and value, in the order of the table.
using Case = std::vector<std::pair<std::string_view, std::string>>;

// Reports findings, for people and as lines of JSON (tests/gpu/findings.py) in
// a file. A line is in the file before the call returns, so that a step that
// crashes keeps its findings.
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
  std::string folder;              // the photos'
  std::vector<std::string> files;  // their bytes
  int device = 0;
  int threads = 1;
  bool quick = false;
  bool first = false;  // a first answer; without it the step does the rest
  std::shared_ptr<worker::WakeSignal> wake;
  worker::GpuConfig config;  // of a worker on this device

  // Returns a measurement's time, in seconds.
  double Seconds(double full, double of_quick = 0.2) const {
    return quick ? of_quick : full;
  }
  // Returns how often a check repeats its work; less often in a quick run.
  int Times(int full, int of_quick) const { return quick ? of_quick : full; }
};

// Opens a worker's GPU with `slots` slots.
absl::StatusOr<std::unique_ptr<worker::GpuWorker>> OpenWorker(
    const Setup& setup, int slots);
bool HasNvjpeg(const worker::GpuWorker& gpus);

// Checks the driver, each backend of nvJPEG, its engines; the kernels'
// registers, spills and occupancy.
void CheckHandles(const Setup& setup, Report* report);
// Tries nvJPEG's backends without allocators.
void CheckNulls(const Setup& setup, Report* report);
// Class exact: checks for the CPU's bytes, with random pipelines and the
// photos.
void CheckExact(const Setup& setup, Report* report);
// Whole images: compares the engines with nvJPEG's CUDA backend and
// libjpeg-turbo.
void CheckWhole(const Setup& setup, Report* report);
// The same for the photos' middles, through the worker's kernel. A part of the
// previous step.
void CheckPhotos(const Setup& setup, Report* report);
// Regions, scales, both, gray, odd sides: which of them the engines take, and
// the resulting bytes.
void CheckShapes(const Setup& setup, Report* report);
// Runs the kernel directly after a batch; batches directly after other work.
void CheckBehind(const Setup& setup, Report* report);
// Truncated and bit-flipped files: codes, time, memory, the images decoded with
// them.
void CheckDamage(const Setup& setup, Report* report);
// Watches the device's memory over many groups.
void CheckMemory(const Setup& setup, Report* report);
// Measures nvJPEG's engines alone, with photos: whole and in part, and by the
// way of calling it.
void MeasureNvjpeg(const Setup& setup, Report* report);
// Measures nvJPEG alone, with drawn squares: by backend, threads and size.
void MeasureSquares(const Setup& setup, Report* report);
// Measures copies, page-locking, and the fused kernel alone.
void MeasureCopies(const Setup& setup, Report* report);
// Measures files to rows with 4 slots: rate, cores, memory, times of groups.
void MeasureSlots(const Setup& setup, Report* report);
// Measures files to rows with 1 and 2 slots.
void MeasureFewSlots(const Setup& setup, Report* report);

}  // namespace leat::gpu_check
