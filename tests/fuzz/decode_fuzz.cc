// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as an image file: every codec and the JPEG decoder, under small
// limits. Seeds: leat_fuzz_seeds DIRECTORY.
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

}  // namespace
}  // namespace leat::worker

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  leat::worker::DecodeOne(std::as_bytes(std::span(data, size)));
  return 0;
}
