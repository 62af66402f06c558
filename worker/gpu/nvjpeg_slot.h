// SPDX-License-Identifier: Apache-2.0
//
// nvJPEG on a GPU, and a slot's part of it.
//
// Images that the JPEG engines take go to them in one batch a colour format;
// the others, one by one, to nvJPEG's CUDA backend. Which, is asked of nvJPEG
// by each image's header, so that an image is decoded the same way wherever and
// whenever, on one kind of GPU. An image that nvJPEG refuses is the caller's;
// it never fails others: a batch that fails is decoded image by image.
//
// Whole images, at full size: decoding a region, or at ½ to ⅛, would save
// memory traffic, of which there is plenty, and no engine time; and some
// releases of nvJPEG interpolate colours wrongly at a region's border.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuda/driver.h"
#include "cuda/nvjpeg.h"

namespace leat::worker {

class Gpu;

struct EncodedImage {
  std::span<const std::byte> encoded;
  bool luma = false;     // one byte a pixel, else R, G, B
  uint64_t address = 0;  // where the pixels go, on the device
  size_t pitch = 0;
  enum class Backend : uint8_t { kNone, kHardware, kCuda };
  Backend backend = Backend::kNone;  // who took it
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

// Thread-compatible; the GPU's context is current.
class NvjpegSlot {
 public:
  static absl::StatusOr<std::unique_ptr<NvjpegSlot>> Create(
      const NvjpegDevice* device);
  ~NvjpegSlot();

  // Puts the decoding on the stream, on which nothing of an earlier call is
  // left. images[i].backend says who took it. kResourceExhausted: no memory for
  // these images. Others: as Gpu's.
  absl::Status Decode(std::span<EncodedImage> images, cuda::Stream stream);

 private:
  explicit NvjpegSlot(const NvjpegDevice* device);
  absl::Status CreateHardware();
  absl::Status CreateCuda();
  bool EnginesTake(const EncodedImage& image);
  absl::Status DecodeBatch(std::span<EncodedImage*> images,
                           cuda::NvjpegState state, cuda::Stream stream);
  cuda::NvjpegResult CallBatched(std::span<EncodedImage*> images,
                                 cuda::NvjpegState state, cuda::Stream stream);
  absl::Status DecodeOne(EncodedImage& image, cuda::Stream stream);
  cuda::NvjpegResult CallPhases(EncodedImage& image, cuda::Stream stream,
                                absl::Status* waited);
  // OK: the image, or the batch, is at fault.
  absl::Status WhoseFault(cuda::NvjpegResult result, const char* call,
                          cuda::Stream stream) const;

  const cuda::Nvjpeg& nvjpeg_;
  const Gpu& gpu_;
  const cuda::NvjpegHandle hardware_, cuda_;
  cuda::NvjpegStream parsed_ = nullptr;               // for the engines
  cuda::NvjpegState rgb_ = nullptr, luma_ = nullptr;  // of the engines
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
