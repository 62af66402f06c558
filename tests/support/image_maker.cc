// SPDX-License-Identifier: Apache-2.0
#include "tests/support/image_maker.h"

#include <png.h>
#include <webp/encode.h>

#include <cstring>
#include <random>
#include <utility>

namespace leat::testing {
namespace {

std::string Number(uint64_t value, int bytes, bool big_endian) {
  std::string text;
  for (int i = 0; i < bytes; ++i)
    text += static_cast<char>(value >> 8 * (big_endian ? bytes - 1 - i : i));
  return text;
}
std::string Little(uint64_t value, int bytes) {
  return Number(value, bytes, false);
}

// A TIFF directory of one entry.
std::string Exif(int orientation) {
  return std::string("MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0", 19) +
         static_cast<char>(orientation) + std::string(6, '\0');
}

std::vector<uint8_t> Bytes(const Picture& picture) {
  return {picture.samples.begin(), picture.samples.end()};
}

}  // namespace

Picture MakePicture(int width, int height, int channels, int bits,
                    uint32_t seed) {
  Picture picture{width, height, channels, bits, {}};
  std::mt19937 random(seed);
  const int max = (1 << bits) - 1;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < channels; ++c) {
        const bool noise = (x / 8 + y / 8) % 3 == 0;
        const int slope = (x * (c + 2) + y * 3) * (max / 64 + 1);
        picture.samples.push_back(static_cast<uint16_t>(
            noise ? static_cast<int>(random() & max) : slope & max));
      }
  return picture;
}

uint8_t PaletteColour(int i, int channel) {
  return static_cast<uint8_t>(i * 37 + channel * 91 + (i * i >> 3));
}

std::vector<uint8_t> Expected(const Picture& picture, bool palette) {
  std::vector<uint8_t> bytes;
  const int colours = palette ? 3 : picture.channels < 3 ? 1 : 3;
  const double max = (1 << picture.bits) - 1;
  for (int y = 0; y < picture.height; ++y)
    for (int x = 0; x < picture.width; ++x)
      for (int c = 0; c < colours; ++c)
        bytes.push_back(palette ? PaletteColour(picture.At(x, y, 0), c)
                                : static_cast<uint8_t>(
                                      picture.At(x, y, c) / max * 255 + 0.5));
  return bytes;
}

std::string MakePng(const Picture& picture, const PngSpec& spec) {
  std::string file;
  png_structp png =
      png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(
      png, &file,
      [](png_structp p, png_bytep bytes, size_t size) {
        static_cast<std::string*>(png_get_io_ptr(p))
            ->append(reinterpret_cast<char*>(bytes), size);
      },
      [](png_structp) {});
  const int types[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA,
                       PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGB_ALPHA};
  png_set_IHDR(
      png, info, static_cast<uint32_t>(picture.width),
      static_cast<uint32_t>(picture.height), picture.bits,
      spec.palette ? PNG_COLOR_TYPE_PALETTE : types[picture.channels - 1],
      spec.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, 0, 0);
  if (spec.palette) {
    png_color colours[256];
    for (int i = 0; i < 256; ++i)
      colours[i] = {PaletteColour(i, 0), PaletteColour(i, 1),
                    PaletteColour(i, 2)};
    png_set_PLTE(png, info, colours, 1 << picture.bits);
  }
  if (spec.transparent) {
    uint8_t alpha[2] = {0, 100};
    png_color_16 colour = {0, 1, 1, 1, 1};
    png_set_tRNS(png, info, alpha, spec.palette ? 2 : 0,
                 spec.palette ? nullptr : &colour);
  }
  std::string exif = Exif(spec.orientation);
  if (spec.orientation != 0)
    png_set_eXIf_1(png, info, static_cast<uint32_t>(exif.size()),
                   reinterpret_cast<png_bytep>(exif.data()));
  png_write_info(png, info);
  if (picture.bits == 16) png_set_swap(png);
  if (picture.bits < 8) png_set_packing(png);
  std::vector<uint8_t> narrow = Bytes(picture);
  std::vector<uint16_t> wide = picture.samples;
  auto* base = picture.bits == 16 ? reinterpret_cast<uint8_t*>(wide.data())
                                  : narrow.data();
  const size_t pitch = static_cast<size_t>(picture.width) * picture.channels *
                       (picture.bits == 16 ? 2 : 1);
  std::vector<png_bytep> rows;
  for (int y = 0; y < picture.height; ++y) rows.push_back(base + y * pitch);
  png_write_image(png, rows.data());
  png_write_end(png, nullptr);
  png_destroy_write_struct(&png, &info);
  return file;
}

