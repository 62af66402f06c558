// SPDX-License-Identifier: Apache-2.0
//
// Windows of JPEGs, with pixels from the kernels and from libjpeg.
#pragma once

#include <optional>
#include <vector>

#include "gtest/gtest.h"
#include "tests/worker/gpu/fused/support.h"
#include "tests/worker/gpu/kernels/host_pixels.h"
#include "tests/worker/image/jpeg/forms/support.h"

namespace leat::worker {

// Runs the kernels on a device; returns the window's pixels, made at `memory`.
inline std::vector<uint8_t> PixelsOn(KernelRunner& device,
                                     const DeviceJpeg& image,
                                     const BlockWindow& window,
                                     DeviceAddress memory) {
  const DeviceAddress images =
      device.Upload(std::as_bytes(std::span(&image, 1)));
  for (const JpegKernel kernel : kJpegLaunches) {
    if (JpegThreads(kernel, image) == 0) continue;
    const absl::Status launched =
        device.Launch(kJpegKernels[static_cast<int>(kernel)],
                      JpegLaunch(JpegThreads(kernel, image), 1), images);
    EXPECT_TRUE(launched.ok()) << launched;
  }
  const auto count =
      static_cast<size_t>(window.window.width * window.window.height);
  std::vector<std::byte> made(count * (window.gray ? 1 : 4));
  device.Download(memory, made);
  return PixelsAt(made.data(), window);
}

inline std::vector<uint8_t> PixelsOn(KernelRunner& device,
                                     const JpegBlocks& blocks) {
  std::vector<std::byte> payload(JpegPayloadBytes(blocks));
  WriteJpegPayload(blocks, payload.data());
  const std::vector<std::byte> filled(JpegImageBytes(blocks.window),
                                      std::byte{0xa5});
  const DeviceAddress memory = device.Upload(filled);
  const DeviceJpeg image = DescribeJpeg(blocks, device.Upload(payload), memory);
  std::vector<uint8_t> pixels = PixelsOn(device, image, blocks.window, memory);
  device.Reset();
  return pixels;
}

// The same from codes; nullopt: kernels refuse them.
inline std::optional<std::vector<uint8_t>> PixelsOn(KernelRunner& device,
                                                    const DeviceCodes& codes) {
  std::vector<std::byte> payload(CodesPayloadBytes(codes)), fault(4);
  const std::vector<std::byte> filled(
      CodesImageBytes(codes.window, codes.data.size()), std::byte{0xa5});
  const DeviceAddress memory = device.Upload(filled);
  const CodesAddresses at{.payload = device.Upload(payload),
                          .image = memory,
                          .fault = device.Upload(fault)};
  WriteCodesPayload(codes, at, payload.data());
  device.Put(at.payload, payload);
  std::optional<std::vector<uint8_t>> pixels =
      PixelsOn(device, DescribeCodes(codes, at), codes.window, memory);
  device.Download(at.fault, fault);
  device.Reset();
  if (fault != std::vector<std::byte>(4)) pixels.reset();
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

// A window by its codes. `found`: the form leads to them, or there is none;
// without pixels, kernels have refused them.
struct ByCodes {
  bool found = false;
  std::optional<std::vector<uint8_t>> pixels;
};
inline ByCodes DecodeByCodes(JpegDecoder& decoder, const std::string& file,
                             const Rect& window, bool gray,
                             const JpegForm* index) {
  ByCodes by;
  if (!decoder.Open(BytesOf(file), index).ok()) return by;
  const auto of = decoder.BlocksOf(window, gray);
  if (!of) return by;
  DeviceCodes codes;
  by.found = decoder.FindCodes(*of, &codes).value_or(false);
  if (by.found) {
    EXPECT_EQ(decoder.used_form(), index != nullptr);
    by.pixels = PixelsOf(codes);
  }
  return by;
}

}  // namespace leat::worker
