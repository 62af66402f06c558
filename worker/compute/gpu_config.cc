// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>

#include "core/status.h"
#include "worker/compute/gpu_worker.h"

namespace leat::worker {
namespace {

constexpr int kMaxIndex = 63;

constexpr uint64_t kMiB = 1 << 20;

absl::Status CheckSize(std::string_view flag, uint64_t bytes, uint64_t least,
                       uint64_t greatest) {
  if (bytes >= least && bytes <= greatest) return absl::OkStatus();
  return InvalidArgument("{} {}: want {} to {}", flag, bytes, least, greatest);
}

// The same, if it is set at all.
absl::Status CheckSetSize(std::string_view flag, uint64_t bytes, uint64_t least,
                          uint64_t greatest) {
  return bytes == 0 ? absl::OkStatus()
                    : CheckSize(flag, bytes, least, greatest);
}

// Sets a size that is 0 to a part of the memory, within bounds.
void SetPart(uint64_t memory_bytes, uint64_t parts, uint64_t least,
             uint64_t most, uint64_t* size) {
  if (*size == 0) *size = std::clamp(memory_bytes / parts, least, most);
}

}  // namespace

absl::StatusOr<DeviceSelection> ParseDevices(std::string_view text) {
  if (text == "all") return DeviceSelection{};
  DeviceSelection selection{.all = false, .indices = {}};
  if (text == "none") return selection;
  for (size_t at = 0; at <= text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    const char* const end = text.data() + comma;
    int index = -1;
    const auto [stop, error] = std::from_chars(text.data() + at, end, index);
    const auto& known = selection.indices;
    if (error != std::errc() || stop != end || index < 0 || index > kMaxIndex ||
        std::find(known.begin(), known.end(), index) != known.end())
      return InvalidArgument(
          "--devices {}: want all, none, or different GPUs 0,1,...", text);
    selection.indices.push_back(index);
    at = comma + 1;
  }
  return selection;
}

absl::Status GpuConfig::Validate() const {
  constexpr uint64_t kMost = uint64_t{4} << 30;
  if (slots < 1 || slots > 16)
    return InvalidArgument("--gpu-slots {}: want 1 to 16", slots);
  RETURN_IF_ERROR(CheckSize("--gpu-slot-bytes", slot_bytes, kMiB, kMost));
  RETURN_IF_ERROR(
      CheckSetSize("--gpu-group-bytes", group_bytes, 64 << 10, 256 * kMiB));
  RETURN_IF_ERROR(CheckSetSize("--gpu-decode-bytes", decode_bytes,
                               kMaxNvjpegImageBytes, 16 * kMost));
  RETURN_IF_ERROR(CheckSetSize("--gpu-nvjpeg-bytes", decoder_bytes,
                               kMaxNvjpegImageBytes, 16 * kMost));
  if (max_failures < 1)
    return InvalidArgument("GPU failures {}: want at least 1", max_failures);
  return absl::OkStatus();
}

// Four slots take a tenth of a large GPU at most, nvJPEG's memory included: the
// trainer needs the rest, and JAX leaves a quarter by default. 64 MiB hold 111
// rows of 224 × 224 × 3 floats.
GpuConfig GpuConfig::For(uint64_t memory_bytes) const {
  GpuConfig config = *this;
  SetPart(memory_bytes, 2048, 16 * kMiB, 64 * kMiB, &config.group_bytes);
  SetPart(memory_bytes, 128, 256 * kMiB, 1024 * kMiB, &config.decode_bytes);
  SetPart(memory_bytes, 64, 1024 * kMiB, 2048 * kMiB, &config.decoder_bytes);
  return config;
}

size_t JpegsAtOnce(const std::vector<GpuInfo>& devices) {
  size_t most = 1;
  for (const GpuInfo& device : devices)
    most = std::max(most, static_cast<size_t>(device.jpeg_engines) *
                              static_cast<size_t>(device.jpeg_cores));
  return most;
}

}  // namespace leat::worker
