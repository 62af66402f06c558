// SPDX-License-Identifier: Apache-2.0
//
// A BMP decoder of our own: 1, 2, 4, 8, 16, 24 and 32 bits, bottom-up and
// top-down, RLE4 and RLE8, bit fields.
//
// A file consists of a header of 14 bytes (at 10: where the pixels begin), one
// of 12 (OS/2) or of 40 and more bytes, masks or a palette, and pixels. Rows
// are padded to 4 bytes. In run-length data, 0 begins an escape: 0 0 ends the
// row, 0 1 ends the image, 0 2 x y moves on, 0 n is followed by n pixels,
// padded to 2 bytes; any other pair is a length and the repeated value. Skipped
// pixels have colour 0 of the palette. A channel's bits are scaled to the full
// range.
#include <array>
#include <bit>
#include <cstring>
#include <vector>

#include "core/status.h"
#include "worker/image/codecs/codec.h"

namespace leat::worker {
namespace {

using Bytes = std::span<const std::byte>;

constexpr size_t kFileHeader = 14;
constexpr uint32_t kOs2Header = 12;

enum Compression : uint32_t {
  kNone = 0,
  kRle8 = 1,
  kRle4 = 2,
  kBitFields = 3,
  kAlphaBitFields = 6,
};

struct BmpLayout {
  int64_t width = 0, height = 0;
  bool top_down = false;
  uint32_t bits = 0;
  uint32_t compression = kNone;
  size_t pixels_at = 0;
  size_t palette_at = 0, palette_entry = 4, palette_size = 0;
  std::array<uint32_t, 3> masks{};  // R, G, B

