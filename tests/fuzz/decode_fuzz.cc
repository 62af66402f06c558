// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as an image file: every codec and the JPEG decoder, under small
// limits. Seeds: leat_fuzz_seeds DIRECTORY. The checksums of a PNG are put
// right after every change, or all would end there.
#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "core/status.h"
#include "worker/image/encoded_image.h"

namespace leat::worker {
namespace {

constexpr ImageLimits kLimits = {.max_pixels = 1'000'000,
                                 .max_side = 20'000,
                                 .max_scratch_bytes = 200'000'000};

void DecodeOne(std::span<const std::byte> file) {
  static Scratch& scratch = *new Scratch(kLimits);
  const auto image = EncodedImage::Open(file, true, *scratch.state());
  if (!image.ok()) {
    if (Message(image.status()).empty()) abort();
    return;
  }
  const ImageSize size = image->size();
  if (size.width < 1 || size.height < 1 ||
      static_cast<uint64_t>(size.width * size.height) > kLimits.max_pixels)
    abort();
  // Exactly as large as it may be: what writes beyond is found.
  std::vector<std::byte> out(static_cast<size_t>(size.width * size.height * 3));
  (void)image->Run(View(size), Colours::kBgr, true, *scratch.state(),
                   out.data());
}

void RepairPng(uint8_t* data, size_t size) {
  const std::span<const std::byte> file = std::as_bytes(std::span(data, size));
  if (!BytesAre(file, 1, "PNG")) return;
  for (size_t at = 8; at + 12 <= size;) {
    const size_t length = BigEndian(file, at, 4);
    if (length > size - at - 12) return;
    const auto sum = static_cast<uint32_t>(
        crc32(0, data + at + 4, static_cast<uInt>(length + 4)));
    for (size_t i = 0; i < 4; ++i)
      data[at + 8 + length + i] = static_cast<uint8_t>(sum >> (24 - 8 * i));
    at += 12 + length;
  }
}

}  // namespace
}  // namespace leat::worker

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size,
                                          size_t max_size, unsigned int seed) {
  const size_t mutated = LLVMFuzzerMutate(data, size, max_size);
  if (seed % 16 != 0) leat::worker::RepairPng(data, mutated);
  return mutated;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  leat::worker::DecodeOne(std::as_bytes(std::span(data, size)));
  return 0;
}
