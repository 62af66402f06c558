// SPDX-License-Identifier: Apache-2.0
#include "tests/support/jpeg_maker.h"

#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <functional>

extern "C" {
#include <jpeglib.h>
}

namespace leat::testing {
namespace {

// Draws a row with smooth parts, hard edges and noise in every channel. Tests
// of threads draw their images alone, so their sanitizer need not look here.
__attribute__((no_sanitize("thread"))) void DrawRow(const JpegSpec& spec, int y,
                                                    int channels,
                                                    uint8_t* row) {
  uint32_t state = spec.seed * 2654435761u + static_cast<uint32_t>(y) * 40503u;
  for (int x = 0; x < spec.width; ++x)
    for (int c = 0; c < channels; ++c) {
      state = state * 1664525u + 1013904223u;
      int value =
          (x * (3 + c) + y * (5 - c)) / 2 + static_cast<int>(state >> 28);
      if (((x / 13) + (y / 11) + c) % 3 == 0) value = 255 - value;
      row[x * channels + c] = static_cast<uint8_t>(value);
    }
}

J_COLOR_SPACE InputSpace(JpegColor color) {
  switch (color) {
    case JpegColor::kGray:
      return JCS_GRAYSCALE;
    case JpegColor::kYcc:
    case JpegColor::kRgb:
      return JCS_RGB;
    default:
      return JCS_CMYK;
  }
}

J_COLOR_SPACE StoredSpace(JpegColor color) {
  switch (color) {
    case JpegColor::kGray:
      return JCS_GRAYSCALE;
    case JpegColor::kYcc:
      return JCS_YCbCr;
    case JpegColor::kRgb:
      return JCS_RGB;
    case JpegColor::kCmyk:
      return JCS_CMYK;
    case JpegColor::kYcck:
      return JCS_YCCK;
  }
  return JCS_UNKNOWN;
}

std::string ExifSegment(int orientation, bool big) {
  std::string tiff(big ? "MM" : "II");
  const auto put = [&](uint32_t value, int size) {
    for (int i = 0; i < size; ++i)
      tiff.push_back(
          static_cast<char>(value >> (8 * (big ? size - 1 - i : i))));
  };
  put(42, 2);
  put(8, 4);                                                // the directory
  put(2, 2);                                                // entries
  put(0x10f, 2), put(2, 2), put(4, 4), put(0x41424300, 4);  // maker
  put(0x112, 2), put(3, 2), put(1, 4), put(orientation, 2), put(0, 2);
  put(0, 4);
  return std::string("Exif\0\0", 6) + tiff;
}

// The scans: DC first, then every AC coefficient by itself, bit by bit.
std::vector<jpeg_scan_info> ManyScans(int components, int count) {
  std::vector<jpeg_scan_info> scans;
  jpeg_scan_info dc = {};
  dc.comps_in_scan = components;
  for (int i = 0; i < components; ++i) dc.component_index[i] = i;
  scans.push_back(dc);
  for (int k = 1; k < 64; ++k)
    for (int bit = 3; bit >= 0; --bit) {
      if (static_cast<int>(scans.size()) >= count) return scans;
      jpeg_scan_info ac = {};
      ac.comps_in_scan = 1;
      ac.Ss = ac.Se = k;
      ac.Ah = bit == 3 ? 0 : bit + 1;
      ac.Al = bit;
      scans.push_back(ac);
    }
  return scans;
}

// Encodes the rows that `row_of` returns in turn; their colour space is
// `input`.
std::string Encode(const JpegSpec& spec, J_COLOR_SPACE input,
                   const std::function<const uint8_t*(int y)>& row_of) {
  jpeg_compress_struct cinfo = {};
  jpeg_error_mgr error;
  cinfo.err = jpeg_std_error(&error);
  jpeg_create_compress(&cinfo);
  unsigned char* data = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&cinfo, &data, &size);
  cinfo.image_width = spec.width;
  cinfo.image_height = spec.height;
  cinfo.in_color_space = input;
  cinfo.input_components = cinfo.in_color_space == JCS_GRAYSCALE ? 1
                           : cinfo.in_color_space == JCS_RGB     ? 3
                                                                 : 4;
  jpeg_set_defaults(&cinfo);
  jpeg_set_colorspace(&cinfo, StoredSpace(spec.color));
  jpeg_set_quality(&cinfo, spec.quality, TRUE);
  for (int i = 0; i < cinfo.num_components; ++i) {
    const bool full = i == 0 || i == 3;
    cinfo.comp_info[i].h_samp_factor = full ? spec.h : 1;
    cinfo.comp_info[i].v_samp_factor = full ? spec.v : 1;
  }
  cinfo.arith_code = spec.arithmetic ? TRUE : FALSE;
  cinfo.restart_interval = spec.restart_interval;
  if (spec.progressive) jpeg_simple_progression(&cinfo);
  const std::vector<jpeg_scan_info> scans =
      ManyScans(cinfo.num_components, spec.scans);
  if (spec.scans > 0) {
    cinfo.scan_info = scans.data();
    cinfo.num_scans = static_cast<int>(scans.size());
  }
  jpeg_start_compress(&cinfo, TRUE);
  if (spec.orientation > 0) {
    const std::string exif =
        ExifSegment(spec.orientation, spec.exif_big_endian);
    jpeg_write_marker(&cinfo, JPEG_APP0 + 1,
                      reinterpret_cast<const JOCTET*>(exif.data()),
                      static_cast<unsigned>(exif.size()));
  }
  while (cinfo.next_scanline < cinfo.image_height) {
    // libjpeg only reads.
    JSAMPROW row =
        const_cast<JSAMPROW>(row_of(static_cast<int>(cinfo.next_scanline)));
    jpeg_write_scanlines(&cinfo, &row, 1);
  }
  jpeg_finish_compress(&cinfo);
  std::string jpeg(reinterpret_cast<char*>(data), size);
  jpeg_destroy_compress(&cinfo);
  std::free(data);
  return jpeg;
}

}  // namespace

