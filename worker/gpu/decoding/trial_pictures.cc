// SPDX-License-Identifier: Apache-2.0
//
// libjpeg reports errors by a function that must not return; ours jumps back
// into Encode, which has no object with a destructor.
#include "worker/gpu/decoding/trial_pictures.h"

#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>

extern "C" {
#include <jpeglib.h>
}

#include "core/status.h"

namespace leat::worker {
namespace {

struct TrialErrors {
  jpeg_error_mgr manager;  // first: libjpeg hands out a pointer to it
  jmp_buf jump;
};

[[noreturn]] void EndTrial(j_common_ptr cinfo) {
  std::longjmp(reinterpret_cast<TrialErrors*>(cinfo->err)->jump, 1);
}

// Orientation 6: a viewer turns the picture by a quarter.
constexpr unsigned char kTurned[] = {
    'E', 'x', 'i',  'f', 0, 0, 'I', 'I', 42, 0, 8, 0, 0, 0,  // the directory
    1,   0,   0x12, 1,   3, 0, 1,   0,   0,  0, 6, 0, 0, 0, 0, 0, 0, 0};

struct TrialSpec {
  const char* name;
  int width, height;
  bool gray;
  int sampling;  // of luma, in both directions
};
constexpr TrialSpec kTrials[] = {{"4:2:0", 208, 136, false, 2},
                                 {"4:4:4", 203, 139, false, 1},
                                 {"gray", 201, 135, true, 1},
                                 {"4:2:0, large", 1024, 1000, false, 2}};

// Draws three slopes: along x, along y and along both.
void DrawTrialRow(const TrialSpec& spec, int y, uint8_t* row) {
  for (int x = 0; x < spec.width; ++x) {
    const int across = 255 * x / spec.width, down = 255 * y / spec.height;
    if (spec.gray) {
      row[x] = static_cast<uint8_t>((2 * across + down) / 3);
      continue;
    }
    row[3 * x] = static_cast<uint8_t>(across);
    row[3 * x + 1] = static_cast<uint8_t>(down);
    row[3 * x + 2] = static_cast<uint8_t>(255 - (across + 3 * down) / 4);
  }
}

// Returns false if libjpeg failed. `row` has room for one row; `*data` comes
// from malloc.
bool EncodeTrial(const TrialSpec& spec, uint8_t* row, unsigned char** data,
                 unsigned long* size) {
  jpeg_compress_struct cinfo = {};
  TrialErrors errors;
  cinfo.err = jpeg_std_error(&errors.manager);
  errors.manager.error_exit = EndTrial;
  if (setjmp(errors.jump) != 0) {
    jpeg_destroy_compress(&cinfo);
    return false;
  }
  jpeg_create_compress(&cinfo);
  jpeg_mem_dest(&cinfo, data, size);
  cinfo.image_width = static_cast<JDIMENSION>(spec.width);
  cinfo.image_height = static_cast<JDIMENSION>(spec.height);
  cinfo.input_components = spec.gray ? 1 : 3;
  cinfo.in_color_space = spec.gray ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&cinfo);
  jpeg_set_quality(&cinfo, 90, TRUE);
  cinfo.comp_info[0].h_samp_factor = spec.sampling;
  cinfo.comp_info[0].v_samp_factor = spec.sampling;
  jpeg_start_compress(&cinfo, TRUE);
  jpeg_write_marker(&cinfo, JPEG_APP0 + 1, kTurned, sizeof kTurned);
  while (cinfo.next_scanline < cinfo.image_height) {
    DrawTrialRow(spec, static_cast<int>(cinfo.next_scanline), row);
    jpeg_write_scanlines(&cinfo, &row, 1);
  }
  jpeg_finish_compress(&cinfo);
  jpeg_destroy_compress(&cinfo);
  return true;
}

absl::StatusOr<std::vector<TrialPicture>> DrawTrialPictures() {
  std::vector<TrialPicture> pictures;
  for (const TrialSpec& spec : kTrials) {
    std::vector<uint8_t> row(static_cast<size_t>(spec.width) * 3);
    unsigned char* data = nullptr;
    unsigned long size = 0;
    const bool encoded = EncodeTrial(spec, row.data(), &data, &size);
    const std::unique_ptr<unsigned char, decltype(&std::free)> owned(
        data, &std::free);
    if (!encoded)
      return Internal("libjpeg does not encode the picture {}", spec.name);
    pictures.push_back(
        {spec.name, spec.width, spec.height, spec.gray,
         std::string(reinterpret_cast<const char*>(data), size)});
  }
  return pictures;
}

}  // namespace

const absl::StatusOr<std::vector<TrialPicture>>& TrialPictures() {
  static const auto* const pictures =
      new absl::StatusOr<std::vector<TrialPicture>>(DrawTrialPictures());
  return *pictures;
}

}  // namespace leat::worker
