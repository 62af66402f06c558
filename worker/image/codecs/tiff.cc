// SPDX-License-Identifier: Apache-2.0
//
// TIFF and BigTIFF, by libtiff: the first image of the file; gray (black or
// white first), RGB, palette, CMYK, and YCbCr where JPEG-compressed; 1, 2, 4, 8
// and 16 bits, unsigned; strips or tiles, channels together or apart.
//
// Samples are read as stored and scaled here: libtiff's own RGBA reader would
// multiply by alpha. CMYK becomes RGB by (255 - ink) × (255 - black) / 255.
// Compressions are those of kCompressions: for others, the file decides how
// much memory a decoder takes. A warning of libtiff while it decodes is damage;
// one about the directory (unknown tags) is not. tiff_structure.h checks the
// file before libtiff reads it.
#include <tiffio.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "core/freed.h"
#include "core/status.h"
#include "worker/image/codecs/codec.h"
#include "worker/image/codecs/tiff_memory.h"
#include "worker/image/codecs/tiff_structure.h"
#include "worker/image/formulas/pixel.h"

namespace leat::worker {
namespace {

using Bytes = std::span<const std::byte>;

constexpr uint16_t kCompressions[] = {
    COMPRESSION_NONE,      COMPRESSION_CCITTRLE,      COMPRESSION_CCITTFAX3,
    COMPRESSION_CCITTFAX4, COMPRESSION_LZW,           COMPRESSION_JPEG,
    COMPRESSION_PACKBITS,  COMPRESSION_ADOBE_DEFLATE, COMPRESSION_DEFLATE,
    COMPRESSION_ZSTD};
// The most that libtiff may allocate at once, for tables and for rows.
constexpr tmsize_t kMaxAllocation = tmsize_t{256} << 20;

// The first error and the first warning of libtiff.
struct Messages {
  std::string error, warning;
};

int Keep(std::string* text, const char* format, va_list args) {
  char buffer[200];
  vsnprintf(buffer, sizeof buffer, format, args);
  if (text->empty()) *text = buffer;
  return 1;  // nothing is printed
}
int OnError(TIFF*, void* messages, const char*, const char* format,
            va_list args) {
  return Keep(&static_cast<Messages*>(messages)->error, format, args);
}
int OnWarning(TIFF*, void* messages, const char*, const char* format,
              va_list args) {
  return Keep(&static_cast<Messages*>(messages)->warning, format, args);
}

struct TiffLayout {
  uint32_t width = 0, height = 0;
  uint16_t bits = 1, samples = 1, photometric = 0, compression = 0;
  uint16_t orientation = 1;
  bool planar = false, tiled = false;
  uint32_t unit_width = 0, unit_height = 0;  // of a tile or strip
  uint64_t unit_bytes = 0, unit_row_bytes = 0;

  // Returns how many samples per pixel are used; alpha follows them.
  int wanted() const {
    switch (photometric) {
      case PHOTOMETRIC_RGB:
      case PHOTOMETRIC_YCBCR:
        return 3;
      case PHOTOMETRIC_SEPARATED:
        return 4;
      default:
        return 1;
    }
  }
  bool palette() const { return photometric == PHOTOMETRIC_PALETTE; }
  // Returns the number of strips or tiles. REQUIRES: no side of one is 0.
  uint64_t units() const {
    return (uint64_t{width} + unit_width - 1) / unit_width *
           ((uint64_t{height} + unit_height - 1) / unit_height) *
           static_cast<uint64_t>(planar ? wanted() : 1);
  }
  int channels() const { return wanted() == 1 && !palette() ? 1 : 3; }
};

class TiffFile {
 public:
  explicit TiffFile(Bytes bytes) : memory_{bytes} {
    TIFFOpenOptions* options = TIFFOpenOptionsAlloc();
    if (options == nullptr) return;
    TIFFOpenOptionsSetMaxSingleMemAlloc(options, kMaxAllocation);
    TIFFOpenOptionsSetErrorHandlerExtR(options, OnError, &messages_);
    TIFFOpenOptionsSetWarningHandlerExtR(options, OnWarning, &messages_);
    tiff_.reset(memory_.Open(options));
    TIFFOpenOptionsFree(options);
  }
  // libtiff points to memory_ and messages_.
  TiffFile(const TiffFile&) = delete;
  TiffFile& operator=(const TiffFile&) = delete;

