// SPDX-License-Identifier: Apache-2.0
//
// WebP, by libwebp; lossy (fancy upsampling, no dithering: libwebp's defaults)
// and lossless. Orientation comes from the EXIF chunk. Animations are refused.
#include <webp/decode.h>

#include "core/cluster/fault.h"
#include "core/status.h"
#include "worker/image/codecs/codec.h"
#include "worker/image/codecs/webp_structure.h"
#include "worker/image/jpeg/scan/header.h"

namespace leat::worker {
namespace {

using Bytes = std::span<const std::byte>;

constexpr size_t kRiffHeader = 12;
constexpr size_t kChunkHeader = 8;
// libwebp holds a lossless image as 32-bit pixels, and a few rows, beside the
// tables of its codes; so it does with the alpha of a lossy image, which it
// decodes for RGB, too.
constexpr uint64_t kBytesAPixel = 5;

const uint8_t* DataOf(Bytes file) {
  return reinterpret_cast<const uint8_t*>(file.data());
}

bool RecognisesWebp(Bytes file) {
  return BytesAre(file, 0, "RIFF") && BytesAre(file, 8, "WEBP");
}

absl::Status ToStatus(VP8StatusCode code) {
  switch (code) {
    case VP8_STATUS_OUT_OF_MEMORY:
      return WithFault(ResourceExhausted("WebP: out of memory"),
                       Fault::kWorker);
    case VP8_STATUS_UNSUPPORTED_FEATURE:
      return InvalidArgument("WebP of a kind that is not supported");
    case VP8_STATUS_NOT_ENOUGH_DATA:
    case VP8_STATUS_SUSPENDED:
      return DataLoss("truncated WebP: premature end of the image's data");
    default:
      return DataLoss("damaged WebP: a bitstream error");
  }
}

int OrientationOf(Bytes file, size_t end) {
  for (size_t at = kRiffHeader; at + kChunkHeader <= end;) {
    const size_t size = LittleEndian(file, at + 4, 4);
    const size_t begin = at + kChunkHeader;
    if (size > end - begin) return 1;
    if (BytesAre(file, at, "EXIF")) {
      // Some writers put JPEG's prefix before it.
      constexpr std::string_view kPrefix("Exif\0\0", 6);
      Bytes exif = file.subspan(begin, size);
      if (BytesAre(exif, 0, kPrefix)) exif = exif.subspan(kPrefix.size());
      return TiffOrientation(exif);
    }
    at = begin + size + size % 2;
  }
  return 1;
}

absl::StatusOr<ImageHeader> ReadWebpHeader(Bytes file,
                                           const ImageLimits& limits) {
  const uint64_t end = uint64_t{LittleEndian(file, 4, 4)} + 8;
  if (end > file.size())
    return DataLoss("truncated WebP: {} bytes of {}", file.size(), end);
  WebPBitstreamFeatures features;
  const VP8StatusCode code =
      WebPGetFeatures(DataOf(file), file.size(), &features);
  if (code != VP8_STATUS_OK) return ToStatus(code);
  if (features.has_animation)
    return InvalidArgument("WebP is an animation, want one image");
  RETURN_IF_ERROR(CheckImageSize("WebP", static_cast<uint64_t>(features.width),
                                 static_cast<uint64_t>(features.height),
                                 limits));
  ImageHeader header{.size = {features.height, features.width},
                     .orientation = OrientationOf(file, end),
                     .channels = 3};
  constexpr int kLossless = 2;
  if (features.format == kLossless || features.has_alpha)
    header.working_bytes =
        header.bytes() / 3 * kBytesAPixel + WebpTableBytes(file, header.size);
  RETURN_IF_ERROR(CheckCodecMemory("WebP", header.working_bytes, limits));
  return header;
}

absl::Status DecodeWebp(Bytes file, const ImageHeader& header,
                        const ImageLimits&, uint8_t* out) {
  WebPDecoderConfig config;
  if (!WebPInitDecoderConfig(&config))
    return Internal("libwebp is of another version than its header");
  config.output.colorspace = MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA = {.rgba = out,
                          .stride = static_cast<int>(header.size.width) * 3,
                          .size = header.bytes()};
  const MallocWatch memory;
  const VP8StatusCode code = WebPDecode(DataOf(file), file.size(), &config);
  WebPFreeDecBuffer(&config.output);
  return code == VP8_STATUS_OK ? absl::OkStatus()
                               : memory.Verdict(ToStatus(code));
}

}  // namespace

const Codec kWebp = {"WebP", ImageFormat::kWebp, RecognisesWebp, ReadWebpHeader,
                     DecodeWebp};

}  // namespace leat::worker
