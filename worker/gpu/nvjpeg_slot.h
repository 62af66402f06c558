// SPDX-License-Identifier: Apache-2.0
//
// nvJPEG on a GPU, and a slot's part of it.
//
// Images that the JPEG engines take go to them in one batch a colour format,
// each as a region, reduced, or whole (decode_shape.h); the others, one by one
// and whole, to nvJPEG's CUDA backend. Which, is asked of nvJPEG by each
// image's header while rows are prepared, so that an image is decoded the
// same way wherever and whenever, on one kind of GPU. An image that nvJPEG
// refuses, or fails on, is the caller's (nvjpeg_fault.h); it never fails
// others: a batch that fails is decoded image by image.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/mutex.h"
#include "cuda/driver.h"
#include "cuda/nvjpeg.h"
#include "worker/gpu/decode_shape.h"
#include "worker/gpu/nvjpeg_fault.h"

namespace leat::worker {

class Gpu;

// Who decodes an image, and what of it.
struct NvjpegChoice {
  bool engines = false;  // else CUDA, the whole
  DecodeShape shape;
};

struct JpegToDecode {
  std::span<const std::byte> encoded;
  bool luma = false;  // one byte a pixel, else R, G, B
  NvjpegChoice choice;
  uint64_t address = 0;  // where the shape's pixels go, on the device
  size_t pitch = 0;
  // kRefused: for libjpeg-turbo; kFailed: if that finds it damaged.
  enum class Outcome : uint8_t { kDecoded, kRefused, kFailed };
  Outcome outcome = Outcome::kDecoded;
};

// The handles of one GPU. Immutable after Open.
class NvjpegDevice {
 public:
  // Both outlive this. The GPU's context is current. Adds to gpu->info(). A GPU
  // without engines is no error.
  static absl::StatusOr<std::unique_ptr<NvjpegDevice>> Open(
      const cuda::Nvjpeg* nvjpeg, Gpu* gpu);
  ~NvjpegDevice();

 private:
  friend class NvjpegSlot;
  NvjpegDevice(const cuda::Nvjpeg* nvjpeg, const Gpu* gpu)
      : nvjpeg_(*nvjpeg), gpu_(*gpu) {}
  void OpenHardware(Gpu* gpu);

  const cuda::Nvjpeg& nvjpeg_;
  const Gpu& gpu_;
  cuda::NvjpegHandle hardware_ = nullptr;  // null: no engines
  cuda::NvjpegHandle cuda_ = nullptr;
};

// Thread-compatible but for Choose; the GPU's context is current.
class NvjpegSlot {
 public:
  static absl::StatusOr<std::unique_ptr<NvjpegSlot>> Create(
      const NvjpegDevice* device);
  ~NvjpegSlot();

  // The first shape that the engines take, or CUDA. `shapes` end with the whole
  // image. Thread-safe; makes the context current. kUnavailable: nvJPEG fails.
  absl::StatusOr<NvjpegChoice> Choose(std::span<const std::byte> encoded,
                                      bool luma,
                                      std::span<const DecodeShape> shapes);

  // Puts the decoding on the stream, on which nothing of an earlier call is
  // left. images[i].outcome says what came of it. kResourceExhausted: no memory
  // for these images. Others: as Gpu's.
  absl::Status Decode(std::span<JpegToDecode> images, cuda::Stream stream);

 private:
  explicit NvjpegSlot(const NvjpegDevice* device);
  absl::Status CreateHardware();
  absl::Status CreateCuda();
  cuda::NvjpegResult Ask(std::span<const std::byte> encoded, bool luma,
                         std::span<const DecodeShape> shapes,
                         NvjpegChoice* choice)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(asking_);
  cuda::NvjpegResult Set(cuda::NvjpegParams params, bool luma,
                         const DecodeShape& shape) const;
  absl::Status DecodeBatch(std::span<JpegToDecode*> images,
                           cuda::NvjpegState state, cuda::Stream stream);
  absl::Status DecodeAlone(JpegToDecode* image, cuda::NvjpegState state,
                           cuda::Stream stream);
  cuda::NvjpegResult CallBatched(std::span<JpegToDecode*> images,
                                 cuda::NvjpegState state, cuda::Stream stream);
  absl::Status DecodeByCuda(JpegToDecode& image, cuda::Stream stream);
  cuda::NvjpegResult CallPhases(JpegToDecode& image, cuda::Stream stream,
                                absl::Status* waited);
  // OK: the context has survived, and nothing is left on the stream.
  absl::Status AfterFailure(cuda::NvjpegResult result, const char* call,
                            cuda::Stream stream) const;

  const cuda::Nvjpeg& nvjpeg_;
  const Gpu& gpu_;
  const cuda::NvjpegHandle hardware_, cuda_;
  // Held while the library looks at a header, which is microseconds of a host's
  // time.
  Mutex asking_;
  cuda::NvjpegStream asked_ ABSL_GUARDED_BY(asking_) = nullptr;
  cuda::NvjpegParams asked_for_ ABSL_GUARDED_BY(asking_) = nullptr;
  cuda::NvjpegState rgb_ = nullptr, luma_ = nullptr;  // of the engines
  std::vector<cuda::NvjpegParams> shapes_;            // of a batch's images
  cuda::NvjpegStream stream_ = nullptr;               // the rest for CUDA
  cuda::NvjpegDecoder decoder_ = nullptr;
  cuda::NvjpegParams as_rgb_ = nullptr, as_luma_ = nullptr;
  // Two, so that the host works on an image while the GPU does on another.
  struct Phases {
    cuda::NvjpegState state = nullptr;
    cuda::NvjpegPinnedBuffer pinned = nullptr;
    cuda::NvjpegDeviceBuffer device = nullptr;
  } phases_[2];
  size_t next_ = 0;
  std::vector<const unsigned char*> data_;
  std::vector<size_t> sizes_;
  std::vector<cuda::NvjpegImage> outputs_;
};

}  // namespace leat::worker
