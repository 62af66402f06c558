// SPDX-License-Identifier: Apache-2.0
#include "worker/image/codecs/codec.h"

#include <cerrno>

#include "core/cluster/fault.h"
#include "core/status.h"
#include "worker/image/jpeg/scan/header.h"

namespace leat::worker {

const Codec* FindCodec(std::span<const std::byte> file) {
  for (const Codec* codec : {&kPng, &kWebp, &kBmp, &kTiff, &kJpeg2000})
    if (codec->recognises(file)) return codec;
  return nullptr;
}

absl::StatusOr<const Codec*> FindCodec(std::span<const std::byte> file,
                                       const ImageFormats& formats) {
  const Codec* const codec = FindCodec(file);
  if (codec == nullptr) return UnknownImage(file);
  if (formats.has(codec->format)) return codec;
  return WithFault(
      FailedPrecondition("a {} image, which this worker does not decode: want "
                         "{} in its --formats {}",
                         codec->name, Name(codec->format), formats.ToString()),
      Fault::kWorker);
}

bool IsJpeg(std::span<const std::byte> file) {
  return BytesAre(file, 0, "\xff\xd8\xff");
}

absl::Status UnknownImage(std::span<const std::byte> file) {
  return InvalidArgument(
      "not an image that can be decoded: looks like {}; want JPEG, PNG, WebP, "
      "BMP, TIFF or JPEG 2000",
      LooksLike(file));
}

absl::Status CheckImageSize(const char* name, uint64_t width, uint64_t height,
                            const ImageLimits& limits) {
  if (width == 0 || height == 0)
    return DataLoss("damaged {}: it claims to be {} × {}", name, width, height);
  if (width > limits.max_side || height > limits.max_side)
    return ResourceExhausted("{} is {} × {}: a side over the limit of {}", name,
                             width, height, limits.max_side);
  if (width * height > limits.max_pixels)
    return ResourceExhausted("{} is {} × {}: over the limit of {} pixels", name,
                             width, height, limits.max_pixels);
  return absl::OkStatus();
}

MallocWatch::MallocWatch() { errno = 0; }

absl::Status MallocWatch::Verdict(absl::Status status) const {
  if (status.ok() || errno != ENOMEM) return status;
  return WithFault(ResourceExhausted("out of memory: {}", Message(status)),
                   Fault::kWorker);
}

absl::Status CheckCodecMemory(const char* name, uint64_t bytes,
                              const ImageLimits& limits) {
  if (bytes <= limits.max_scratch_bytes) return absl::OkStatus();
  return ResourceExhausted("{} needs about {} bytes, over the limit of {}",
                           name, bytes, limits.max_scratch_bytes);
}

}  // namespace leat::worker