std::string MakeJpeg(const JpegSpec& spec) {
  const J_COLOR_SPACE input = InputSpace(spec.color);
  const int channels = input == JCS_GRAYSCALE ? 1 : input == JCS_RGB ? 3 : 4;
  std::vector<uint8_t> row(static_cast<size_t>(spec.width) * channels);
  return Encode(spec, input, [&](int y) {
    DrawRow(spec, y, channels, row.data());
    return row.data();
  });
}

std::string MakeJpeg(const JpegSpec& spec, const std::vector<uint8_t>& rgb) {
  return Encode(spec, JCS_RGB, [&](int y) {
    return rgb.data() + static_cast<size_t>(y) * spec.width * 3;
  });
}

std::string MakeJpegClaiming(int width, int height) {
  std::string jpeg = MakeJpeg({.width = 16, .height = 16});
  const size_t sof = jpeg.find("\xff\xc0");
  jpeg[sof + 5] = static_cast<char>(height >> 8);
  jpeg[sof + 6] = static_cast<char>(height);
  jpeg[sof + 7] = static_cast<char>(width >> 8);
  jpeg[sof + 8] = static_cast<char>(width);
  return jpeg;
}

namespace {

struct JumpingError {
  jpeg_error_mgr manager;
  jmp_buf jump;
};

[[noreturn]] void Jump(j_common_ptr cinfo) {
  std::longjmp(reinterpret_cast<JumpingError*>(cinfo->err)->jump, 1);
}

bool DecodeInto(jpeg_decompress_struct* cinfo, JumpingError* error, bool gray,
                int halvings, const std::string& jpeg, DecodedImage* image) {
  if (setjmp(error->jump) != 0) return false;
  jpeg_mem_src(cinfo, reinterpret_cast<const unsigned char*>(jpeg.data()),
               jpeg.size());
  jpeg_read_header(cinfo, TRUE);
  cinfo->out_color_space = gray ? JCS_GRAYSCALE : JCS_RGB;
  cinfo->do_block_smoothing = FALSE;
  cinfo->scale_num = 1;
  cinfo->scale_denom = 1u << halvings;
  jpeg_start_decompress(cinfo);
  image->width = static_cast<int>(cinfo->output_width);
  image->height = static_cast<int>(cinfo->output_height);
  const size_t row = size_t{cinfo->output_width} * (gray ? 1 : 3);
  image->pixels.resize(row * cinfo->output_height);
  while (cinfo->output_scanline < cinfo->output_height) {
    JSAMPROW pointer = image->pixels.data() + row * cinfo->output_scanline;
    jpeg_read_scanlines(cinfo, &pointer, 1);
  }
  jpeg_finish_decompress(cinfo);
  return error->manager.num_warnings == 0;
}

}  // namespace

DecodedImage PlainDecode(const std::string& jpeg, bool gray, int halvings) {
  jpeg_decompress_struct cinfo = {};
  JumpingError error;
  cinfo.err = jpeg_std_error(&error.manager);
  error.manager.error_exit = Jump;
  error.manager.output_message = [](j_common_ptr) {};
  jpeg_create_decompress(&cinfo);
  DecodedImage image;
  if (!DecodeInto(&cinfo, &error, gray, halvings, jpeg, &image)) image = {};
  jpeg_destroy_decompress(&cinfo);
  return image;
}

}  // namespace leat::testing
