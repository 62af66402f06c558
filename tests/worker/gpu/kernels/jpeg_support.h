// SPDX-License-Identifier: Apache-2.0
//
// Windows of JPEGs, with pixels from the kernels on the host and from libjpeg.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "tests/worker/gpu/fused/support.h"
#include "tests/worker/image/jpeg/forms/support.h"
#include "worker/gpu/decoding/jpeg_upload.h"
#include "worker/gpu/kernels/host_launcher.h"
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
  for (const JpegKernel kernel : {JpegKernel::kSamples, JpegKernel::kPixels})
    ASSERT_TRUE(LaunchOnHost(kJpegKernels[static_cast<int>(kernel)],
                             JpegLaunch(JpegThreads(kernel, image), 1),
                             parameters));
}

// Returns the pixels that kernels make from blocks: 3 bytes each, or 1.
inline std::vector<uint8_t> PixelsOf(const JpegBlocks& blocks) {
  const BlockWindow& window = blocks.window;
  KernelMemory payload(JpegPayloadBytes(blocks));
  KernelMemory memory(JpegImageBytes(window));
  WriteJpegPayload(blocks, payload.get());
  const DeviceJpeg image =
      DescribeJpeg(blocks, DeviceAddress::Of(payload.get()),
                   DeviceAddress::Of(memory.get()));
  LaunchJpeg(image);
  std::vector<uint8_t> pixels;
  const auto* from = reinterpret_cast<const uint8_t*>(memory.get());
  const int64_t count = window.window.width * window.window.height;
  for (int64_t i = 0; i < count; ++i, from += window.gray ? 1 : 4)
    pixels.insert(pixels.end(), from, from + (window.gray ? 1 : 3));
  return pixels;
}

// The same on a device.
inline std::vector<uint8_t> PixelsOn(KernelRunner& device,
                                     const JpegBlocks& blocks) {
  const BlockWindow& window = blocks.window;
  std::vector<std::byte> payload(JpegPayloadBytes(blocks));
  WriteJpegPayload(blocks, payload.data());
  const std::vector<std::byte> filled(JpegImageBytes(window), std::byte{0xa5});
  const DeviceAddress memory = device.Upload(filled);
  const DeviceJpeg image = DescribeJpeg(blocks, device.Upload(payload), memory);
  const DeviceAddress images =
      device.Upload(std::as_bytes(std::span(&image, 1)));
  for (const JpegKernel kernel : {JpegKernel::kSamples, JpegKernel::kPixels}) {
    const absl::Status launched =
        device.Launch(kJpegKernels[static_cast<int>(kernel)],
                      JpegLaunch(JpegThreads(kernel, image), 1), images);
    EXPECT_TRUE(launched.ok()) << launched;
  }
  const auto count =
      static_cast<size_t>(window.window.width * window.window.height);
  std::vector<std::byte> made(count * (window.gray ? 1 : 4));
  device.Download(memory, made);
  device.Reset();
  std::vector<uint8_t> pixels;
  for (size_t i = 0; i < made.size(); ++i)
    if (window.gray || i % 4 < 3)
      pixels.push_back(static_cast<uint8_t>(made[i]));
  return pixels;
}

// Returns the window by kernels; nullopt: libjpeg decodes it. Extends a seek
// index.
inline std::optional<std::vector<uint8_t>> ByKernels(
    JpegDecoder& decoder, std::span<const std::byte> file, const Rect& window,
    bool gray, const JpegForm* form = nullptr,
    size_t max_bytes = kAnyFormBytes) {
  if (!decoder.Open(file, form).ok()) return std::nullopt;
  if (form == nullptr || form->kind() == JpegFormKind::kSeekIndex)
    decoder.GrowSeekIndex();
  const Rect of = window.width == 0 ? WholeOf(decoder) : window;
  const auto blocks_of = decoder.BlocksOf(of, gray);
  if (!blocks_of) return std::nullopt;
  JpegBlocks blocks;
  const auto read = decoder.ReadBlocks(*blocks_of, max_bytes, &blocks);
  EXPECT_TRUE(read.ok()) << read.status();
  if (!read.value_or(false)) return std::nullopt;
  EXPECT_EQ(decoder.used_form(), form != nullptr);
  return PixelsOf(blocks);
}

}  // namespace leat::worker
