// SPDX-License-Identifier: Apache-2.0
#include "tests/gpu/raw_nvjpeg.h"

#include <algorithm>

#include "core/status.h"
#include "worker/gpu/cuda/nvjpeg_image.h"

namespace leat::gpu_check {
namespace {

using cuda::NvjpegBackend;
using cuda::NvjpegResult;

cuda::NvjpegImage OutputOf(const RawImage& image) {
  cuda::NvjpegImage output;
  output.channel[0] =
      static_cast<unsigned char*>(cuda::AsPointer(image.address.number()));
  output.pitch[0] = image.pitch;
  return output;
}

}  // namespace

std::string_view NameOf(NvjpegBackend backend) {
  switch (backend) {
    case NvjpegBackend::kHybrid:
      return "HYBRID";
    case NvjpegBackend::kGpuHybrid:
      return "GPU_HYBRID";
    case NvjpegBackend::kHardware:
      return "HARDWARE";
    default:
      return "another";
  }
}

std::string NameOf(NvjpegResult result) {
  const absl::Status status = cuda::Check(result, "");
  if (status.ok()) return "SUCCESS";
  // "…: NVJPEG_STATUS_BAD_JPEG (3)" or the like.
  const std::string text(Message(status));
  const size_t at = text.find("NVJPEG_STATUS_");
  return at == std::string::npos ? fmt::format("{}", static_cast<int>(result))
                                 : text.substr(at + 14);
}

void RawNvjpeg::Held::Add(const void* memory, uint64_t bytes) {
  MutexLock lock(&mu_);
  sizes_[memory] = bytes;
  now_ += bytes;
  most_ = std::max(most_, now_);
}

void RawNvjpeg::Held::Remove(const void* memory) {
  MutexLock lock(&mu_);
  const auto found = sizes_.find(memory);
  if (found == sizes_.end()) return;
  now_ -= found->second;
  sizes_.erase(found);
}

uint64_t RawNvjpeg::Held::most() const {
  MutexLock lock(&mu_);
  return most_;
}

RawNvjpeg::RawNvjpeg(const cuda::Nvjpeg* nvjpeg, const worker::CudaDevice* gpu,
                     NvjpegBackend backend)
    : nvjpeg_(*nvjpeg),
      gpu_(*gpu),
      backend_(backend),
      device_{AllocateDevice, FreeDevice, this},
      pinned_{AllocatePinned, FreePinned, this} {}

absl::StatusOr<std::unique_ptr<RawNvjpeg>> RawNvjpeg::Open(
    const cuda::Nvjpeg* nvjpeg, const worker::CudaDevice* gpu,
    NvjpegBackend backend, cuda::Flags flags) {
  std::unique_ptr<RawNvjpeg> raw(new RawNvjpeg(nvjpeg, gpu, backend));
  RETURN_IF_ERROR(
      cuda::Check(nvjpeg->CreateExV2(backend, &raw->device_, &raw->pinned_,
                                     flags, &raw->handle_),
                  "nvjpegCreateExV2"));
  return raw;
}

RawNvjpeg::~RawNvjpeg() {
  if (handle_ != nullptr) nvjpeg_.Destroy(handle_);
}

int RawNvjpeg::AllocateDevice(void* self, void** memory, size_t bytes,
                              cuda::Stream) {
  auto* const raw = static_cast<RawNvjpeg*>(self);
  cuda::DevicePtr address = 0;
  const cuda::Result result = raw->gpu_.driver().MemAlloc(&address, bytes);
  *memory = cuda::AsPointer(address);
  if (result == cuda::Result::kSuccess) raw->device_bytes_.Add(*memory, bytes);
  return static_cast<int>(result);
}

int RawNvjpeg::FreeDevice(void* self, void* memory, size_t, cuda::Stream) {
  auto* const raw = static_cast<RawNvjpeg*>(self);
  raw->device_bytes_.Remove(memory);
  return static_cast<int>(
      raw->gpu_.driver().MemFree(reinterpret_cast<uintptr_t>(memory)));
}

int RawNvjpeg::AllocatePinned(void* self, void** memory, size_t bytes,
                              cuda::Stream) {
  auto* const raw = static_cast<RawNvjpeg*>(self);
  const cuda::Result result =
      raw->gpu_.driver().MemHostAlloc(memory, bytes, cuda::kHostAllocPortable);
  if (result == cuda::Result::kSuccess) raw->pinned_bytes_.Add(*memory, bytes);
  return static_cast<int>(result);
}

int RawNvjpeg::FreePinned(void* self, void* memory, size_t, cuda::Stream) {
  auto* const raw = static_cast<RawNvjpeg*>(self);
  raw->pinned_bytes_.Remove(memory);
  return static_cast<int>(raw->gpu_.driver().MemFreeHost(memory));
}

absl::StatusOr<std::unique_ptr<RawBatches>> RawBatches::Open(
    RawNvjpeg* nvjpeg) {
  std::unique_ptr<RawBatches> batches(new RawBatches(nvjpeg));
  ASSIGN_OR_RETURN(batches->queue_, worker::CudaQueue::Create(nvjpeg->gpu()));
  RETURN_IF_ERROR(cuda::Check(
      nvjpeg->nvjpeg().JpegStateCreate(nvjpeg->handle(), &batches->state_),
      "nvjpegJpegStateCreate"));
  return batches;
}

RawBatches::~RawBatches() {
  if (queue_ != nullptr) (void)Wait();
  if (state_ != nullptr) nvjpeg_.nvjpeg().JpegStateDestroy(state_);
}

NvjpegResult RawBatches::Decode(std::span<const RawImage> images) {
  std::vector<const unsigned char*> data;
  std::vector<size_t> sizes;
  std::vector<cuda::NvjpegImage> outputs;
  for (const RawImage& image : images) {
    data.push_back(worker::DataOf(image.file));
    sizes.push_back(image.file.size());
    outputs.push_back(OutputOf(image));
  }
  const cuda::Nvjpeg& n = nvjpeg_.nvjpeg();
  const NvjpegResult ready = n.DecodeBatchedInitialize(
      nvjpeg_.handle(), state_, static_cast<int>(images.size()), 1,
      cuda::NvjpegFormat::kRgbi);
  if (ready != NvjpegResult::kSuccess) return ready;
  return n.DecodeBatched(nvjpeg_.handle(), state_, data.data(), sizes.data(),
                         outputs.data(), queue_->stream());
}

absl::StatusOr<std::unique_ptr<RawPhases>> RawPhases::Open(RawNvjpeg* nvjpeg) {
  std::unique_ptr<RawPhases> phases(new RawPhases(nvjpeg));
  RETURN_IF_ERROR(phases->Create());
  return phases;
}

absl::Status RawPhases::Create() {
  const cuda::Nvjpeg& n = nvjpeg_.nvjpeg();
  const cuda::NvjpegHandle handle = nvjpeg_.handle();
  RETURN_IF_ERROR(nvjpeg_.gpu().Check(
      nvjpeg_.gpu().driver().StreamCreate(&stream_, cuda::kStreamNonBlocking),
      "cuStreamCreate"));
  const auto made = [](NvjpegResult result, const char* call) {
    return cuda::Check(result, call);
  };
  RETURN_IF_ERROR(made(n.DecoderCreate(handle, nvjpeg_.backend(), &decoder_),
                       "nvjpegDecoderCreate"));
  RETURN_IF_ERROR(
      made(n.DecodeParamsCreate(handle, &params_), "nvjpegDecodeParamsCreate"));
  RETURN_IF_ERROR(
      made(n.DecodeParamsSetOutputFormat(params_, cuda::NvjpegFormat::kRgbi),
           "nvjpegDecodeParamsSetOutputFormat"));
  RETURN_IF_ERROR(worker::SetUpright(n, params_));
  for (Phase& phase : phases_) {
    RETURN_IF_ERROR(made(n.JpegStreamCreate(handle, &phase.parsed),
                         "nvjpegJpegStreamCreate"));
    RETURN_IF_ERROR(made(n.DecoderStateCreate(handle, decoder_, &phase.state),
                         "nvjpegDecoderStateCreate"));
    RETURN_IF_ERROR(
        made(n.BufferPinnedCreateV2(handle, nvjpeg_.pinned(), &phase.pinned),
             "nvjpegBufferPinnedCreateV2"));
    RETURN_IF_ERROR(
        made(n.BufferDeviceCreateV2(handle, nvjpeg_.device(), &phase.device),
             "nvjpegBufferDeviceCreateV2"));
    RETURN_IF_ERROR(made(n.StateAttachPinnedBuffer(phase.state, phase.pinned),
                         "nvjpegStateAttachPinnedBuffer"));
    RETURN_IF_ERROR(made(n.StateAttachDeviceBuffer(phase.state, phase.device),
                         "nvjpegStateAttachDeviceBuffer"));
  }
  return absl::OkStatus();
}

RawPhases::~RawPhases() {
  const cuda::Nvjpeg& n = nvjpeg_.nvjpeg();
  (void)Wait();
  for (const Phase& phase : phases_) {
    if (phase.state != nullptr) n.JpegStateDestroy(phase.state);
    if (phase.pinned != nullptr) n.BufferPinnedDestroy(phase.pinned);
    if (phase.device != nullptr) n.BufferDeviceDestroy(phase.device);
    if (phase.parsed != nullptr) n.JpegStreamDestroy(phase.parsed);
  }
  if (params_ != nullptr) n.DecodeParamsDestroy(params_);
  if (decoder_ != nullptr) n.DecoderDestroy(decoder_);
  if (stream_ != nullptr) nvjpeg_.gpu().driver().StreamDestroy(stream_);
}

NvjpegResult RawPhases::Decode(const RawImage& image) {
  const cuda::Nvjpeg& n = nvjpeg_.nvjpeg();
  const cuda::NvjpegHandle handle = nvjpeg_.handle();
  const Phase& phase = phases_[next_ ^= 1];
  NvjpegResult result =
      n.JpegStreamParse(handle, worker::DataOf(image.file), image.file.size(),
                        0, 0, phase.parsed);
  if (result != NvjpegResult::kSuccess) return result;
  result =
      n.DecodeJpegHost(handle, decoder_, phase.state, params_, phase.parsed);
  if (result != NvjpegResult::kSuccess) return result;
  // The previous image is done: its phase is the next one's.
  if (!Wait().ok()) return NvjpegResult::kExecutionFailed;
  result = n.DecodeJpegTransferToDevice(handle, decoder_, phase.state,
                                        phase.parsed, stream_);
  if (result != NvjpegResult::kSuccess) return result;
  cuda::NvjpegImage output = OutputOf(image);
  return n.DecodeJpegDevice(handle, decoder_, phase.state, &output, stream_);
}

}  // namespace leat::gpu_check