  size_t row_bytes() const {
    return (static_cast<size_t>(width) * bits + 31) / 32 * 4;
  }
  bool run_length() const {
    return compression == kRle8 || compression == kRle4;
  }
};

bool RecognisesBmp(Bytes file) { return BytesAre(file, 0, "BM"); }

absl::Status CheckKind(const BmpLayout& layout) {
  const uint32_t bits = layout.bits;
  bool good = false;
  switch (layout.compression) {
    case kNone:
      good = bits == 1 || bits == 2 || bits == 4 || bits == 8 || bits == 16 ||
             bits == 24 || bits == 32;
      break;
    case kRle8:
      good = bits == 8 && !layout.top_down;
      break;
    case kRle4:
      good = bits == 4 && !layout.top_down;
      break;
    case kBitFields:
    case kAlphaBitFields:
      good = bits == 16 || bits == 32;
      break;
    default:
      break;
  }
  if (good) return absl::OkStatus();
  return InvalidArgument(
      "BMP of {} bits a pixel with compression {} is not supported", bits,
      layout.compression);
}

// Finds the masks or the palette after the header.
absl::Status ReadColours(Bytes file, size_t header_bytes, BmpLayout* layout) {
  size_t end = kFileHeader + header_bytes;
  if (layout->bits == 16)
    layout->masks = {0x7c00, 0x03e0, 0x001f};
  else if (layout->bits == 32)
    layout->masks = {0xff0000, 0x00ff00, 0x0000ff};
  if (layout->compression == kBitFields ||
      layout->compression == kAlphaBitFields) {
    // The masks lie inside the larger headers, and follow the one of 40 bytes.
    constexpr size_t kMasksAt = kFileHeader + 40;
    if (kMasksAt + 12 > file.size())
      return DataLoss("truncated BMP: {} bytes", file.size());
    for (size_t i = 0; i < 3; ++i)
      layout->masks[i] = LittleEndian(file, kMasksAt + 4 * i, 4);
    if (header_bytes == 40) end += layout->compression == kBitFields ? 12 : 16;
  }
  if (layout->bits > 8) return absl::OkStatus();
  layout->palette_at = end;
  layout->palette_size = size_t{1} << layout->bits;
  if (header_bytes == kOs2Header) {
    layout->palette_entry = 3;
  } else if (const size_t used = LittleEndian(file, 46, 4); used != 0) {
    layout->palette_size = std::min(layout->palette_size, used);
  }
  // Some files have a smaller palette than they claim.
  if (layout->pixels_at > end)
    layout->palette_size =
        std::min(layout->palette_size,
                 (layout->pixels_at - end) / layout->palette_entry);
  if (end + layout->palette_size * layout->palette_entry > file.size())
    return DataLoss("truncated BMP: {} bytes", file.size());
  return absl::OkStatus();
}

absl::StatusOr<BmpLayout> ReadLayout(Bytes file, const ImageLimits& limits) {
  if (file.size() < kFileHeader + kOs2Header)
    return DataLoss("truncated BMP: {} bytes", file.size());
  const size_t header_bytes = LittleEndian(file, kFileHeader, 4);
  if (header_bytes != kOs2Header && (header_bytes < 40 || header_bytes > 124))
    return InvalidArgument("BMP has a header of {} bytes, want 12 or 40 to 124",
                           header_bytes);
  if (file.size() < kFileHeader + header_bytes)
    return DataLoss("truncated BMP: {} bytes", file.size());
  BmpLayout layout;
  layout.pixels_at = LittleEndian(file, 10, 4);
  if (header_bytes == kOs2Header) {
    layout.width = LittleEndian(file, 18, 2);
    layout.height = LittleEndian(file, 20, 2);
    layout.bits = LittleEndian(file, 24, 2);
  } else {
    layout.width = static_cast<int32_t>(LittleEndian(file, 18, 4));
    layout.height = static_cast<int32_t>(LittleEndian(file, 22, 4));
    layout.bits = LittleEndian(file, 28, 2);
    layout.compression = LittleEndian(file, 30, 4);
  }
  layout.top_down = layout.height < 0;
  if (layout.top_down) layout.height = -layout.height;
  if (layout.width < 0) layout.width = 0;
  RETURN_IF_ERROR(CheckImageSize("BMP", static_cast<uint64_t>(layout.width),
                                 static_cast<uint64_t>(layout.height), limits));
  RETURN_IF_ERROR(CheckKind(layout));
  RETURN_IF_ERROR(ReadColours(file, header_bytes, &layout));
  if (layout.pixels_at > file.size() ||
      (!layout.run_length() &&
       (file.size() - layout.pixels_at) / layout.row_bytes() <
           static_cast<size_t>(layout.height)))
    return DataLoss(
        "truncated BMP: {} bytes, want {} rows of {} from byte {} on",
        file.size(), layout.height, layout.row_bytes(), layout.pixels_at);
  return layout;
}

absl::StatusOr<ImageHeader> ReadBmpHeader(Bytes file,
                                          const ImageLimits& limits) {
  ASSIGN_OR_RETURN(const BmpLayout layout, ReadLayout(file, limits));
  return ImageHeader{.size = {layout.height, layout.width}, .channels = 3};
}

using Palette = std::array<std::array<uint8_t, 3>, 256>;

Palette ReadPalette(Bytes file, const BmpLayout& layout) {
  Palette palette{};  // missing entries are black
  for (size_t i = 0; i < layout.palette_size; ++i)
    for (size_t c = 0; c < 3; ++c)
      palette[i][c] = static_cast<uint8_t>(
          file[layout.palette_at + i * layout.palette_entry + 2 - c]);
  return palette;
}

// One channel of a pixel of 16 or 32 bits.
struct BitField {
  uint32_t mask = 0, max = 0;
  int shift = 0;
  explicit BitField(uint32_t bits) : mask(bits) {
    if (mask == 0) return;
    shift = std::countr_zero(mask);
    max = mask >> shift;
  }
  uint8_t Of(uint32_t pixel) const {
    return max == 0 ? 0 : ScaledToByte((pixel & mask) >> shift, max);
  }
};

void DecodeRow(const BmpLayout& layout, const Palette& palette,
               const BitField fields[3], const uint8_t* row, uint8_t* out) {
  const uint32_t bits = layout.bits;
  for (int64_t x = 0; x < layout.width; ++x, out += 3) {
    if (bits <= 8) {
      const size_t bit = static_cast<size_t>(x) * bits;
      const uint32_t index =
          row[bit / 8] >> (8 - bits - bit % 8) & ((1u << bits) - 1);
      memcpy(out, palette[index].data(), 3);
    } else if (bits == 24) {
      for (int c = 0; c < 3; ++c) out[c] = row[3 * x + 2 - c];
    } else {
      const uint8_t* p = row + x * (bits / 8);
      uint32_t pixel = p[0] | uint32_t{p[1]} << 8;
      if (bits == 32) pixel |= uint32_t{p[2]} << 16 | uint32_t{p[3]} << 24;
      for (int c = 0; c < 3; ++c) out[c] = fields[c].Of(pixel);
    }
  }
}

// Decodes run-length data, two bytes at a time; coordinates count from the
// bottom left.
class RunReader {
 public:
  RunReader(Bytes data, const BmpLayout& layout, const Palette& palette,
            uint8_t* out)
      : data_(data), layout_(layout), palette_(palette), out_(out) {}

