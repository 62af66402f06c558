// SPDX-License-Identifier: Apache-2.0
//
// Codec: one format of image files other than JPEG: PNG, WebP, BMP, TIFF,
// JPEG 2000.
//
// All codecs decode to 8 bits per channel, gray or RGB. Samples of other depths
// are scaled to the full range, round(x × 255 / max); palettes are looked up;
// alpha is dropped, never blended: pixels keep the colours that the file
// stores, also where they are transparent. Damage is an error, never a guess.
//
// Codecs have no state; all functions are thread-safe. Nothing is printed: a
// library's messages become part of the error. Limits are checked before
// anything that depends on the image's size is allocated.
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
  int orientation = 1;  // from EXIF, 1 … 8
  int channels = 3;     // of the decoded image: 1 (gray) or 3 (R, G, B)
  // Roughly how much memory decoding takes beyond its result, where that
  // depends on the image's size.
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
  // Reads the header without decoding. kInvalidArgument: a kind that is not
  // supported. kDataLoss: damaged or cut off. kResourceExhausted: over a limit,
  // or, as a fault of the worker, there is too little memory.
  // REQUIRES: recognises(file).
  absl::StatusOr<ImageHeader> (*read_header)(std::span<const std::byte> file,
                                             const ImageLimits& limits);
  // Writes header.bytes() bytes, rows from the top, dense. Errors are those of
  // read_header; the contents of `out` are then unspecified.
  // REQUIRES: read_header made `header` from the same bytes and limits.
  absl::Status (*decode)(std::span<const std::byte> file,
                         const ImageHeader& header, const ImageLimits& limits,
                         uint8_t* out);
};

extern const Codec kPng;
extern const Codec kWebp;
extern const Codec kBmp;
extern const Codec kTiff;
extern const Codec kJpeg2000;

// Returns the codec that recognises the bytes; nullptr if none does, or if they
// are a JPEG.
const Codec* FindCodec(std::span<const std::byte> file);

// The same, for a worker that decodes `formats`. kInvalidArgument: no codec
// recognises the bytes. kFailedPrecondition, a fault of the worker
// (core/cluster/fault.h): the format is switched off; the text names the format
// and the flag.
absl::StatusOr<const Codec*> FindCodec(std::span<const std::byte> file,
                                       const ImageFormats& formats);

// True if `file` begins as a JPEG does. JpegDecoder decodes such bytes.
bool IsJpeg(std::span<const std::byte> file);

// Returns kInvalidArgument, which says what the bytes look like and which
// formats are accepted.
absl::Status UnknownImage(std::span<const std::byte> file);

// --- For codecs -------------------------------------------------------------

// kResourceExhausted: a side or the pixels exceed the limit. kDataLoss: empty.
absl::Status CheckImageSize(const char* name, uint64_t width, uint64_t height,
                            const ImageLimits& limits);
// kResourceExhausted: decoding takes more memory than a thread may use.
absl::Status CheckCodecMemory(const char* name, uint64_t bytes,
                              const ImageLimits& limits);

// Tells whether a library got no memory since this object was made. Libraries
// report that as they report damage, but malloc leaves it in errno, too.
class MallocWatch {
 public:
  MallocWatch();
  // Returns `status`. If it is an error and memory was missing, returns
  // kResourceExhausted instead, a fault of the worker.
  absl::Status Verdict(absl::Status status) const;
};

// value × 255 / max, to the nearest. REQUIRES: value <= max < 2^32, max > 0.
inline uint8_t ScaledToByte(uint64_t value, uint64_t max) {
  return static_cast<uint8_t>((value * 510 + max) / (2 * max));
}

// Numbers in a file's bytes. REQUIRES: the bytes are inside the file.
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
