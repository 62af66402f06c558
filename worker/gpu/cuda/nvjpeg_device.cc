// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu/cuda/nvjpeg_device.h"

#include <string>
#include <utility>

#include "core/status.h"
#include "worker/gpu/cuda/device.h"
#include "worker/gpu/cuda/nvjpeg_memory.h"

namespace leat::worker {
namespace {

using cuda::NvjpegResult;

// Enough for a handle that decodes nothing.
constexpr uint64_t kProbeBytes = uint64_t{256} << 20;

// All of these came with 11.9.
bool HasEngineCalls(const cuda::Nvjpeg& n) {
  return n.GetHardwareDecoderInfo != nullptr &&
         n.DecodeBatchedSupportedEx != nullptr &&
         n.DecodeBatchedEx != nullptr &&
         n.DecodeParamsSetScaleFactor != nullptr;
}

std::string Text(NvjpegResult result, std::string_view call) {
  return std::string(Message(cuda::Check(result, call)));
}

std::string WhyNoHandle(NvjpegResult result, const absl::Status& video) {
  std::string why = Text(result, "nvjpegCreateExV2(NVJPEG_BACKEND_HARDWARE)");
  if (!video.ok())
    why += fmt::format(
        "; {}: a container needs NVIDIA_DRIVER_CAPABILITIES with video",
        Message(video));
  return why;
}

// Returns why there are no engines. Empty: there are, and `info` describes
// them.
std::string FindEngines(const cuda::Nvjpeg& nvjpeg, const CudaDevice& gpu,
                        NvjpegMemory* memory, GpuInfo* info) {
  if (!HasEngineCalls(nvjpeg)) return "nvJPEG is older than 11.9";
  // Containers have the library only with the driver's "video" capability.
  const absl::Status video = cuda::LoadVideoLibrary(gpu.driver().path);
  cuda::NvjpegHandle handle = nullptr;
  NvjpegResult result =
      nvjpeg.CreateExV2(cuda::NvjpegBackend::kHardware, memory->device(),
                        memory->pinned(), NvjpegFlags(nvjpeg), &handle);
  if (result != NvjpegResult::kSuccess) return WhyNoHandle(result, video);
  unsigned engines = 0, cores = 0;
  result = nvjpeg.GetHardwareDecoderInfo(handle, &engines, &cores);
  gpu.Released(nvjpeg.Destroy(handle), "nvjpegDestroy");
  if (result != NvjpegResult::kSuccess)
    return Text(result, "nvjpegGetHardwareDecoderInfo");
  if (engines == 0) return "nvJPEG finds no engine on this GPU";
  info->jpeg_engines = static_cast<int>(engines);
  info->jpeg_cores = static_cast<int>(cores);
  return "";
}

}  // namespace

cuda::Flags NvjpegFlags(const cuda::Nvjpeg& nvjpeg) {
  const bool interpolates =
      nvjpeg.major > 12 || (nvjpeg.major == 12 && nvjpeg.minor > 0);
  return interpolates ? cuda::kNvjpegInterpolatedUpsampling
                      : cuda::kNvjpegFlagsDefault;
}

absl::StatusOr<std::unique_ptr<const NvjpegDevice>> NvjpegDevice::Open(
    const cuda::Nvjpeg* nvjpeg, const CudaDevice* gpu, GpuInfo* info) {
  NvjpegMemory memory(gpu, kProbeBytes, kProbeBytes);
  cuda::NvjpegHandle handle = nullptr;
  RETURN_IF_ERROR(cuda::Check(
      nvjpeg->CreateExV2(cuda::NvjpegBackend::kDefault, memory.device(),
                         memory.pinned(), NvjpegFlags(*nvjpeg), &handle),
      "nvjpegCreateExV2"));
  gpu->Released(nvjpeg->Destroy(handle), "nvjpegDestroy");
  info->decoder_version =
      fmt::format("{}.{}.{}", nvjpeg->major, nvjpeg->minor, nvjpeg->patch);
  info->no_engines = FindEngines(*nvjpeg, *gpu, &memory, info);
  return std::make_unique<const NvjpegDevice>(nvjpeg, gpu,
                                              info->no_engines.empty());
}

}  // namespace leat::worker
