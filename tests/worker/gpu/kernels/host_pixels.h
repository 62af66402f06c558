// SPDX-License-Identifier: Apache-2.0
//
// Pixels of JPEGs by the kernels' bodies, run on the host.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>
#include <span>
#include <vector>

#include "tests/support/host_launcher.h"
#include "worker/gpu/decoding/jpeg_upload.h"
#include "worker/gpu/kernels/jpeg.h"

namespace leat::worker {

// Memory of the exact size, and aligned, so that AddressSanitizer notices an
// access beyond it.
class KernelMemory {
 public:
  explicit KernelMemory(size_t bytes)
      : bytes_(static_cast<std::byte*>(
            ::operator new (bytes, std::align_val_t{kJpegAlignment}))) {
    std::fill_n(bytes_, bytes, std::byte{0xa5});
  }
  ~KernelMemory() {
    ::operator delete (bytes_, std::align_val_t{kJpegAlignment});
  }
  KernelMemory(const KernelMemory&) = delete;
  KernelMemory& operator=(const KernelMemory&) = delete;
  std::byte* get() const { return bytes_; }

 private:
  std::byte* const bytes_;
};

inline void LaunchJpeg(const DeviceJpeg& image) {
  auto address = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(&image));
  void* parameters[] = {&address};
  for (const JpegKernel kernel : kJpegLaunches)
    if (!LaunchOnHost(kJpegKernels[static_cast<int>(kernel)],
                      JpegLaunch(JpegThreads(kernel, image), 1), parameters))
      std::abort();
}

// Returns the window's pixels, made at `from`: 3 bytes each, or 1.
inline std::vector<uint8_t> PixelsAt(const std::byte* at,
                                     const BlockWindow& window) {
  const auto count =
      static_cast<size_t>(window.window.width * window.window.height);
  const auto* from = reinterpret_cast<const uint8_t*>(at);
  if (window.gray) return {from, from + count};
  std::vector<uint8_t> pixels(3 * count);
  uint8_t* to = pixels.data();
  for (size_t i = 0; i < count; ++i, from += 4, to += 3)
    std::memcpy(to, from, 3);
  return pixels;
}

// Returns the pixels that kernels make from blocks.
inline std::vector<uint8_t> PixelsOf(const JpegBlocks& blocks) {
  const BlockWindow& window = blocks.window;
  KernelMemory payload(JpegPayloadBytes(blocks));
  KernelMemory memory(JpegImageBytes(window));
  WriteJpegPayload(blocks, payload.get());
  const DeviceJpeg image =
      DescribeJpeg(blocks, DeviceAddress::Of(payload.get()),
                   DeviceAddress::Of(memory.get()));
  LaunchJpeg(image);
  return PixelsAt(memory.get(), window);
}

// The same from codes; nullopt: kernels refuse them. They leave `places`, if
// there are any.
inline std::optional<std::vector<uint8_t>> PixelsOf(
    const DeviceCodes& codes, std::span<CodePlace> places = {}) {
  KernelMemory payload(CodesPayloadBytes(codes));
  KernelMemory memory(CodesImageBytes(codes.window, codes.data.size()));
  uint32_t fault = 0;
  const CodesAddresses at{.payload = DeviceAddress::Of(payload.get()),
                          .image = DeviceAddress::Of(memory.get()),
                          .fault = DeviceAddress::Of(&fault),
                          .places = DeviceAddress::Of(places.data())};
  WriteCodesPayload(codes, at, payload.get());
  LaunchJpeg(DescribeCodes(codes, at));
  if (fault != 0) return std::nullopt;
  return PixelsAt(memory.get(), codes.window);
}

}  // namespace leat::worker
