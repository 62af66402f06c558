// SPDX-License-Identifier: Apache-2.0
//
// Codec: one format of image files other than JPEG: PNG, WebP, BMP, TIFF,
// JPEG 2000.
//
// All decode to 8 bits a channel, gray or RGB: samples of other depths are
// scaled to the full range, round(x × 255 / max); palettes are looked up; alpha
// is dropped, never blended: pixels keep the colours that the file has for
// them, also where they are transparent. Damage is an error, never a guess.
//
// Codecs have no state; all functions are thread-safe. Nothing is printed: what
// a library says is in the error. Limits are checked before anything that
// depends on the image's size is allocated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/image/base/formats.h"
#include "worker/image/base/limits.h"
#include "worker/image/base/rect.h"

namespace leat::worker {

struct ImageHeader {
  StoredSize size;
  int orientation = 1;  // EXIF's, 1 … 8
  int channels = 3;     // of what is decoded: 1 (gray) or 3 (R, G, B)
  // About what decoding takes beside its result, where that depends on the
  // image's size.
  uint64_t working_bytes = 0;

  size_t bytes() const {
    return static_cast<size_t>(size.width) * static_cast<size_t>(size.height) *
           static_cast<size_t>(channels);
  }
};

struct Codec {
  const char* name;  // "PNG"
  ImageFormat format;
  // Looks at the first bytes.
  bool (*recognises)(std::span<const std::byte> file);
  // Without decoding. kInvalidArgument: of a kind that is not supported.
  // kDataLoss: damaged or cut off. kResourceExhausted: over a limit.
  // REQUIRES: recognises(file).
  absl::StatusOr<ImageHeader> (*read_header)(std::span<const std::byte> file,
                                             const ImageLimits& limits);
  // Writes header.bytes() bytes, rows from the top, dense. Errors as
  // read_header's; what `out` then holds is unspecified.
  // REQUIRES: `header` is read_header's of the same bytes and limits.
  absl::Status (*decode)(std::span<const std::byte> file,
                         const ImageHeader& header, const ImageLimits& limits,
                         uint8_t* out);
};

extern const Codec kPng;
extern const Codec kWebp;
extern const Codec kBmp;
extern const Codec kTiff;
extern const Codec kJpeg2000;

// The one that recognises the bytes; nullptr: none does, or they are a JPEG.
const Codec* FindCodec(std::span<const std::byte> file);

// The same, of a worker that decodes `formats`. kInvalidArgument: no codec
// recognises the bytes. kFailedPrecondition, of the worker
// (core/cluster/fault.h): the format is switched off; names it and the flag.
absl::StatusOr<const Codec*> FindCodec(std::span<const std::byte> file,
                                       const ImageFormats& formats);

// Begins as a JPEG does. Such bytes are JpegDecoder's.
bool IsJpeg(std::span<const std::byte> file);

// kInvalidArgument: says what the bytes look like and what is wanted.
absl::Status UnknownImage(std::span<const std::byte> file);

// --- For codecs -------------------------------------------------------------

// kResourceExhausted: over the limit of a side or of pixels. kDataLoss: empty.
absl::Status CheckImageSize(const char* name, uint64_t width, uint64_t height,
                            const ImageLimits& limits);
// kResourceExhausted: decoding takes more memory than a thread may.
absl::Status CheckCodecMemory(const char* name, uint64_t bytes,
                              const ImageLimits& limits);

// value × 255 / max, to the nearest. REQUIRES: value <= max < 2^32, max > 0.
inline uint8_t ScaledToByte(uint64_t value, uint64_t max) {
  return static_cast<uint8_t>((value * 510 + max) / (2 * max));
}

// Numbers in a file's bytes; the caller has checked that they are there.
inline uint32_t LittleEndian(std::span<const std::byte> bytes, size_t at,
                             int size) {
  uint32_t value = 0;
  for (int i = size - 1; i >= 0; --i)
    value = value << 8 | static_cast<uint8_t>(bytes[at + i]);
  return value;
}
inline uint32_t BigEndian(std::span<const std::byte> bytes, size_t at,
                          int size) {
  uint32_t value = 0;
  for (int i = 0; i < size; ++i)
    value = value << 8 | static_cast<uint8_t>(bytes[at + i]);
  return value;
}
inline bool BytesAre(std::span<const std::byte> bytes, size_t at,
                     std::string_view want) {
  return bytes.size() >= want.size() && at <= bytes.size() - want.size() &&
         std::string_view(reinterpret_cast<const char*>(bytes.data()) + at,
                          want.size()) == want;
}

}  // namespace leat::worker
