// SPDX-License-Identifier: Apache-2.0
//
// The formats of image_maker.h whose libraries write through streams.
#include <openjpeg.h>
#include <tiffio.h>

#include <algorithm>
#include <cstring>

#include "tests/support/image_maker.h"

namespace leat::testing {
namespace {

// A seekable file in memory.
struct Memory {
  std::string bytes;
  uint64_t at = 0;

  void Write(const void* from, size_t size) {
    if (bytes.size() < at + size) bytes.resize(at + size);
    memcpy(bytes.data() + at, from, size);
    at += size;
  }
};
Memory& Of(void* handle) { return *static_cast<Memory*>(handle); }

tmsize_t ReadTiff(thandle_t handle, void* to, tmsize_t size) {
  Memory& memory = Of(handle);
  if (memory.at >= memory.bytes.size()) return 0;
  const size_t count = memory.bytes.copy(static_cast<char*>(to),
                                         static_cast<size_t>(size), memory.at);
  memory.at += count;
  return static_cast<tmsize_t>(count);
}
tmsize_t WriteTiff(thandle_t handle, void* from, tmsize_t size) {
  Of(handle).Write(from, static_cast<size_t>(size));
  return size;
}
toff_t SeekTiff(thandle_t handle, toff_t offset, int whence) {
  Memory& memory = Of(handle);
  memory.at = whence == SEEK_SET   ? offset
              : whence == SEEK_CUR ? memory.at + offset
                                   : memory.bytes.size() + offset;
  return memory.at;
}
int CloseTiff(thandle_t) { return 0; }
toff_t SizeTiff(thandle_t handle) { return Of(handle).bytes.size(); }

// Packs `count` samples of a row, from `first` on in steps of `step`.
std::vector<uint8_t> PackRow(const uint16_t* first, int count, int step,
                             int bits) {
  std::vector<uint8_t> row;
  if (bits == 16) {
    for (int i = 0; i < count; ++i) {
      row.push_back(static_cast<uint8_t>(first[i * step]));
      row.push_back(static_cast<uint8_t>(first[i * step] >> 8));
    }
    return row;
  }
  row.assign(static_cast<size_t>((count * bits + 7) / 8), 0);
  for (int i = 0; i < count; ++i)
    row[static_cast<size_t>(i * bits / 8)] |=
        static_cast<uint8_t>(first[i * step] << (8 - bits - i * bits % 8));
  return row;
}

// Writes one channel (planar), or all channels, of a slice.
void WritePlane(TIFF* tiff, const Picture& picture, int tile, int slice,
                bool planar, int plane) {
  const int step = planar ? picture.channels : 1;
  const int samples = planar ? 1 : picture.channels;
  const auto first = [&](int x, int y) {
    return picture.samples.data() + (y * picture.width + x) * picture.channels +
           plane;
  };
  if (tile == 0) {
    for (int y = 0; y < picture.height; ++y) {
      auto row =
          PackRow(first(0, y), picture.width * samples, step, picture.bits);
      TIFFWriteScanline(tiff, row.data(), static_cast<uint32_t>(y),
                        static_cast<uint16_t>(plane));
    }
    return;
  }
  const auto row_bytes = static_cast<size_t>(TIFFTileRowSize(tiff));
  std::vector<uint8_t> buffer(static_cast<size_t>(TIFFTileSize(tiff)));
  for (int y = 0; y < picture.height; y += tile)
    for (int x = 0; x < picture.width; x += tile) {
      for (int i = 0; i < tile && y + i < picture.height; ++i) {
        const auto row = PackRow(first(x, y + i),
                                 std::min(tile, picture.width - x) * samples,
                                 step, picture.bits);
        memcpy(buffer.data() + i * row_bytes, row.data(), row.size());
      }
      TIFFWriteTile(tiff, buffer.data(), static_cast<uint32_t>(x),
                    static_cast<uint32_t>(y), static_cast<uint32_t>(slice),
                    static_cast<uint16_t>(plane));
    }
}

}  // namespace

std::string MakeTiff(const Picture& picture, const TiffSpec& spec) {
  Memory memory;
  const std::string mode =
      std::string("w") + (spec.big_endian ? "b" : "l") + (spec.big ? "8" : "");
  TIFFOpenOptions* options = TIFFOpenOptionsAlloc();
  TIFFOpenOptionsSetWarningHandlerExtR(
      options,
      [](TIFF*, void*, const char*, const char*, va_list) { return 1; },
      nullptr);
  TIFF* tiff = TIFFClientOpenExt("memory", mode.c_str(), &memory, ReadTiff,
                                 WriteTiff, SeekTiff, CloseTiff, SizeTiff,
                                 nullptr, nullptr, options);
  TIFFOpenOptionsFree(options);
  const bool ycbcr = spec.compression == COMPRESSION_JPEG &&
                     picture.channels == 3 && spec.photometric < 0;
  const int photometric = spec.photometric >= 0  ? spec.photometric
                          : ycbcr                ? PHOTOMETRIC_YCBCR
                          : picture.channels < 3 ? PHOTOMETRIC_MINISBLACK
                                                 : PHOTOMETRIC_RGB;
  TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, picture.width);
  TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, picture.height);
  TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, picture.bits);
  TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, picture.channels);
  TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, photometric);
  TIFFSetField(tiff, TIFFTAG_COMPRESSION, spec.compression);
  TIFFSetField(tiff, TIFFTAG_PLANARCONFIG,
               spec.planar ? PLANARCONFIG_SEPARATE : PLANARCONFIG_CONTIG);
  if (ycbcr) TIFFSetField(tiff, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
  if (spec.orientation)
    TIFFSetField(tiff, TIFFTAG_ORIENTATION, spec.orientation);
  if (photometric == PHOTOMETRIC_PALETTE) {
    uint16_t maps[3][256];
    for (int c = 0; c < 3; ++c)
      for (int i = 0; i < 256; ++i)
        maps[c][i] = static_cast<uint16_t>(PaletteColour(i, c) * 257);
    TIFFSetField(tiff, TIFFTAG_COLORMAP, maps[0], maps[1], maps[2]);
  } else if (picture.channels % 2 == 0 &&
             photometric != PHOTOMETRIC_SEPARATED) {
    uint16_t extra = EXTRASAMPLE_UNASSALPHA;
    TIFFSetField(tiff, TIFFTAG_EXTRASAMPLES, 1, &extra);
  }
  if (spec.tile) {
    TIFFSetField(tiff, TIFFTAG_TILEWIDTH, spec.tile);
    TIFFSetField(tiff, TIFFTAG_TILELENGTH, spec.tile);
  } else {
    TIFFSetField(tiff, TIFFTAG_ROWSPERSTRIP, spec.rows);
  }
  if (spec.low_bits_first)
    TIFFSetField(tiff, TIFFTAG_FILLORDER, FILLORDER_LSB2MSB);
  if (spec.slices > 1) TIFFSetField(tiff, TIFFTAG_IMAGEDEPTH, spec.slices);
  Picture black = picture;
  std::ranges::fill(black.samples, uint16_t{0});
  for (int plane = 0; plane < (spec.planar ? picture.channels : 1); ++plane)
    for (int slice = 0; slice < spec.slices; ++slice)
      WritePlane(tiff, slice == 0 ? picture : black, spec.tile, slice,
                 spec.planar, plane);
  TIFFClose(tiff);
  return memory.bytes;
}