  absl::Status Run() {
    while (at_ + 2 <= data_.size()) {
      const uint32_t count = Byte(at_), value = Byte(at_ + 1);
      at_ += 2;
      if (count > 0) {
        for (uint32_t i = 0; i < count; ++i) Put(Index(value, i));
      } else if (value == 0) {
        x_ = 0;
        ++y_;
      } else if (value == 1) {
        return absl::OkStatus();
      } else if (value == 2) {
        if (at_ + 2 > data_.size()) break;
        x_ += Byte(at_);
        y_ += Byte(at_ + 1);
        at_ += 2;
      } else {
        const size_t bytes = layout_.bits == 8 ? value : (value + 1) / 2;
        if (bytes > data_.size() - at_) break;
        for (uint32_t i = 0; i < value; ++i)
          Put(layout_.bits == 8 ? Byte(at_ + i) : Index(Byte(at_ + i / 2), i));
        at_ += (bytes + 1) / 2 * 2;
      }
      if (outside_)
        return DataLoss("damaged BMP: a run leads out of the image");
    }
    return DataLoss("truncated BMP: run-length data without an end");
  }

 private:
  uint32_t Byte(size_t at) const { return static_cast<uint8_t>(data_[at]); }
  // The high half of a byte is the first of its two pixels.
  uint32_t Index(uint32_t value, uint32_t i) const {
    return layout_.bits == 8 ? value : i % 2 == 0 ? value >> 4 : value & 15;
  }
  void Put(uint32_t index) {
    // Runs may fill up the row's padding.
    if (x_ >= (layout_.width + 3) / 4 * 4 || y_ >= layout_.height) {
      outside_ = true;
      return;
    }
    if (x_ < layout_.width)
      memcpy(out_ + ((layout_.height - 1 - y_) * layout_.width + x_) * 3,
             palette_[index].data(), 3);
    ++x_;
  }

  const Bytes data_;
  const BmpLayout& layout_;
  const Palette& palette_;
  uint8_t* const out_;
  size_t at_ = 0;
  int64_t x_ = 0, y_ = 0;
  bool outside_ = false;
};

absl::Status DecodeBmp(Bytes file, const ImageHeader& header,
                       const ImageLimits& limits, uint8_t* out) {
  ASSIGN_OR_RETURN(const BmpLayout layout, ReadLayout(file, limits));
  const Palette palette = ReadPalette(file, layout);
  const Bytes pixels = file.subspan(layout.pixels_at);
  if (layout.run_length()) {
    for (size_t i = 0; i < header.bytes(); i += 3)
      memcpy(out + i, palette[0].data(), 3);
    return RunReader(pixels, layout, palette, out).Run();
  }
  const BitField fields[3] = {BitField(layout.masks[0]),
                              BitField(layout.masks[1]),
                              BitField(layout.masks[2])};
  const auto* rows = reinterpret_cast<const uint8_t*>(pixels.data());
  for (int64_t y = 0; y < layout.height; ++y) {
    const int64_t row = layout.top_down ? y : layout.height - 1 - y;
    DecodeRow(layout, palette, fields, rows + row * layout.row_bytes(),
              out + y * layout.width * 3);
  }
  return absl::OkStatus();
}

}  // namespace

const Codec kBmp = {"BMP", ImageFormat::kBmp, RecognisesBmp, ReadBmpHeader,
                    DecodeBmp};

}  // namespace leat::worker
