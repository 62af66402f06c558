// SPDX-License-Identifier: Apache-2.0
#include "worker/session/image_size.h"

#include <limits>

#include "core/status.h"
#include "worker/image/base/limits.h"
#include "worker/image/codecs/codec.h"
#include "worker/image/jpeg/decode/decoder.h"
#include "worker/image/resample/geometry.h"

namespace leat::worker {
namespace {

// Nothing is decoded, and the size must not depend on the worker's bounds.
constexpr ImageLimits kEverySize = {
    .max_pixels = std::numeric_limits<uint64_t>::max(),
    .max_side = std::numeric_limits<uint32_t>::max(),
    .max_scans = std::numeric_limits<int>::max(),
    .max_scan_pixels = std::numeric_limits<uint64_t>::max(),
    .max_unpacked_bytes = std::numeric_limits<uint64_t>::max(),
    .max_scratch_bytes = std::numeric_limits<uint64_t>::max()};

}  // namespace

absl::StatusOr<ImageSize> SizeOfImage(std::span<const std::byte> file) {
  if (IsJpeg(file)) {
    JpegDecoder decoder(kEverySize);
    RETURN_IF_ERROR(decoder.Open(file));
    const JpegDecoder::Header& header = decoder.header();
    return Orientation::Of(header.orientation).Turned(header.size);
  }
  const Codec* const codec = FindCodec(file);
  if (codec == nullptr) return UnknownImage(file);
  ASSIGN_OR_RETURN(const ImageHeader header,
                   codec->read_header(file, kEverySize));
  return Orientation::Of(header.orientation).Turned(header.size);
}

}  // namespace leat::worker