namespace {

// Encodes a row of indices as runs of one value and runs of different values.
std::string RunLengthRow(const Picture& picture, int y, int bits) {
  std::string row;
  const auto at = [&](int x) { return picture.At(x, y, 0); };
  const auto pair = [&](int a, int b) {
    return static_cast<char>(bits == 8 ? a : a << 4 | b);
  };
  for (int x = 0; x < picture.width;) {
    int same = 1;
    while (x + same < picture.width && same < 255 && at(x + same) == at(x))
      ++same;
    if (same >= 3 || picture.width - x < 3) {
      row += static_cast<char>(same);
      row += pair(at(x), at(x));
      x += same;
      continue;
    }
    const int count = std::min(picture.width - x, 5);
    row += '\0';
    row += static_cast<char>(count);
    size_t bytes = 0;
    for (int i = 0; i < count; i += bits == 8 ? 1 : 2, ++bytes)
      row += pair(at(x + i), i + 1 < count ? at(x + i + 1) : 0);
    if (bytes % 2) row += '\0';
    x += count;
  }
  return row + std::string("\0\0", 2);
}

std::string BmpRow(const Picture& picture, int y, const BmpSpec& spec) {
  std::string row;
  uint32_t pending = 0;
  int held = 0;
  for (int x = 0; x < picture.width; ++x) {
    if (spec.bits <= 8) {
      pending = pending << spec.bits | picture.At(x, y, 0);
      held += spec.bits;
      if (held == 8 || x + 1 == picture.width) {
        row += static_cast<char>(pending << (8 - held));
        pending = 0;
        held = 0;
      }
    } else if (spec.bits == 24) {
      for (int c = 2; c >= 0; --c)
        row += static_cast<char>(picture.At(x, y, c));
    } else {
      const uint32_t usual16[3] = {0x7c00, 0x3e0, 0x1f};
      const uint32_t usual32[3] = {0xff0000, 0xff00, 0xff};
      const uint32_t* masks = spec.masks[0]     ? spec.masks
                              : spec.bits == 16 ? usual16
                                                : usual32;
      uint32_t pixel = 0;
      for (int c = 0; c < 3; ++c)
        pixel |= (picture.At(x, y, c) << __builtin_ctz(masks[c])) & masks[c];
      row += Little(pixel, spec.bits / 8);
    }
  }
  row.resize((row.size() + 3) / 4 * 4);
  return row;
}

}  // namespace

std::string MakeBmp(const Picture& picture, const BmpSpec& spec) {
  std::string pixels;
  for (int i = 0; i < picture.height; ++i) {
    const int y = spec.top_down ? i : picture.height - 1 - i;
    pixels += spec.run_length ? RunLengthRow(picture, y, spec.bits)
                              : BmpRow(picture, y, spec);
  }
  if (spec.run_length) pixels += std::string("\0\x01", 2);
  const bool fields = spec.masks[0] != 0;
  const int compression = fields             ? 3
                          : !spec.run_length ? 0
                          : spec.bits == 8   ? 1
                                             : 2;
  std::string header;
  if (spec.os2) {
    header = Little(12, 4) + Little(picture.width, 2) +
             Little(picture.height, 2) + Little(1, 2) + Little(spec.bits, 2);
  } else {
    const int height = spec.top_down ? -picture.height : picture.height;
    header = Little(40, 4) + Little(picture.width, 4) +
             Little(static_cast<uint32_t>(height), 4) + Little(1, 2) +
             Little(spec.bits, 2) + Little(compression, 4) +
             Little(pixels.size(), 4) + std::string(16, '\0');
    if (fields)
      for (const uint32_t mask : spec.masks) header += Little(mask, 4);
  }
  for (int i = 0; spec.bits <= 8 && i < 1 << spec.bits; ++i) {
    for (int c = 2; c >= 0; --c)
      header += static_cast<char>(PaletteColour(i, c));
    if (!spec.os2) header += '\0';
  }
  const size_t begin = 14 + header.size();
  return "BM" + Little(begin + pixels.size(), 4) + Little(0, 4) +
         Little(begin, 4) + header + pixels;
}

