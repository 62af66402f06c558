// SPDX-License-Identifier: Apache-2.0
//
// Gpu: a CUDA device of this machine, as the client uses it, with its primary
// context. The trainer's framework uses the same context, so it can read memory
// that is allocated here.
//
// Gpu is thread-safe and lives as long as any object that was made with it.
// Calls of the driver need the context to be current on the thread, and must
// not break a graph capture that the trainer may be running on another thread:
// use Gpu::Scope. The driver is loaded at run time; Open fails without one.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuda/driver.h"

namespace leat::client {

class Gpu {
 public:
  // kFailedPrecondition: no driver, no such device, or one that fails (names
  // the reason).
  static absl::StatusOr<std::shared_ptr<const Gpu>> Open(int ordinal);
  static absl::StatusOr<std::shared_ptr<const Gpu>> Open(
      int ordinal, std::shared_ptr<const cuda::Driver> driver);
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  int ordinal() const { return ordinal_; }
  // Returns 32 hexadecimal digits.
  const std::string& uuid() const { return uuid_; }
  const std::string& name() const { return name_; }
  // Returns why its memory cannot be shared with another process; empty: it
  // can.
  const std::string& not_shareable() const { return not_shareable_; }
  const cuda::Driver& driver() const { return *driver_; }
  // For copies that the caller waits for.
  cuda::Stream stream() const { return stream_; }

  absl::Status Check(cuda::Result result, std::string_view call) const {
    return cuda::Check(*driver_, result, call);
  }
  // "1234 of 5678 bytes are free"; REQUIRES: the context is current.
  std::string FreeMemory() const;

  // Whether work queued on a stream becomes a part of a graph instead of being
  // executed.
  enum class Capture {
    kNo,
    kYes,
    // The stream is the legacy default stream, and a stream that it waits for
    // is being captured: nothing may be queued on it until the capture has
    // ended.
    kBarred,
  };
  // REQUIRES: the context is current.
  Capture CaptureOf(cuda::Stream stream) const;

  // Makes the context current on this thread, in RELAXED capture mode.
  class Scope {
   public:
    explicit Scope(const Gpu& gpu);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    const absl::Status& status() const { return status_; }

   private:
    const Gpu& gpu_;
    const cuda::RelaxedCapture relaxed_;
    absl::Status status_;
  };

 private:
  Gpu(std::shared_ptr<const cuda::Driver> driver, int ordinal)
      : driver_(std::move(driver)), ordinal_(ordinal) {}
  absl::Status Init();
  std::string NotShareable() const;

  const std::shared_ptr<const cuda::Driver> driver_;
  const int ordinal_;
  cuda::Device device_ = 0;
  cuda::Context context_ = nullptr;  // retained
  cuda::Stream stream_ = nullptr;
  std::string uuid_, name_, not_shareable_;
};

}  // namespace leat::client
