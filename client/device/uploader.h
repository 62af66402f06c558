// SPDX-License-Identifier: Apache-2.0
//
// Uploader copies into device memory, one job after the other, on a stream and
// a thread of its own. The thread sleeps until a job's event is complete, so no
// other thread ever waits for the device.
//
// Thread-safe. Its own callbacks must not call Stop, or destroy it.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/device/gpu.h"
#include "core/mutex.h"

namespace leat::client {

class Uploader {
 public:
  struct Copy {
    const std::byte* from = nullptr;
    std::byte* to = nullptr;  // device memory
    size_t bytes = 0;
  };
  struct Job {
    std::vector<Copy> copies;
    // Called once, on the uploader's thread, with OK or CUDA's error.
    std::function<void(const absl::Status&)> done;
  };

  // kInternal: CUDA cannot create a stream or event. kResourceExhausted: the
  // system cannot create a thread.
  static absl::StatusOr<std::unique_ptr<Uploader>> Create(
      std::shared_ptr<const Gpu> gpu);
  ~Uploader();

  // After Stop, `done` gets kCancelled before this returns.
  void Add(Job job);
  // Jobs that have not begun get kCancelled; no callback runs once this has
  // returned. Idempotent.
  void Stop();

 private:
  explicit Uploader(std::shared_ptr<const Gpu> gpu) : gpu_(std::move(gpu)) {}
  absl::Status Init();
  void Run();
  absl::Status Perform(const std::vector<Copy>& copies);

  const std::shared_ptr<const Gpu> gpu_;
  cuda::Stream stream_ = nullptr;
  cuda::Event event_ = nullptr;
  Mutex mu_;
  CondVar wanted_;
  std::deque<Job> jobs_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace leat::client
