// SPDX-License-Identifier: Apache-2.0
#include "worker/image/jpeg/scan/shape.h"

#include <algorithm>

namespace leat::worker {

bool StoresCoefficients(jpeg_decompress_struct* cinfo) {
  return cinfo->progressive_mode || jpeg_has_multiple_scans(cinfo);
}

uint64_t CoefficientBytes(const jpeg_decompress_struct& cinfo) {
  uint64_t bytes = 0;
  int max_h = 1, max_v = 1;
  for (int i = 0; i < cinfo.num_components; ++i) {
    max_h = std::max(max_h, cinfo.comp_info[i].h_samp_factor);
    max_v = std::max(max_v, cinfo.comp_info[i].v_samp_factor);
  }
  const auto mcus_wide = (cinfo.image_width + 8u * max_h - 1) / (8u * max_h);
  const auto mcus_high = (cinfo.image_height + 8u * max_v - 1) / (8u * max_v);
  for (int i = 0; i < cinfo.num_components; ++i)
    bytes += uint64_t{mcus_wide} * mcus_high * 64 * sizeof(JCOEF) *
             cinfo.comp_info[i].h_samp_factor *
             cinfo.comp_info[i].v_samp_factor;
  return bytes;
}

bool PartialIsExact(const jpeg_decompress_struct& cinfo) {
  const int components = cinfo.num_components;
  if (components == 1) return true;
  const jpeg_component_info* info = cinfo.comp_info;
  const int h = info[0].h_samp_factor, v = info[0].v_samp_factor;
  if (h > 4 || v > 4 || h * v > 4 || h == 3 || v == 3) return false;
  for (int i = 1; i < 3; ++i)
    if (info[i].h_samp_factor != 1 || info[i].v_samp_factor != 1) return false;
  return components == 3 ||
         (info[3].h_samp_factor == h && info[3].v_samp_factor == v);
}

std::optional<BlockWindow> BlocksOfWindow(const jpeg_decompress_struct& cinfo,
                                          const Rect& window, bool gray) {
  const StoredSize size{cinfo.image_height, cinfo.image_width};
  if (cinfo.progressive_mode || cinfo.arith_code || cinfo.data_precision != 8 ||
      cinfo.comps_in_scan != cinfo.num_components)
    return std::nullopt;
  if (cinfo.jpeg_color_space == JCS_GRAYSCALE && cinfo.num_components == 1)
    return BlockWindow::Of(size, window, false, gray, 1, 1);
  if (cinfo.jpeg_color_space != JCS_YCbCr || cinfo.num_components != 3)
    return std::nullopt;
  const jpeg_component_info* info = cinfo.comp_info;
  const int across = info[0].h_samp_factor, down = info[0].v_samp_factor;
  if (across > 2 || down > 2) return std::nullopt;
  for (int i = 1; i < 3; ++i)
    if (info[i].h_samp_factor != 1 || info[i].v_samp_factor != 1)
      return std::nullopt;
  return BlockWindow::Of(size, window, true, gray, across, down);
}

bool IsCmyk(const jpeg_decompress_struct& cinfo) {
  return cinfo.jpeg_color_space == JCS_CMYK ||
         cinfo.jpeg_color_space == JCS_YCCK;
}

}  // namespace leat::worker