std::string MakeWebp(const Picture& picture, const WebpSpec& spec) {
  WebPConfig config;
  WebPConfigInit(&config);
  config.lossless = spec.lossless;
  config.exact = 1;
  WebPPicture image;
  WebPPictureInit(&image);
  image.use_argb = 1;
  image.width = picture.width;
  image.height = picture.height;
  const std::vector<uint8_t> bytes = Bytes(picture);
  const int pitch = picture.width * picture.channels;
  if (picture.channels == 4)
    WebPPictureImportRGBA(&image, bytes.data(), pitch);
  else
    WebPPictureImportRGB(&image, bytes.data(), pitch);
  WebPMemoryWriter writer;
  WebPMemoryWriterInit(&writer);
  image.writer = WebPMemoryWrite;
  image.custom_ptr = &writer;
  WebPEncode(&config, &image);
  std::string file(reinterpret_cast<char*>(writer.mem), writer.size);
  WebPMemoryWriterClear(&writer);
  WebPPictureFree(&image);
  if (spec.orientation == 0) return file;
  const std::string exif = Exif(spec.orientation);
  constexpr char kHasExif = 8;
  const std::string chunks =
      "VP8X" + Little(10, 4) + kHasExif + std::string(3, '\0') +
      Little(picture.width - 1, 3) + Little(picture.height - 1, 3) +
      file.substr(12) + "EXIF" + Little(exif.size(), 4) + exif;
  return "RIFF" + Little(chunks.size() + 4, 4) + "WEBP" + chunks;
}

std::vector<std::pair<std::string, std::string>> SmallImageFiles() {
  const Picture rgb = MakePicture(19, 17, 3), gray = MakePicture(19, 17, 1);
  const Picture rgba = MakePicture(19, 17, 4);
  const Picture wide = MakePicture(9, 7, 3, 16),
                four = MakePicture(19, 17, 1, 4);
  const Picture one = MakePicture(40, 17, 1, 1);
  return {
      {"rgb.png", MakePng(rgb)},
      {"rgba-interlaced.png", MakePng(rgba, {.interlaced = true})},
      {"palette.png", MakePng(four, {.palette = true, .transparent = true})},
      {"wide.png", MakePng(wide, {.orientation = 6})},
      {"24.bmp", MakeBmp(rgb)},
      {"16.bmp", MakeBmp(MakePicture(19, 17, 3, 5), {.bits = 16})},
      {"rle8.bmp", MakeBmp(gray, {.bits = 8, .run_length = true})},
      {"rle4.bmp", MakeBmp(four, {.bits = 4, .run_length = true})},
      {"rgb.tif", MakeTiff(rgb)},
      {"lzw-tiles.tif", MakeTiff(rgba, {.compression = 5, .tile = 16})},
      {"jpeg.tif", MakeTiff(rgb, {.compression = 7, .rows = 16})},
      {"g4.tif", MakeTiff(one, {.compression = 4})},
      {"g3.tif", MakeTiff(one, {.compression = 3})},
      {"palette.tif", MakeTiff(four, {.photometric = 3})},
      {"deflate-planar.tif",
       MakeTiff(wide, {.compression = 8, .planar = true, .big_endian = true})},
      {"packbits-big.tif", MakeTiff(gray, {.compression = 32773, .big = true})},
      {"lossless.webp", MakeWebp(rgba)},
      {"lossy.webp", MakeWebp(rgb, {.lossless = false, .orientation = 3})},
      {"rgb.jp2", MakeJpeg2000(rgb)},
      {"gray.j2k", MakeJpeg2000(gray, {.boxed = false, .tile = 8})},
      {"sycc.jp2", MakeJpeg2000(rgb, {.sycc = true, .subsampling = 2})},
  };
}

}  // namespace leat::testing
