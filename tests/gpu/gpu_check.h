// SPDX-License-Identifier: Apache-2.0
//
// leat_gpu_check: what its parts share.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "worker/gpu_worker.h"

namespace leat::gpu_check {

// What was found; a line each as it comes.
class Report {
 public:
  void Check(std::string_view name, bool ok, std::string_view note = "");
  void Figure(std::string_view name, double value, std::string_view unit,
              std::string_view note = "");
  void Missing(std::string_view name, std::string_view why);
  bool ok() const { return ok_; }
  std::string ToJson(const worker::GpuInfo& gpu) const;

 private:
  bool ok_ = true;
  std::vector<std::string> lines_;  // JSON objects
};

struct Setup {
  std::string folder;              // of photos
  std::vector<std::string> files;  // their bytes
  int device = 0;
  int threads = 1;
  bool quick = false;
  std::shared_ptr<worker::WakeSignal> wake;
  worker::GpuConfig config;
  worker::GpuWorker* gpus = nullptr;
  bool nvjpeg() const { return !gpus->devices()[0].nvjpeg_version.empty(); }
};

// Class exact: the CPU's bytes, for random pipelines and for the photos.
void CheckExact(const Setup& setup, Report* report);
// Class nvjpeg: how far from libjpeg-turbo, by the chroma's sampling.
void CheckNvjpeg(const Setup& setup, Report* report);
// Regions and scales of nvJPEG's engines: what Leat relies on.
void CheckShapes(const Setup& setup, Report* report);
// Device memory over many groups.
void CheckMemory(const Setup& setup, Report* report);
// A bare nvJPEG loop, the fused kernel alone, the pipeline in both classes.
void MeasureRates(const Setup& setup, Report* report);

}  // namespace leat::gpu_check
