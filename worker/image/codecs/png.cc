// SPDX-License-Identifier: Apache-2.0
//
// PNG, by libpng; interlaced or not, 1 to 16 bits. For an APNG, the default
// image is decoded.
//
// The chunks are walked first, without libpng: a length that exceeds the file,
// or a missing end, is an error before anything is decoded. Orientation comes
// from the eXIf chunk. libpng only checks the sums of ancillary chunks, so that
// no text or profile is ever inflated. Gamma is left as it is.
//
// libpng reports errors by a function that must not return: ours jumps back
// into ReadPixels, which has no object with a destructor.
#include <png.h>

#include <csetjmp>
#include <cstdint>
#include <cstring>
#include <optional>

#include "core/cluster/fault.h"
#include "core/status.h"
#include "worker/image/codecs/codec.h"
#include "worker/image/jpeg/scan/header.h"

namespace leat::worker {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::string_view kMagic("\x89PNG\r\n\x1a\n", 8);
constexpr size_t kChunkOverhead = 12;  // length, type, checksum
// With the last row libpng inflates all remaining image data, and a byte can
// expand to a thousand. So a row may read as many bytes as it has when
// unpacked, four times that for tiny chunks, and this many more.
constexpr size_t kMostBehindRow = 64 << 10;
constexpr size_t kMostPixelBytes = 8;

bool RecognisesPng(Bytes file) { return BytesAre(file, 0, kMagic); }

// Gray has one channel, whatever else the file has.
std::optional<int> ChannelsOf(uint32_t color_type) {
  switch (color_type) {
    case PNG_COLOR_TYPE_GRAY:
    case PNG_COLOR_TYPE_GRAY_ALPHA:
      return 1;
    case PNG_COLOR_TYPE_RGB:
    case PNG_COLOR_TYPE_RGB_ALPHA:
    case PNG_COLOR_TYPE_PALETTE:
      return 3;
    default:
      return std::nullopt;
  }
}

absl::StatusOr<ImageHeader> ReadPngHeader(Bytes file,
                                          const ImageLimits& limits) {
  constexpr size_t kHeaderEnd = 8 + kChunkOverhead + 13;
  if (file.size() < kHeaderEnd)
    return DataLoss("truncated PNG: {} bytes, want a header of {}", file.size(),
                    kHeaderEnd);
  if (BigEndian(file, 8, 4) != 13 || !BytesAre(file, 12, "IHDR"))
    return DataLoss("damaged PNG: it does not begin with an IHDR chunk");
  const uint32_t width = BigEndian(file, 16, 4);
  const uint32_t height = BigEndian(file, 20, 4);
  RETURN_IF_ERROR(CheckImageSize("PNG", width, height, limits));
  const std::optional<int> channels = ChannelsOf(BigEndian(file, 25, 1));
  if (!channels)
    return DataLoss("damaged PNG: no colour type is {}",
                    BigEndian(file, 25, 1));
  ImageHeader header{.size = {height, width}, .channels = *channels};
  for (size_t at = 8; at + kChunkOverhead <= file.size();) {
    const uint64_t length = BigEndian(file, at, 4);
    if (length > file.size() - at - kChunkOverhead) break;
    if (BytesAre(file, at + 4, "IEND")) return header;
    if (BytesAre(file, at + 4, "eXIf"))
      header.orientation = TiffOrientation(file.subspan(at + 8, length));
    at += kChunkOverhead + length;
  }
  return DataLoss("truncated PNG: premature end of the file ({} bytes)",
                  file.size());
}

struct Reader {
  jmp_buf jump;
  Bytes rest;
  size_t left = SIZE_MAX;  // bytes that may still be read for the row
  png_structp png = nullptr;
  png_infop info = nullptr;
  char text[160] = {};
};

[[noreturn]] void OnError(png_structp png, png_const_charp text) {
  auto* reader = static_cast<Reader*>(png_get_error_ptr(png));
  strncpy(reader->text, text, sizeof reader->text - 1);
  std::longjmp(reader->jump, 1);
}

// libpng only warns of the image data's own sum if that is behind the bytes that
// the last row took.
void OnWarning(png_structp png, png_const_charp text) {
  if (strstr(text, "incorrect data check") != nullptr) png_error(png, text);
}

void OnRead(png_structp png, png_bytep to, size_t size) {
  auto* reader = static_cast<Reader*>(png_get_io_ptr(png));
  if (size > reader->rest.size()) png_error(png, "premature end of the file");
  if (size > reader->left) png_error(png, "image data go on behind the rows");
  if (reader->left != SIZE_MAX) reader->left -= size;
  memcpy(to, reader->rest.data(), size);
  reader->rest = reader->rest.subspan(size);
}

// Returns false on an error; reader->text then says why.
bool ReadPixels(Reader* reader, size_t row_bytes, uint32_t height,
                uint8_t* out) {
  if (setjmp(reader->jump) != 0) return false;
  png_structp png = reader->png;
  png_set_read_fn(png, reader, OnRead);
  png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // were checked
  png_set_crc_action(png, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  png_read_info(png, reader->info);
  png_set_expand_gray_1_2_4_to_8(png);
  if (png_get_color_type(png, reader->info) == PNG_COLOR_TYPE_PALETTE)
    png_set_palette_to_rgb(png);
  png_set_scale_16(png);
  png_set_strip_alpha(png);
  const int passes = png_set_interlace_handling(png);
  png_read_update_info(png, reader->info);
  if (png_get_rowbytes(png, reader->info) != row_bytes ||
      png_get_image_height(png, reader->info) != height)
    png_error(png, "its header is not what it was");
  const size_t most =
      4 * kMostPixelBytes *
          static_cast<size_t>(png_get_image_width(png, reader->info)) +
      kMostBehindRow;
  for (int pass = 0; pass < passes; ++pass)
    for (uint32_t y = 0; y < height; ++y) {
      reader->left = most;
      png_read_row(png, out + y * row_bytes, nullptr);
    }
  reader->left = SIZE_MAX;  // for the chunks after the image data
  png_read_end(png, nullptr);
  return true;
}

absl::Status DecodePng(Bytes file, const ImageHeader& header,
                       const ImageLimits&, uint8_t* out) {
  const MallocWatch memory;
  Reader reader;
  reader.rest = file;
  reader.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &reader, OnError,
                                      OnWarning);
  if (reader.png == nullptr)
    return WithFault(ResourceExhausted("PNG: out of memory"), Fault::kWorker);
  reader.info = png_create_info_struct(reader.png);
  const bool good =
      reader.info != nullptr &&
      ReadPixels(&reader,
                 static_cast<size_t>(header.size.width) * header.channels,
                 static_cast<uint32_t>(header.size.height), out);
  png_destroy_read_struct(&reader.png, &reader.info, nullptr);
  if (good) return absl::OkStatus();
  return memory.Verdict(DataLoss("damaged PNG: {}", reader.text));
}

}  // namespace

const Codec kPng = {"PNG", ImageFormat::kPng, RecognisesPng, ReadPngHeader,
                    DecodePng};

}  // namespace leat::worker
