// SPDX-License-Identifier: Apache-2.0
#include "worker/image/program/scales_check.h"

#include <span>
#include <string>
#include <vector>

#include "core/hash.h"
#include "core/status.h"
#include "worker/image/base/known_images.h"
#include "worker/image/codecs/codec.h"
#include "worker/image/codecs/libraries.h"
#include "worker/image/jpeg/decode/decoder.h"
#include "worker/image/resample/geometry.h"

namespace leat::worker {
namespace {

// The digest of libjpeg-turbo 2.1.5, with SIMD and without.
constexpr char kPixels[] =
    "6f54e2885da45027d13f25d7267048f9ce0f585c7418c4a1e55d05919475bc7b";

void AddScales(const std::string& file, JpegDecoder* decoder, Sha256* hash) {
  for (int halvings = 1; halvings <= kMostHalvings; ++halvings) {
    absl::Status status = decoder->Open(std::as_bytes(std::span(file)));
    if (status.ok() && !decoder->header().has_scales)
      status = absl::UnimplementedError("no scales");
    std::vector<uint8_t> pixels;
    if (status.ok()) {
      decoder->Reduce(halvings);
      const StoredSize size = decoder->size();
      const Rect all{0, 0, size.width, size.height};
      if (decoder->CanReadInto(all)) {  // not inks
        pixels.resize(static_cast<size_t>(3 * size.width * size.height));
        status =
            decoder->ReadInto(all, false, true, pixels.data(), 3 * size.width);
      }
    }
    hash->UpdateU64(static_cast<uint64_t>(status.code()));
    hash->Update(std::as_bytes(std::span(pixels)));
  }
}

std::string PixelsOfAllScales() {
  JpegDecoder decoder{ImageLimits{}};
  Sha256 hash;
  for (const std::string& file : KnownImages())
    if (IsJpeg(std::as_bytes(std::span(file))))
      AddScales(file, &decoder, &hash);
  return ToHex(hash.Finish());
}

}  // namespace

absl::Status CheckScales() {
  static const std::string& made = *new std::string(PixelsOfAllScales());
  if (made == kPixels) return absl::OkStatus();
  return Unimplemented(
      "decode: argument \"reduce\" is \"auto\", and this worker's {} decodes "
      "at smaller scales to other pixels than libjpeg-turbo: pixels of known "
      "files have the SHA-256 {}, want {}",
      DecoderLibraries(), made, kPixels);
}

}  // namespace leat::worker
