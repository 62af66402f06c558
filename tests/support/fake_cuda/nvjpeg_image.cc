// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fake_cuda/nvjpeg_image.h"

#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <utility>

#include "jerror.h"
#include "jpeglib.h"
#include "tests/support/fake_cuda/fake_cuda.h"

namespace leat::fake_cuda {

using cuda::NvjpegFormat;
using cuda::NvjpegResult;
using cuda::NvjpegScale;
using cuda::NvjpegSubsampling;

namespace {

struct Errors {
  jpeg_error_mgr manager;
  jmp_buf jump;
  int corrupt = 0, cut = 0;  // warnings
};

void Fail(j_common_ptr info) {
  longjmp(reinterpret_cast<Errors*>(info->err)->jump, 1);
}
void Ignore(j_common_ptr) {}
void Count(j_common_ptr info, int level) {
  auto* const errors = reinterpret_cast<Errors*>(info->err);
  if (level >= 0) return;
  const int code = info->err->msg_code;
  ++(code == JWRN_HIT_MARKER || code == JWRN_JPEG_EOF ? errors->cut
                                                      : errors->corrupt);
}

// Begins to decompress `jpeg`; longjmps to errors->jump.
void Begin(jpeg_decompress_struct* d, Errors* errors) {
  d->err = jpeg_std_error(&errors->manager);
  errors->manager.error_exit = Fail;
  errors->manager.output_message = Ignore;
  errors->manager.emit_message = Count;
}

NvjpegSubsampling SubsamplingOf(const jpeg_decompress_struct& d) {
  if (d.num_components == 1) return NvjpegSubsampling::kGray;
  if (d.num_components != 3) return NvjpegSubsampling::kUnknown;
  const jpeg_component_info* c = d.comp_info;
  if (c[1].h_samp_factor != c[2].h_samp_factor ||
      c[1].v_samp_factor != c[2].v_samp_factor ||
      c[0].h_samp_factor % c[1].h_samp_factor != 0 ||
      c[0].v_samp_factor % c[1].v_samp_factor != 0)
    return NvjpegSubsampling::kUnknown;
  switch (c[0].h_samp_factor / c[1].h_samp_factor * 10 +
          c[0].v_samp_factor / c[1].v_samp_factor) {
    case 11:
      return NvjpegSubsampling::k444;
    case 21:
      return NvjpegSubsampling::k422;
    case 22:
      return NvjpegSubsampling::k420;
    case 12:
      return NvjpegSubsampling::k440;
    case 41:
      return NvjpegSubsampling::k411;
    case 42:
      return NvjpegSubsampling::k410;
    default:
      return NvjpegSubsampling::kUnknown;
  }
}

// True if a marker begins a frame.
bool IsFrame(uint8_t marker) {
  return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 &&
         marker != 0xcc;
}

// True if the frame's marker is SOF0.
bool IsSof0(std::span<const uint8_t> jpeg) {
  for (size_t at = 2; at + 4 <= jpeg.size();) {
    if (jpeg[at] != 0xff) return false;
    const uint8_t marker = jpeg[at + 1];
    if (marker == 0xff) {
      ++at;
      continue;
    }
    if (IsFrame(marker)) return marker == 0xc0;
    at += 2 + static_cast<size_t>(jpeg[at + 2]) * 256 + jpeg[at + 3];
  }
  return false;
}

// Returns EXIF's orientation; 1: the file has none.
int OrientationOf(std::span<const uint8_t> jpeg) {
  constexpr std::string_view kTag("\x12\x01\x03\0\x01\0\0\0", 8);
  constexpr std::string_view kBigTag("\x01\x12\0\x03\0\0\0\x01", 8);
  const std::string_view bytes(reinterpret_cast<const char*>(jpeg.data()),
                               std::min<size_t>(jpeg.size(), 256));
  size_t at = bytes.find(kTag);
  if (at == bytes.npos) at = bytes.find(kBigTag);
  if (at == bytes.npos) return 1;
  const int orientation = jpeg[at + 8] + jpeg[at + 9];  // one of them is 0
  return orientation >= 1 && orientation <= 8 ? orientation : 1;
}

// Turns the pixels as a viewer would show them.
void Turn(int orientation, Pixels* pixels) {
  if (orientation == 1) return;
  const bool across = orientation >= 5;
  Pixels turned{.width = across ? pixels->height : pixels->width,
                .height = across ? pixels->width : pixels->height,
                .channels = pixels->channels};
  const auto channels = static_cast<size_t>(pixels->channels);
  for (int y = 0; y < turned.height; ++y)
    for (int x = 0; x < turned.width; ++x) {
      int u = across ? y : x, v = across ? x : y;
      if (orientation == 2 || orientation == 3 || orientation == 7 ||
          orientation == 8)
        u = pixels->width - 1 - u;
      if (orientation == 3 || orientation == 4 || orientation == 6 ||
          orientation == 7)
        v = pixels->height - 1 - v;
      const uint8_t* const from =
          pixels->bytes.data() +
          (static_cast<size_t>(v) * static_cast<size_t>(pixels->width) +
           static_cast<size_t>(u)) *
              channels;
      turned.bytes.insert(turned.bytes.end(), from, from + channels);
    }
  *pixels = std::move(turned);
}

bool IsInterleaved(NvjpegFormat format) {
  return format == NvjpegFormat::kRgbi || format == NvjpegFormat::kBgri;
}
bool IsReversed(NvjpegFormat format) {
  return format == NvjpegFormat::kBgr || format == NvjpegFormat::kBgri;
}

void Spoil(int x, int y, int width, int height, Pixels* pixels) {
  const auto channels = static_cast<size_t>(pixels->channels);
  for (int row = y; row < y + height; ++row)
    for (int column = x; column < x + width; ++column) {
      uint8_t* const pixel =
          pixels->bytes.data() +
          (static_cast<size_t>(row) * static_cast<size_t>(pixels->width) +
           static_cast<size_t>(column)) *
              channels;
      for (size_t c = 0; c < channels; ++c) pixel[c] = c == 1 ? 0xff : 0;
    }
}

// `width`, `height`: the size of the stored image.
void SpoilEdges(const DecodeOptions& options, int width, int height,
                Pixels* pixels) {
  const int side = 1 << static_cast<int>(options.scale);
  const bool cut = options.width != 0;
  if (cut && options.x > 0) Spoil(0, 0, 1, pixels->height, pixels);
  if (cut && options.y > 0) Spoil(0, 0, pixels->width, 1, pixels);
  if (width % side != 0 || (cut && options.x + options.width < width))
    Spoil(pixels->width - 1, 0, 1, pixels->height, pixels);
  if (height % side != 0 || (cut && options.y + options.height < height))
    Spoil(0, pixels->height - 1, pixels->width, 1, pixels);
}

void Crop(const DecodeOptions& options, Pixels* pixels) {
  if (options.width == 0) return;
  Pixels part{.width = options.width,
              .height = options.height,
              .channels = pixels->channels};
  const auto channels = static_cast<size_t>(pixels->channels);
  for (int y = 0; y < options.height; ++y) {
    const auto* row =
        pixels->bytes.data() + (static_cast<size_t>(y + options.y) *
                                    static_cast<size_t>(pixels->width) +
                                static_cast<size_t>(options.x)) *
                                   channels;
    part.bytes.insert(part.bytes.end(), row,
                      row + static_cast<size_t>(options.width) * channels);
  }
  *pixels = std::move(part);
}

}  // namespace

NvjpegResult ReadInfo(std::span<const uint8_t> jpeg, JpegInfo* info) {
  jpeg_decompress_struct d{};
  Errors errors;
  Begin(&d, &errors);
  if (setjmp(errors.jump) != 0) {
    jpeg_destroy_decompress(&d);
    return NvjpegResult::kBadJpeg;
  }
  jpeg_create_decompress(&d);
  jpeg_mem_src(&d, jpeg.data(), jpeg.size());
  jpeg_read_header(&d, TRUE);
  info->width = static_cast<int>(d.image_width);
  info->height = static_cast<int>(d.image_height);
  info->components = d.num_components;
  info->baseline = IsSof0(jpeg) && d.data_precision == 8 && !d.arith_code;
  info->single_scan = d.comps_in_scan == d.num_components;
  info->cmyk = d.num_components == 4;
  info->subsampling = SubsamplingOf(d);
  jpeg_destroy_decompress(&d);
  return NvjpegResult::kSuccess;
}

bool HasFrameInScan(std::span<const uint8_t> jpeg) {
  const std::string_view bytes(reinterpret_cast<const char*>(jpeg.data()),
                               jpeg.size());
  const size_t scan = bytes.find("\xff\xda");
  if (scan == bytes.npos) return false;
  for (size_t at = scan + 2; at + 1 < jpeg.size(); ++at)
    if (jpeg[at] == 0xff && IsFrame(jpeg[at + 1])) return true;
  return false;
}

bool EngineDecodes(const JpegInfo& info) {
  return info.baseline && info.single_scan &&
         (info.components == 1 || info.components == 3) &&
         info.subsampling != NvjpegSubsampling::kUnknown &&
         info.subsampling != NvjpegSubsampling::k410 &&
         info.subsampling != NvjpegSubsampling::k411 &&
         info.subsampling != NvjpegSubsampling::k410V;
}

bool EngineShapes(const DecodeOptions& options) {
  const bool region = options.width != 0;
  const bool scaled = options.scale != NvjpegScale::kNone;
  return (!region || fake_cuda_get("roi") != 0) &&
         (!scaled || fake_cuda_get("scale") != 0) && !(region && scaled);
}

NvjpegResult DecodePixels(std::span<const uint8_t> jpeg,
                          const DecodeOptions& options, NvjpegResult damaged,
                          Pixels* pixels) {
  jpeg_decompress_struct d{};
  Errors errors;
  Begin(&d, &errors);
  if (setjmp(errors.jump) != 0) {
    jpeg_destroy_decompress(&d);
    return NvjpegResult::kBadJpeg;
  }
  jpeg_create_decompress(&d);
  jpeg_mem_src(&d, jpeg.data(), jpeg.size());
  jpeg_read_header(&d, TRUE);
  if (d.num_components == 4) {
    jpeg_destroy_decompress(&d);
    return NvjpegResult::kJpegNotSupported;
  }
  d.out_color_space =
      options.format == NvjpegFormat::kY ? JCS_GRAYSCALE : JCS_RGB;
  d.dct_method = JDCT_ISLOW;
  d.do_fancy_upsampling = options.interpolate ? TRUE : FALSE;
  d.scale_num = 1;
  d.scale_denom = 1u << static_cast<int>(options.scale);
  jpeg_start_decompress(&d);
  pixels->width = static_cast<int>(d.output_width);
  pixels->height = static_cast<int>(d.output_height);
  pixels->channels = d.output_components;
  const size_t row_bytes =
      static_cast<size_t>(d.output_width) * d.output_components;
  pixels->bytes.resize(row_bytes * d.output_height);
  while (d.output_scanline < d.output_height) {
    JSAMPROW row = pixels->bytes.data() + d.output_scanline * row_bytes;
    jpeg_read_scanlines(&d, &row, 1);
  }
  const int width = static_cast<int>(d.image_width);
  const int height = static_cast<int>(d.image_height);
  jpeg_finish_decompress(&d);
  const bool corrupt =
      errors.corrupt > 0 || (errors.cut > 0 && fake_cuda_get("gray") == 0);
  jpeg_destroy_decompress(&d);
  if (corrupt) return damaged;
  if (options.width != 0 &&
      (options.x < 0 || options.y < 0 || options.height <= 0 ||
       options.x + options.width > pixels->width ||
       options.y + options.height > pixels->height))
    return NvjpegResult::kInvalidParameter;
  Crop(options, pixels);
  if (options.turn) Turn(OrientationOf(jpeg), pixels);
  if (options.spoil_edges) SpoilEdges(options, width, height, pixels);
  return NvjpegResult::kSuccess;
}

bool HasRoom(const cuda::NvjpegImage& image, const Pixels& pixels,
             NvjpegFormat format) {
  const size_t planes =
      IsInterleaved(format) || format == NvjpegFormat::kY ? 1 : 3;
  const size_t row =
      static_cast<size_t>(pixels.width) * (IsInterleaved(format) ? 3 : 1);
  for (size_t plane = 0; plane < planes; ++plane) {
    const size_t rows = static_cast<size_t>(pixels.height);
    if (image.channel[plane] == nullptr || image.pitch[plane] < row ||
        !fake_cuda_is_device(image.channel[plane],
                             image.pitch[plane] * (rows - 1) + row))
      return false;
  }
  return true;
}

void StoreBeside(const cuda::NvjpegImage& image, const Pixels& pixels,
                 int mcu) {
  const auto whole = [mcu](int side) {
    return static_cast<size_t>((side + mcu - 1) / mcu * mcu);
  };
  const auto pixel = static_cast<size_t>(pixels.channels);
  const size_t row_bytes = whole(pixels.width) * pixel;
  for (size_t y = 0; y < whole(pixels.height); ++y) {
    uint8_t* const row = image.channel[0] + y * image.pitch[0];
    const size_t first = y < static_cast<size_t>(pixels.height)
                             ? static_cast<size_t>(pixels.width) * pixel
                             : 0;
    // Elsewhere a GPU would end with an illegal address.
    if (fake_cuda_is_device(row, row_bytes))
      std::fill(row + first, row + row_bytes, uint8_t{0xcd});
    else
      fake_cuda_violate("engines write outside of the device's memory");
  }
}

void Store(const cuda::NvjpegImage& image, const Pixels& pixels,
           NvjpegFormat format) {
  const auto width = static_cast<size_t>(pixels.width);
  const auto channels = static_cast<size_t>(pixels.channels);
  for (size_t y = 0; y < static_cast<size_t>(pixels.height); ++y) {
    const uint8_t* from = pixels.bytes.data() + y * width * channels;
    if (format == NvjpegFormat::kRgbi || format == NvjpegFormat::kY) {
      std::memcpy(image.channel[0] + y * image.pitch[0], from,
                  width * channels);
      continue;
    }
    for (size_t x = 0; x < width; ++x)
      for (size_t c = 0; c < 3; ++c) {
        const size_t to = IsReversed(format) ? 2 - c : c;
        if (IsInterleaved(format))
          image.channel[0][y * image.pitch[0] + x * 3 + to] = from[x * 3 + c];
        else
          image.channel[to][y * image.pitch[to] + x] = from[x * 3 + c];
      }
  }
}

}  // namespace leat::fake_cuda