std::string MakeJpeg2000(const Picture& picture, const Jpeg2000Spec& spec) {
  opj_image_cmptparm_t parameters[4] = {};
  for (int c = 0; c < picture.channels; ++c) {
    const int by = c == 1 || c == 2 ? spec.subsampling : 1;
    parameters[c].dx = parameters[c].dy = static_cast<uint32_t>(by);
    parameters[c].w = static_cast<uint32_t>((picture.width + by - 1) / by);
    parameters[c].h = static_cast<uint32_t>((picture.height + by - 1) / by);
    parameters[c].prec = static_cast<uint32_t>(picture.bits);
    parameters[c].sgnd = spec.is_signed;
  }
  opj_image_t* image =
      opj_image_create(static_cast<uint32_t>(picture.channels), parameters,
                       spec.sycc              ? OPJ_CLRSPC_SYCC
                       : picture.channels < 3 ? OPJ_CLRSPC_GRAY
                                              : OPJ_CLRSPC_SRGB);
  image->x1 = static_cast<uint32_t>(picture.width);
  image->y1 = static_cast<uint32_t>(picture.height);
  for (int c = 0; c < picture.channels; ++c) {
    opj_image_comp_t& component = image->comps[c];
    component.alpha = picture.channels % 2 == 0 && c + 1 == picture.channels;
    const int by = static_cast<int>(component.dx);
    for (uint32_t y = 0; y < component.h; ++y)
      for (uint32_t x = 0; x < component.w; ++x)
        component.data[y * component.w + x] =
            picture.At(static_cast<int>(x) * by, static_cast<int>(y) * by, c) -
            (spec.is_signed ? 1 << (picture.bits - 1) : 0);
  }
  opj_cparameters_t how;
  opj_set_default_encoder_parameters(&how);
  how.tcp_numlayers = 1;
  how.cp_disto_alloc = 1;
  how.tcp_rates[0] = 0;  // lossless
  how.numresolution = spec.resolutions;
  how.tcp_mct = picture.channels == 3 && !spec.sycc;
  if (spec.tile) {
    how.tile_size_on = OPJ_TRUE;
    how.cp_tdx = how.cp_tdy = spec.tile;
  }
  opj_codec_t* codec =
      opj_create_compress(spec.boxed ? OPJ_CODEC_JP2 : OPJ_CODEC_J2K);
  opj_setup_encoder(codec, &how, image);
  opj_stream_t* stream = opj_stream_default_create(OPJ_FALSE);
  Memory memory;
  opj_stream_set_user_data(stream, &memory, nullptr);
  opj_stream_set_write_function(stream,
                                [](void* from, OPJ_SIZE_T size, void* handle) {
                                  Of(handle).Write(from, size);
                                  return size;
                                });
  opj_stream_set_skip_function(stream, [](OPJ_OFF_T size, void* handle) {
    Of(handle).at += static_cast<uint64_t>(size);
    return size;
  });
  opj_stream_set_seek_function(stream, [](OPJ_OFF_T at, void* handle) {
    Of(handle).at = static_cast<uint64_t>(at);
    return OPJ_BOOL{OPJ_TRUE};
  });
  const bool good = opj_start_compress(codec, image, stream) &&
                    opj_encode(codec, stream) &&
                    opj_end_compress(codec, stream);
  opj_stream_destroy(stream);
  opj_destroy_codec(codec);
  opj_image_destroy(image);
  return good ? memory.bytes : "";
}

}  // namespace leat::testing
