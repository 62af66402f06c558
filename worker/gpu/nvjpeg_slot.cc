// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu/nvjpeg_slot.h"

#include <utility>

#include "core/log.h"
#include "core/status.h"
#include "worker/gpu/gpu.h"
#include "worker/gpu_worker.h"

namespace leat::worker {
namespace {

using cuda::NvjpegFormat;
using cuda::NvjpegResult;

// What a photo is like: the engines' memory is made for it ahead.
constexpr int kUsualWidth = 1280, kUsualHeight = 1024;

// As libjpeg-turbo's fancy upsampling; nvJPEG has it from 12.1.
cuda::Flags FlagsOf(const cuda::Nvjpeg& nvjpeg) {
  const bool has =
      nvjpeg.major > 12 || (nvjpeg.major == 12 && nvjpeg.minor > 0);
  return has ? cuda::kNvjpegInterpolatedUpsampling : cuda::kNvjpegFlagsDefault;
}

const unsigned char* DataOf(std::span<const std::byte> encoded) {
  return reinterpret_cast<const unsigned char*>(encoded.data());
}

cuda::NvjpegImage OutputOf(const JpegToDecode& image) {
  cuda::NvjpegImage output;
  output.channel[0] =
      static_cast<unsigned char*>(cuda::AsPointer(image.address));
  output.pitch[0] = image.pitch;
  return output;
}

}  // namespace

absl::StatusOr<std::unique_ptr<NvjpegDevice>> NvjpegDevice::Open(
    const cuda::Nvjpeg* nvjpeg, Gpu* gpu) {
  std::unique_ptr<NvjpegDevice> device(new NvjpegDevice(nvjpeg, gpu));
  RETURN_IF_ERROR(
      cuda::Check(nvjpeg->CreateExV2(cuda::NvjpegBackend::kGpuHybrid, nullptr,
                                     nullptr, FlagsOf(*nvjpeg), &device->cuda_),
                  "nvjpegCreateExV2"));
  device->OpenHardware(gpu);
  gpu->info().nvjpeg_version =
      fmt::format("{}.{}.{}", nvjpeg->major, nvjpeg->minor, nvjpeg->patch);
  return device;
}

void NvjpegDevice::OpenHardware(Gpu* gpu) {
  unsigned engines = 0, cores = 0;
  // All came with 11.9.
  if (nvjpeg_.GetHardwareDecoderInfo == nullptr ||
      nvjpeg_.DecodeBatchedSupportedEx == nullptr ||
      nvjpeg_.DecodeBatchedEx == nullptr ||
      nvjpeg_.DecodeParamsSetScaleFactor == nullptr ||
      nvjpeg_.CreateExV2(cuda::NvjpegBackend::kHardware, nullptr, nullptr,
                         FlagsOf(nvjpeg_),
                         &hardware_) != NvjpegResult::kSuccess) {
    hardware_ = nullptr;
    return;
  }
  if (nvjpeg_.GetHardwareDecoderInfo(hardware_, &engines, &cores) !=
          NvjpegResult::kSuccess ||
      engines == 0) {
    nvjpeg_.Destroy(std::exchange(hardware_, nullptr));
    return;
  }
  gpu->info().jpeg_engines = static_cast<int>(engines);
  gpu->info().jpeg_cores = static_cast<int>(cores);
}

NvjpegDevice::~NvjpegDevice() {
  (void)gpu_.MakeCurrent();
  if (hardware_ != nullptr) nvjpeg_.Destroy(hardware_);
  if (cuda_ != nullptr) nvjpeg_.Destroy(cuda_);
}

NvjpegSlot::NvjpegSlot(const NvjpegDevice* device)
    : nvjpeg_(device->nvjpeg_),
      gpu_(device->gpu_),
      hardware_(device->hardware_),
      cuda_(device->cuda_) {}

absl::StatusOr<std::unique_ptr<NvjpegSlot>> NvjpegSlot::Create(
    const NvjpegDevice* device) {
  std::unique_ptr<NvjpegSlot> slot(new NvjpegSlot(device));
  if (slot->hardware_ != nullptr) RETURN_IF_ERROR(slot->CreateHardware());
  RETURN_IF_ERROR(slot->CreateCuda());
  return slot;
}

absl::Status NvjpegSlot::CreateHardware() {
  const cuda::Nvjpeg& n = nvjpeg_;
  {
    MutexLock lock(&asking_);
    RETURN_IF_ERROR(cuda::Check(n.JpegStreamCreate(hardware_, &asked_),
                                "nvjpegJpegStreamCreate"));
    RETURN_IF_ERROR(cuda::Check(n.DecodeParamsCreate(hardware_, &asked_for_),
                                "nvjpegDecodeParamsCreate"));
  }
  while (shapes_.size() < kMaxGpuGroupRows) {
    cuda::NvjpegParams params = nullptr;
    RETURN_IF_ERROR(cuda::Check(n.DecodeParamsCreate(hardware_, &params),
                                "nvjpegDecodeParamsCreate"));
    shapes_.push_back(params);
  }
  for (cuda::NvjpegState* state : {&rgb_, &luma_})
    RETURN_IF_ERROR(cuda::Check(n.JpegStateCreate(hardware_, state),
                                "nvjpegJpegStateCreate"));
  // Only for speed.
  n.DecodeBatchedInitialize(hardware_, rgb_, kMaxGpuGroupRows, 1,
                            NvjpegFormat::kRgbi);
  n.DecodeBatchedPreAllocate(hardware_, rgb_, kMaxGpuGroupRows, kUsualWidth,
                             kUsualHeight, cuda::NvjpegSubsampling::k444,
                             NvjpegFormat::kRgbi);
  return absl::OkStatus();
}

absl::Status NvjpegSlot::CreateCuda() {
  const cuda::Nvjpeg& n = nvjpeg_;
  RETURN_IF_ERROR(cuda::Check(n.JpegStreamCreate(cuda_, &stream_),
                              "nvjpegJpegStreamCreate"));
  RETURN_IF_ERROR(cuda::Check(
      n.DecoderCreate(cuda_, cuda::NvjpegBackend::kGpuHybrid, &decoder_),
      "nvjpegDecoderCreate"));
  for (Phases& phases : phases_) {
    RETURN_IF_ERROR(
        cuda::Check(n.DecoderStateCreate(cuda_, decoder_, &phases.state),
                    "nvjpegDecoderStateCreate"));
    RETURN_IF_ERROR(
        cuda::Check(n.BufferPinnedCreateV2(cuda_, nullptr, &phases.pinned),
                    "nvjpegBufferPinnedCreateV2"));
    RETURN_IF_ERROR(
        cuda::Check(n.BufferDeviceCreateV2(cuda_, nullptr, &phases.device),
                    "nvjpegBufferDeviceCreateV2"));
    RETURN_IF_ERROR(
        cuda::Check(n.StateAttachPinnedBuffer(phases.state, phases.pinned),
                    "nvjpegStateAttachPinnedBuffer"));
    RETURN_IF_ERROR(
        cuda::Check(n.StateAttachDeviceBuffer(phases.state, phases.device),
                    "nvjpegStateAttachDeviceBuffer"));
  }
  for (auto [params, format] : {std::pair(&as_rgb_, NvjpegFormat::kRgbi),
                                std::pair(&as_luma_, NvjpegFormat::kY)}) {
    RETURN_IF_ERROR(cuda::Check(n.DecodeParamsCreate(cuda_, params),
                                "nvjpegDecodeParamsCreate"));
    RETURN_IF_ERROR(cuda::Check(n.DecodeParamsSetOutputFormat(*params, format),
                                "nvjpegDecodeParamsSetOutputFormat"));
  }
  return absl::OkStatus();
}

NvjpegSlot::~NvjpegSlot() {
  const cuda::Nvjpeg& n = nvjpeg_;
  MutexLock lock(&asking_);
  for (const cuda::NvjpegParams params : {as_rgb_, as_luma_, asked_for_})
    if (params != nullptr) n.DecodeParamsDestroy(params);
  for (const cuda::NvjpegParams params : shapes_) n.DecodeParamsDestroy(params);
  for (const cuda::NvjpegState state : {rgb_, luma_})
    if (state != nullptr) n.JpegStateDestroy(state);
  for (const Phases& phases : phases_) {
    if (phases.state != nullptr) n.JpegStateDestroy(phases.state);
    if (phases.pinned != nullptr) n.BufferPinnedDestroy(phases.pinned);
    if (phases.device != nullptr) n.BufferDeviceDestroy(phases.device);
  }
  if (decoder_ != nullptr) n.DecoderDestroy(decoder_);
  for (const cuda::NvjpegStream stream : {asked_, stream_})
    if (stream != nullptr) n.JpegStreamDestroy(stream);
}

absl::StatusOr<NvjpegChoice> NvjpegSlot::Choose(
    std::span<const std::byte> encoded, bool luma,
    std::span<const DecodeShape> shapes) {
  const NvjpegChoice by_cuda{.shape = shapes.back()};
  if (hardware_ == nullptr) return by_cuda;
  if (const absl::Status current = gpu_.MakeCurrent(); !current.ok())
    return Unavailable("GPU {}: {}", gpu_.info().index, Message(current));
  NvjpegResult result = NvjpegResult::kSuccess;
  for (int attempt = 0; attempt < kNvjpegTries; ++attempt) {
    NvjpegChoice choice = by_cuda;
    {
      MutexLock lock(&asking_);
      result = Ask(encoded, luma, shapes, &choice);
    }
    if (result == NvjpegResult::kSuccess) return choice;
    if (FaultOf(result) == NvjpegFault::kImage) return by_cuda;
  }
  return Unavailable("GPU {}: {}", gpu_.info().index,
                     Message(cuda::Check(result, "asking nvJPEG")));
}

NvjpegResult NvjpegSlot::Ask(std::span<const std::byte> encoded, bool luma,
                             std::span<const DecodeShape> shapes,
                             NvjpegChoice* choice) {
  NvjpegResult result = nvjpeg_.JpegStreamParseHeader(
      hardware_, DataOf(encoded), encoded.size(), asked_);
  if (result != NvjpegResult::kSuccess) return result;
  for (const DecodeShape& shape : shapes) {
    int refused = 1;
    result = Set(asked_for_, luma, shape);
    if (result == NvjpegResult::kSuccess)
      result = nvjpeg_.DecodeBatchedSupportedEx(hardware_, asked_, asked_for_,
                                                &refused);
    if (result == NvjpegResult::kSuccess && refused == 0) {
      *choice = {.engines = true, .shape = shape};
      return result;
    }
    // An image, or a shape, that it will not do: the next.
    if (result != NvjpegResult::kSuccess &&
        FaultOf(result) != NvjpegFault::kImage)
      return result;
  }
  return NvjpegResult::kSuccess;
}

NvjpegResult NvjpegSlot::Set(cuda::NvjpegParams params, bool luma,
                             const DecodeShape& shape) const {
  const Rect region = shape.cut ? shape.region : Rect{0, 0, -1, -1};
  NvjpegResult result = nvjpeg_.DecodeParamsSetOutputFormat(
      params, luma ? NvjpegFormat::kY : NvjpegFormat::kRgbi);
  if (result == NvjpegResult::kSuccess)
    result = nvjpeg_.DecodeParamsSetROI(
        params, static_cast<int>(region.x), static_cast<int>(region.y),
        static_cast<int>(region.width), static_cast<int>(region.height));
  if (result == NvjpegResult::kSuccess)
    result = nvjpeg_.DecodeParamsSetScaleFactor(
        params, static_cast<cuda::NvjpegScale>(shape.halvings));
  return result;
}

absl::Status NvjpegSlot::Decode(std::span<JpegToDecode> images,
                                cuda::Stream stream) {
  std::vector<JpegToDecode*> rgb, luma;
  for (JpegToDecode& image : images) {
    if (image.choice.engines)
      (image.luma ? luma : rgb).push_back(&image);
    else
      RETURN_IF_ERROR(DecodeByCuda(image, stream));
  }
  RETURN_IF_ERROR(DecodeBatch(rgb, rgb_, stream));
  return DecodeBatch(luma, luma_, stream);
}

absl::Status NvjpegSlot::DecodeBatch(std::span<JpegToDecode*> images,
                                     cuda::NvjpegState state,
                                     cuda::Stream stream) {
  if (images.empty()) return absl::OkStatus();
  const NvjpegResult result = CallBatched(images, state, stream);
  if (result == NvjpegResult::kSuccess) {
    for (JpegToDecode* image : images)
      image->outcome = JpegToDecode::Outcome::kDecoded;
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(AfterFailure(result, "nvjpegDecodeBatchedEx", stream));
  for (JpegToDecode* image : images) {
    RETURN_IF_ERROR(DecodeAlone(image, state, stream));
    // Before the state is made ready for the next.
    RETURN_IF_ERROR(gpu_.WaitStream(stream));
  }
  return absl::OkStatus();
}

absl::Status NvjpegSlot::DecodeAlone(JpegToDecode* image,
                                     cuda::NvjpegState state,
                                     cuda::Stream stream) {
  image->outcome = JpegToDecode::Outcome::kFailed;
  for (int attempt = 0; attempt < kNvjpegTries; ++attempt) {
    const NvjpegResult result = CallBatched({&image, 1}, state, stream);
    if (result == NvjpegResult::kSuccess) {
      image->outcome = JpegToDecode::Outcome::kDecoded;
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(AfterFailure(result, "nvjpegDecodeBatchedEx", stream));
    if (FaultOf(result) == NvjpegFault::kImage) {
      image->outcome = JpegToDecode::Outcome::kRefused;
      return absl::OkStatus();
    }
  }
  return absl::OkStatus();
}

NvjpegResult NvjpegSlot::CallBatched(std::span<JpegToDecode*> images,
                                     cuda::NvjpegState state,
                                     cuda::Stream stream) {
  data_.clear();
  sizes_.clear();
  outputs_.clear();
  for (size_t i = 0; i < images.size(); ++i) {
    const JpegToDecode& image = *images[i];
    const NvjpegResult set = Set(shapes_[i], image.luma, image.choice.shape);
    if (set != NvjpegResult::kSuccess) return set;
    data_.push_back(DataOf(image.encoded));
    sizes_.push_back(image.encoded.size());
    outputs_.push_back(OutputOf(image));
  }
  const NvjpegResult ready = nvjpeg_.DecodeBatchedInitialize(
      hardware_, state, static_cast<int>(images.size()), 1,
      images[0]->luma ? NvjpegFormat::kY : NvjpegFormat::kRgbi);
  if (ready != NvjpegResult::kSuccess) return ready;
  return nvjpeg_.DecodeBatchedEx(hardware_, state, data_.data(), sizes_.data(),
                                 outputs_.data(), shapes_.data(), stream);
}

absl::Status NvjpegSlot::DecodeByCuda(JpegToDecode& image,
                                      cuda::Stream stream) {
  image.outcome = JpegToDecode::Outcome::kFailed;
  for (int attempt = 0; attempt < kNvjpegTries; ++attempt) {
    absl::Status waited;
    const NvjpegResult result = CallPhases(image, stream, &waited);
    RETURN_IF_ERROR(waited);
    if (result == NvjpegResult::kSuccess) {
      image.outcome = JpegToDecode::Outcome::kDecoded;
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(AfterFailure(result, "nvjpegDecodeJpeg", stream));
    if (FaultOf(result) == NvjpegFault::kImage) {
      image.outcome = JpegToDecode::Outcome::kRefused;
      return absl::OkStatus();
    }
  }
  return absl::OkStatus();
}

NvjpegResult NvjpegSlot::CallPhases(JpegToDecode& image, cuda::Stream stream,
                                    absl::Status* waited) {
  const cuda::Nvjpeg& n = nvjpeg_;
  const cuda::NvjpegParams params = image.luma ? as_luma_ : as_rgb_;
  NvjpegResult result = n.JpegStreamParse(cuda_, DataOf(image.encoded),
                                          image.encoded.size(), 0, 0, stream_);
  int refused = 1;
  if (result == NvjpegResult::kSuccess)
    result = n.DecoderJpegSupported(decoder_, stream_, params, &refused);
  if (result == NvjpegResult::kSuccess && refused != 0)
    return NvjpegResult::kJpegNotSupported;
  const cuda::NvjpegState state = phases_[next_ ^= 1].state;
  if (result == NvjpegResult::kSuccess)
    result = n.DecodeJpegHost(cuda_, decoder_, state, params, stream_);
  if (result != NvjpegResult::kSuccess) return result;
  // The image before has ended: its state is the next one's.
  *waited = gpu_.WaitStream(stream);
  if (!waited->ok()) return result;
  result =
      n.DecodeJpegTransferToDevice(cuda_, decoder_, state, stream_, stream);
  if (result != NvjpegResult::kSuccess) return result;
  cuda::NvjpegImage output = OutputOf(image);
  return n.DecodeJpegDevice(cuda_, decoder_, state, &output, stream);
}

absl::Status NvjpegSlot::AfterFailure(NvjpegResult result, const char* call,
                                      cuda::Stream stream) const {
  const NvjpegFault fault = FaultOf(result);
  absl::Status status = cuda::Check(result, call);
  if (fault == NvjpegFault::kMemory) return status;
  if (fault == NvjpegFault::kWorker)
    LOG_WARN("gpu.nvjpeg gpu={} error=\"{}\"", gpu_.info().index,
             Message(status));
  return gpu_.WaitStream(stream);
}

}  // namespace leat::worker
