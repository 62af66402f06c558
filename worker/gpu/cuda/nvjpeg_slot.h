// SPDX-License-Identifier: Apache-2.0
//
// NvjpegSlot: a slot's part of nvJPEG, which is the decoder of its queue.
//
// Images that the JPEG engines take are decoded by them in one batch per chroma
// sampling, each as a region, reduced, or whole (decode_shape.h). nvJPEG's CUDA
// backends decode the others, one by one and whole. nvJPEG is asked for each
// image's header, while rows are prepared, which of the two applies; so an
// image is decoded in the same way wherever and whenever, on one kind of GPU.
// An image that nvJPEG refuses, or fails on, goes back to the caller
// (nvjpeg_fault.h); it never makes others fail: a batch that fails is decoded
// again in halves, down to the single image.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuda/nvjpeg.h"
#include "worker/gpu/cuda/nvjpeg_device.h"
#include "worker/gpu/cuda/nvjpeg_handles.h"
#include "worker/gpu/cuda/nvjpeg_image.h"
#include "worker/gpu/cuda/nvjpeg_memory.h"
#include "worker/gpu/cuda/nvjpeg_phases.h"
#include "worker/gpu/cuda/nvjpeg_questions.h"
#include "worker/gpu/device/image_decoder.h"

namespace leat::worker {

class CudaDevice;

// Thread-compatible, except Choose; the GPU's context is current.
class NvjpegSlot final : public ImageDecoder {
 public:
  // `device`, its parts and the stream outlive the slot. Takes at most
  // `most_bytes` of the device's memory, and as much page-locked memory.
  // `beside`: has the handles that the slot uses; nullptr: its own.
  static absl::StatusOr<std::unique_ptr<NvjpegSlot>> Create(
      const NvjpegDevice& device, cuda::Stream stream, uint64_t most_bytes,
      const NvjpegSlot* beside);
  ~NvjpegSlot() override;

  const char* name() const override { return "nvJPEG"; }
  bool Takes(const JpegDecoder::Header& header) const override;
  absl::StatusOr<DecodeChoice> Choose(
      std::span<const std::byte> encoded, bool luma,
      std::span<const DecodeShape> shapes) override;
  absl::Status Decode(std::span<JpegToDecode> images) override;
  uint64_t device_bytes() const override { return memory_->device_bytes(); }

 private:
  // Images that the engines decode together.
  struct Batch {
    cuda::NvjpegFormat format = cuda::NvjpegFormat::kRgbi;
    cuda::NvjpegState state = nullptr;
    bool used = false;  // its state may hold memory of earlier images
  };

  NvjpegSlot(const NvjpegDevice& device, cuda::Stream stream,
             uint64_t most_bytes);
  absl::Status CreateEngines();
  absl::Status CreateParams(cuda::NvjpegParams* params);
  absl::Status CreateBatch(Batch* batch);
  // Makes its state anew, without memory. REQUIRES: it decodes nothing.
  absl::Status RenewBatch(Batch* batch);
  absl::Status PrepareBatch(int images, Batch* batch);
  absl::Status DecodeAll(std::span<JpegToDecode> images);
  absl::Status DecodeBatch(std::span<JpegToDecode*> images, const Batch& batch,
                           cuda::Stream stream);
  absl::Status DecodeAlone(std::span<JpegToDecode*> image, const Batch& batch,
                           cuda::Stream stream);
  // REQUIRES: `images` is a part of for_engines_.
  cuda::NvjpegResult CallBatched(std::span<JpegToDecode*> images,
                                 const Batch& batch, cuda::Stream stream);
  absl::Status DecodeByCuda(JpegToDecode* image, cuda::Stream stream);
  // Decides about an image for which a call has returned. False: try again.
  absl::StatusOr<bool> Settle(cuda::NvjpegResult result, const char* call,
                              JpegToDecode* image, cuda::Stream stream) const;
  // OK: the context has survived, and the stream is empty.
  absl::Status AfterFailure(cuda::NvjpegResult result, const char* call,
                            cuda::Stream stream) const;

  const cuda::Nvjpeg& nvjpeg_;
  const CudaDevice& gpu_;
  const cuda::Stream stream_;
  const uint64_t most_bytes_;
  std::shared_ptr<NvjpegHandles> handles_;
  NvjpegMemory* memory_ = nullptr;
  cuda::NvjpegHandle engines_ = nullptr;  // nullptr: there are none
  NvjpegQuestions questions_;
  std::array<Batch, kNvjpegBatches> batches_;
  std::vector<cuda::NvjpegParams> shapes_;  // for the images of a Decode
  std::vector<JpegToDecode*> for_engines_;  // of a Decode, by batch
  std::unique_ptr<NvjpegPhases> phases_;
  std::vector<const unsigned char*> data_;
  std::vector<size_t> sizes_;
  std::vector<cuda::NvjpegImage> outputs_;
};

}  // namespace leat::worker