  absl::Status Read(const ImageLimits& limits);
  const TiffLayout& layout() const { return layout_; }
  // Beside a strip or tile as it is stored and as pixels, libtiff has a copy of
  // its bytes if their bits must be turned. REQUIRES: as for Decode.
  uint64_t working_bytes() const {
    const bool turned = Get<uint16_t>(TIFFTAG_FILLORDER, FILLORDER_MSB2LSB) ==
                        FILLORDER_LSB2MSB;
    return layout_.unit_bytes * 2 + (turned ? memory_.bytes.size() : 0);
  }
  // REQUIRES: Read succeeded.
  absl::Status Decode(uint8_t* out);

 private:
  template <class T>
  T Get(uint32_t tag, T missing) const {
    T value{};
    return TIFFGetFieldDefaulted(tiff_.get(), tag, &value) ? value : missing;
  }
  absl::Status Damaged() const {
    return DataLoss("damaged TIFF: {}", !messages_.error.empty()
                                            ? messages_.error
                                            : messages_.warning);
  }
  absl::Status CheckKind();
  absl::Status ReadUnits(const ImageLimits& limits);
  absl::Status CheckStored();
  absl::Status CheckStored(uint32_t index, uint64_t* named);
  absl::Status ReadPalette();
  // Calls `call` with the planes, rows and columns where strips or tiles begin.
  template <class Call>
  absl::Status ForEachUnit(const Call& call);
  // Returns the number of the strip or tile whose first pixel is (x, y). In a
  // volume, those of all slices of a plane follow one another.
  uint32_t UnitAt(uint32_t x, uint32_t y, int plane) const {
    const auto sample = static_cast<uint16_t>(plane);
    return layout_.tiled ? TIFFComputeTile(tiff_.get(), x, y, 0, sample)
                         : TIFFComputeStrip(tiff_.get(), y, sample);
  }
  absl::Status DecodeUnit(uint32_t x, uint32_t y, int plane, uint8_t* out);
  void Unpack(const uint8_t* row, uint32_t pixels, int plane,
              uint8_t* out) const;

