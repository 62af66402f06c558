// SPDX-License-Identifier: Apache-2.0
#include "worker/image/operators/image_size.h"

#include <limits>

#include "core/status.h"
#include "worker/image/base/limits.h"
#include "worker/image/jpeg/decode/decoder.h"
#include "worker/image/resample/geometry.h"

namespace leat::worker {
namespace {

// The size of an image must not depend on the worker's bounds.
constexpr ImageLimits kNoLimits = {
    .max_pixels = std::numeric_limits<uint64_t>::max(),
    .max_side = std::numeric_limits<uint32_t>::max(),
    .max_scans = std::numeric_limits<int>::max(),
    .max_scan_pixels = std::numeric_limits<uint64_t>::max(),
    .max_unpacked_bytes = std::numeric_limits<uint64_t>::max(),
    .max_scratch_bytes = std::numeric_limits<uint64_t>::max()};

}  // namespace

absl::StatusOr<ImageHeader> ImageHeaderOf(std::span<const std::byte> file,
                                          const ImageFormats& formats) {
  if (IsJpeg(file)) {
    JpegDecoder decoder(kNoLimits);
    RETURN_IF_ERROR(decoder.Open(file));
    const JpegDecoder::Header& header = decoder.header();
    return ImageHeader{.size = header.size,
                       .orientation = header.orientation,
                       .channels = header.components == 1 ? 1 : 3};
  }
  ASSIGN_OR_RETURN(const Codec* const codec, FindCodec(file, formats));
  return codec->read_header(file, kNoLimits);
}

absl::StatusOr<ImageSize> SizeOfImage(std::span<const std::byte> file) {
  ASSIGN_OR_RETURN(const ImageHeader header,
                   ImageHeaderOf(file, ImageFormats()));
  return Orientation::Of(header.orientation).Turned(header.size);
}

}  // namespace leat::worker
