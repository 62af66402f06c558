// SPDX-License-Identifier: Apache-2.0
//
// libjpeg reports errors by a function that must not return; ours jumps back
// into one of the functions below that call setjmp (ReadHeader, BeginBlocks,
// Begin, ReadStrip). These and what they call have no object with a destructor,
// so that nothing is skipped by the jump.
#include <algorithm>

#include "worker/image/jpeg/decode/decoder_state.h"

namespace leat::worker {
namespace {

void OnProgress(j_common_ptr cinfo) {
  const auto* progress = reinterpret_cast<JpegProgress*>(cinfo->progress);
  const auto* decompress = reinterpret_cast<j_decompress_ptr>(cinfo);
  JpegErrors* const errors = JpegErrors::Of(cinfo);
  errors->given_up = progress->give_up != nullptr && *progress->give_up != 0;
  errors->too_many_scans = decompress->input_scan_number > progress->max_scans;
  if (!errors->given_up && !errors->too_many_scans) return;
  std::longjmp(errors->jump, 1);
}

}  // namespace

void JpegDecoder::State::Create() {
  jpeg_create_decompress(&cinfo);
  progress.manager.progress_monitor = OnProgress;
  cinfo.progress = &progress.manager;
  cinfo.mem->max_memory_to_use = static_cast<long>(
      std::min<uint64_t>(limits.max_scratch_bytes, 1ull << 40));
}

// libjpeg keeps tables from file to file, so that a file that lacks some would
// be decoded with another one's: each file begins with none.
bool JpegDecoder::State::ReadHeader() {
  if (setjmp(errors.jump) != 0) {
    jpeg_abort_decompress(&cinfo);
    return false;
  }
  jpeg_destroy_decompress(&cinfo);
  Create();
  const std::span<const std::byte> source = forms.source();
  jpeg_mem_src(&cinfo, reinterpret_cast<const unsigned char*>(source.data()),
               static_cast<unsigned long>(source.size()));
  jpeg_read_header(&cinfo, TRUE);
  return true;
}

// Reads the header that replaces the file. Returns false if it is of another
// image.
bool JpegDecoder::State::ReadStandIn() {
  const J_COLOR_SPACE colours = cinfo.jpeg_color_space;
  if (!ReadHeader() || cinfo.progressive_mode ||
      cinfo.jpeg_color_space != colours ||
      int64_t{cinfo.image_width} != header.size.width ||
      int64_t{cinfo.image_height} != header.size.height ||
      cinfo.num_components != header.components)
    return false;
  for (int i = 0; i < std::min(header.components, 4); ++i)
    if (cinfo.comp_info[i].h_samp_factor != header.h_samp[i] ||
        cinfo.comp_info[i].v_samp_factor != header.v_samp[i])
      return false;
  return true;
}

void JpegDecoder::State::SetScale(int times_halved) {
  cinfo.scale_num = 1;
  cinfo.scale_denom = 1u << times_halved;
}

// Lossless files have no scales in the versions of libjpeg-turbo that read
// them.
bool JpegDecoder::State::HasScales() {
  if (setjmp(errors.jump) != 0) {
    jpeg_abort_decompress(&cinfo);
    return false;
  }
  const StoredSize want =
      Halved({cinfo.image_height, cinfo.image_width}, kMostHalvings);
  SetScale(kMostHalvings);
  jpeg_calc_output_dimensions(&cinfo);
  const bool has = int64_t{cinfo.output_width} == want.width &&
                   int64_t{cinfo.output_height} == want.height;
  SetScale(0);
  return has;
}

// True if the file itself may be decoded after decoding has failed.
bool JpegDecoder::State::CanGiveUpForms() const {
  return errors.no_mcus || forms.stands_in();
}

void JpegDecoder::State::StartDecompress() {
  SetScale(halvings);
  cinfo.dct_method = JDCT_ISLOW;
  cinfo.do_fancy_upsampling = TRUE;
  cinfo.do_block_smoothing = FALSE;
  cinfo.out_color_space = cmyk    ? JCS_CMYK
                          : gray  ? JCS_GRAYSCALE
                          : dense ? JCS_EXT_RGB
                                  : JCS_EXT_RGBX;
  jpeg_start_decompress(&cinfo);
}

bool JpegDecoder::State::BeginBlocks() {
  if (setjmp(errors.jump) != 0) {
    jpeg_abort_decompress(&cinfo);
    return false;
  }
  StartDecompress();
  return true;
}

bool JpegDecoder::State::Begin() {
  if (setjmp(errors.jump) != 0) {
    jpeg_abort_decompress(&cinfo);
    return false;
  }
  StartDecompress();
  forms.Begin(&cinfo);
  if (forms.stands_in() && !forms.used()) return false;
  left = static_cast<int>(window.x);
  rows_to_discard = static_cast<int>(window.y);
  if (!partial) return true;
  const int unit = cinfo.max_h_samp_factor * block();
  // Where nothing is upsampled sideways, no pixel depends on its neighbours.
  // Gray needs only Y, which is whole, of Y, Cb and Cr, but all of R, G and B.
  const bool alone = cinfo.max_h_samp_factor == 1 ||
                     cinfo.num_components == 1 ||
                     !cinfo.comp_info[1].component_needed;
  const int margin = alone ? 0 : 1;
  const int width = static_cast<int>(cinfo.output_width);
  const int first = std::max(0, (left / unit - margin) * unit);
  const int end = std::min(
      width,
      ((left + static_cast<int>(window.width) + unit - 1) / unit + margin) *
          unit);
  JDIMENSION offset = first, cropped = end - first;
  if (end - first < width) {
    jpeg_crop_scanline(&cinfo, &offset, &cropped);
    left -= static_cast<int>(offset);
    const int mcu = cinfo.num_components == 1 ? block() : unit;
    forms.Want(offset / mcu, (offset + cropped - 1) / mcu);
  }
  if (rows_to_discard > 0) {
    jpeg_skip_scanlines(&cinfo, rows_to_discard);
    rows_to_discard = 0;
  }
  return true;
}

bool JpegDecoder::State::ReadStrip(int rows) {
  if (setjmp(errors.jump) != 0) {
    jpeg_abort_decompress(&cinfo);
    return false;
  }
  for (; rows_to_discard > 0; --rows_to_discard)
    jpeg_read_scanlines(&cinfo, row_pointers, 1);
  while (rows_done < rows)
    rows_done += static_cast<int>(jpeg_read_scanlines(
        &cinfo, row_pointers + rows_done, rows - rows_done));
  if (rows == rows_left) jpeg_abort_decompress(&cinfo);
  return true;
}

// Called when a form had no MCU: decodes as if there were no forms, up to the
// row that was about to be returned.
bool JpegDecoder::State::BeginWithoutForms() {
  forms.GiveUp();
  errors.Forget();
  if (!ReadHeader() || !Begin()) return false;
  rows_to_discard += static_cast<int>(window.height) - rows_left;
  rows_done = 0;
  return true;
}

}  // namespace leat::worker