  TiffMemory memory_;
  Messages messages_;
  std::unique_ptr<TIFF, Freed<TIFFClose>> tiff_;
  TiffLayout layout_;
  std::array<uint8_t, 256> to_byte_{};  // a sample of up to 8 bits, scaled
  std::array<std::array<uint8_t, 3>, 256> palette_{};
  std::vector<uint8_t> unit_;
};

absl::Status TiffFile::Read(const ImageLimits& limits) {
  if (tiff_ == nullptr) return Damaged();
  TiffLayout& l = layout_;
  l.width = Get<uint32_t>(TIFFTAG_IMAGEWIDTH, 0);
  l.height = Get<uint32_t>(TIFFTAG_IMAGELENGTH, 0);
  RETURN_IF_ERROR(CheckImageSize("TIFF", l.width, l.height, limits));
  RETURN_IF_ERROR(CheckKind());
  RETURN_IF_ERROR(ReadUnits(limits));
  const uint32_t max = (1u << std::min<int>(l.bits, 8)) - 1;
  for (uint32_t i = 0; i <= max; ++i) {
    const uint8_t scaled = ScaledToByte(i, max);
    to_byte_[i] =
        l.photometric == PHOTOMETRIC_MINISWHITE ? 255 - scaled : scaled;
  }
  return l.palette() ? ReadPalette() : absl::OkStatus();
}

absl::Status TiffFile::CheckKind() {
  TiffLayout& l = layout_;
  l.bits = Get<uint16_t>(TIFFTAG_BITSPERSAMPLE, 1);
  l.samples = Get<uint16_t>(TIFFTAG_SAMPLESPERPIXEL, 1);
  l.compression = Get<uint16_t>(TIFFTAG_COMPRESSION, COMPRESSION_NONE);
  l.planar = Get<uint16_t>(TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG) ==
             PLANARCONFIG_SEPARATE;
  l.orientation = Get<uint16_t>(TIFFTAG_ORIENTATION, 1);
  if (l.orientation < 1 || l.orientation > 8) l.orientation = 1;
  const auto guessed =
      l.samples >= 3 ? PHOTOMETRIC_RGB : PHOTOMETRIC_MINISBLACK;
  l.photometric = Get<uint16_t>(TIFFTAG_PHOTOMETRIC, guessed);
  if (std::find(std::begin(kCompressions), std::end(kCompressions),
                l.compression) == std::end(kCompressions) ||
      !TIFFIsCODECConfigured(l.compression))
    return InvalidArgument("TIFF with compression {} is not supported",
                           l.compression);
  const auto format = Get<uint16_t>(TIFFTAG_SAMPLEFORMAT, SAMPLEFORMAT_UINT);
  bool good =
      l.bits == 8 || l.bits == 16 || l.bits == 1 || l.bits == 2 || l.bits == 4;
  good &= format == SAMPLEFORMAT_UINT || format == SAMPLEFORMAT_VOID;
  switch (l.photometric) {
    case PHOTOMETRIC_MINISWHITE:
    case PHOTOMETRIC_MINISBLACK:
    case PHOTOMETRIC_RGB:
      break;
    case PHOTOMETRIC_PALETTE:
      good &= l.bits <= 8;
      break;
    case PHOTOMETRIC_SEPARATED:
      good &= l.bits >= 8 && !l.planar &&
              Get<uint16_t>(TIFFTAG_INKSET, INKSET_CMYK) == INKSET_CMYK;
      break;
    case PHOTOMETRIC_YCBCR:
      // libjpeg, inside libtiff, converts it to RGB.
      good &= l.compression == COMPRESSION_JPEG && !l.planar && l.bits == 8 &&
              TIFFSetField(tiff_.get(), TIFFTAG_JPEGCOLORMODE,
                           JPEGCOLORMODE_RGB) == 1;
      break;
    default:
      good = false;
  }
  if (!good || l.samples < l.wanted() || l.samples > 64)
    return InvalidArgument(
        "TIFF of {} × {} bits, sample format {}, photometric {}, {}planes is "
        "not supported",
        l.samples, l.bits, format, l.photometric, l.planar ? "" : "no ");
  return absl::OkStatus();
}

// Reads the sizes of strips or tiles, which are decoded one at a time.
absl::Status TiffFile::ReadUnits(const ImageLimits& limits) {
  TiffLayout& l = layout_;
  TIFF* const tiff = tiff_.get();
  l.tiled = TIFFIsTiled(tiff) != 0;
  if (l.tiled) {
    l.unit_width = Get<uint32_t>(TIFFTAG_TILEWIDTH, 0);
    l.unit_height = Get<uint32_t>(TIFFTAG_TILELENGTH, 0);
    l.unit_bytes = TIFFTileSize64(tiff);
    l.unit_row_bytes = TIFFTileRowSize64(tiff);
    // TIFF 6.0 demands multiples of 16; smaller tiles could be very many.
    if (l.unit_width < 16 || l.unit_height < 16)
      return DataLoss("damaged TIFF: its tiles are {} × {}, want at least 16",
                      l.unit_width, l.unit_height);
    if (uint64_t{l.unit_width} * l.unit_height > limits.max_pixels)
      return ResourceExhausted("TIFF has tiles over the limit of {} pixels",
                               limits.max_pixels);
  } else {
    l.unit_width = l.width;
    l.unit_height =
        std::min(l.height, Get<uint32_t>(TIFFTAG_ROWSPERSTRIP, l.height));
    if (l.unit_height == 0) return DataLoss("damaged TIFF: strips of no rows");
    l.unit_row_bytes = TIFFScanlineSize64(tiff);
    l.unit_bytes = l.unit_row_bytes * l.unit_height;
  }
  const uint64_t row_bits =
      uint64_t{l.unit_width} * l.bits * (l.planar ? 1 : l.samples);
  if (l.unit_row_bytes < (row_bits + 7) / 8 ||
      l.unit_bytes / l.unit_height < l.unit_row_bytes)
    return messages_.error.empty()
               ? DataLoss("damaged TIFF: rows of {} bytes, want {}",
                          l.unit_row_bytes, (row_bits + 7) / 8)
               : Damaged();
  RETURN_IF_ERROR(
      CheckTiffWork(l.units(), l.unit_height, l.unit_row_bytes, limits));
  return CheckCodecMemory("TIFF", l.unit_bytes * 2, limits);
}

template <class Call>
absl::Status TiffFile::ForEachUnit(const Call& call) {
  const TiffLayout& l = layout_;
  const int planes = l.planar ? l.wanted() : 1;
  for (int plane = 0; plane < planes; ++plane)
    for (uint32_t y = 0; y < l.height; y += l.unit_height)
      for (uint32_t x = 0; x < l.width; x += l.unit_width)
        RETURN_IF_ERROR(call(plane, y, x));
  return absl::OkStatus();
}

// Checks the stored bytes, and that strips or tiles do not all name the same.
absl::Status TiffFile::CheckStored() {
  uint64_t named = 0;
  return ForEachUnit([&](int plane, uint32_t y, uint32_t x) {
    return CheckStored(UnitAt(x, y, plane), &named);
  });
}

// `named`: the bytes that strips or tiles have named so far.
absl::Status TiffFile::CheckStored(uint32_t index, uint64_t* named) {
  const Bytes file = memory_.bytes;
  const uint64_t at = TIFFGetStrileOffset(tiff_.get(), index);
  const uint64_t bytes = TIFFGetStrileByteCount(tiff_.get(), index);
  if (!messages_.error.empty()) return Damaged();
  if (at > file.size() || bytes > file.size() - at)
    return absl::OkStatus();  // is not read
  *named += bytes;
  if (*named > 2 * file.size())  // the check of a JPEG reads them as often
    return DataLoss("damaged TIFF: its {} name {} bytes, of a file of {}",
                    layout_.tiled ? "tiles" : "strips", *named, file.size());
  return layout_.compression == COMPRESSION_JPEG
             ? CheckTiffJpeg(file.subspan(at, bytes))
             : absl::OkStatus();
}

absl::Status TiffFile::ReadPalette() {
  uint16_t* maps[3] = {};
  if (!TIFFGetField(tiff_.get(), TIFFTAG_COLORMAP, &maps[0], &maps[1],
                    &maps[2]))
    return DataLoss("damaged TIFF: no colour map");
  const size_t size = size_t{1} << layout_.bits;
  // Some writers store 8 bits per colour.
  bool narrow = true;
  for (const uint16_t* map : maps)
    for (size_t i = 0; i < size; ++i) narrow &= map[i] < 256;
  for (size_t i = 0; i < size; ++i)
    for (size_t c = 0; c < 3; ++c)
      palette_[i][c] = narrow ? static_cast<uint8_t>(maps[c][i])
                              : ScaledToByte(maps[c][i], 65535);
  return absl::OkStatus();
}

// Unpacks `pixels` pixels of a row of a unit, to `plane` or to all channels.
void TiffFile::Unpack(const uint8_t* row, uint32_t pixels, int plane,
                      uint8_t* out) const {
  const TiffLayout& l = layout_;
  const size_t step = l.planar ? 1 : l.samples;
  const int count = l.planar ? 1 : l.wanted();
  const auto sample = [&](size_t i) -> uint8_t {
    if (l.bits == 8) return row[i];
    if (l.bits < 8) {
      const size_t bit = i * l.bits;
      return row[bit / 8] >> (8 - l.bits - bit % 8) & ((1u << l.bits) - 1);
    }
    uint16_t value;
    memcpy(&value, row + 2 * i, sizeof value);
    const uint8_t byte = ScaledToByte(value, 65535);
    return l.photometric == PHOTOMETRIC_MINISWHITE ? 255 - byte : byte;
  };
  const bool scaled = l.bits == 16;
  const int channels = l.channels();
  for (uint32_t x = 0; x < pixels; ++x, out += channels) {
    if (l.palette()) {
      memcpy(out, palette_[sample(x * step)].data(), 3);
      continue;
    }
    uint8_t values[4] = {};
    for (int c = 0; c < count; ++c) {
      const uint8_t value = sample(x * step + c);
      values[c] = scaled ? value : to_byte_[value];
    }
    if (l.photometric == PHOTOMETRIC_SEPARATED) {
      for (uint8_t& ink : values) ink = 255 - ink;
      CmykToRgb(values, out);
    } else {
      memcpy(out + (l.planar ? plane : 0), values, static_cast<size_t>(count));
    }
  }
}

// Decodes the strip or tile whose first pixel is (x, y).
absl::Status TiffFile::DecodeUnit(uint32_t x, uint32_t y, int plane,
                                  uint8_t* out) {
  const TiffLayout& l = layout_;
  const uint32_t index = UnitAt(x, y, plane);
  const uint32_t rows = std::min(l.unit_height, l.height - y);
  const uint32_t columns = std::min(l.unit_width, l.width - x);
  const auto want =
      static_cast<tmsize_t>(l.tiled ? l.unit_bytes : rows * l.unit_row_bytes);
  const tmsize_t got =
      l.tiled ? TIFFReadEncodedTile(tiff_.get(), index, unit_.data(), want)
              : TIFFReadEncodedStrip(tiff_.get(), index, unit_.data(), want);
  if (!messages_.error.empty() || !messages_.warning.empty()) return Damaged();
  if (got < want)
    return DataLoss("truncated TIFF: {} bytes of {} in a {}", got, want,
                    l.tiled ? "tile" : "strip");
  const size_t pitch = size_t{l.width} * l.channels();
  uint8_t* to = out + y * pitch + size_t{x} * l.channels();
  for (uint32_t i = 0; i < rows; ++i, to += pitch)
    Unpack(unit_.data() + i * l.unit_row_bytes, columns, plane, to);
  return absl::OkStatus();
}

absl::Status TiffFile::Decode(uint8_t* out) {
  messages_ = {};
  RETURN_IF_ERROR(CheckStored());
  unit_.resize(layout_.unit_bytes);
  return ForEachUnit([&](int plane, uint32_t y, uint32_t x) {
    return DecodeUnit(x, y, plane, out);
  });
}

bool RecognisesTiff(Bytes file) {
  for (const std::string_view magic :
       {std::string_view("II*\0", 4), std::string_view("MM\0*", 4),
        std::string_view("II+\0", 4), std::string_view("MM\0+", 4)})
    if (BytesAre(file, 0, magic)) return true;
  return false;
}

absl::StatusOr<ImageHeader> ReadTiffHeader(Bytes file,
                                           const ImageLimits& limits) {
  RETURN_IF_ERROR(CheckTiffDirectory(file));
  const MallocWatch memory;
  TiffFile tiff(file);
  RETURN_IF_ERROR(memory.Verdict(tiff.Read(limits)));
  const TiffLayout& layout = tiff.layout();
  return ImageHeader{.size = {layout.height, layout.width},
                     .orientation = layout.orientation,
                     .channels = layout.channels(),
                     .working_bytes = tiff.working_bytes()};
}

absl::Status DecodeTiff(Bytes file, const ImageHeader&,
                        const ImageLimits& limits, uint8_t* out) {
  const MallocWatch memory;
  TiffFile tiff(file);
  RETURN_IF_ERROR(memory.Verdict(tiff.Read(limits)));
  return memory.Verdict(tiff.Decode(out));
}

}  // namespace

const Codec kTiff = {"TIFF", ImageFormat::kTiff, RecognisesTiff, ReadTiffHeader,
                     DecodeTiff};

}  // namespace leat::worker
