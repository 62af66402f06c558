// SPDX-License-Identifier: Apache-2.0
//
// Inspects a JPEG file: its properties, and its problems.
//
// The markers are parsed by hand, since a decoder stops at the first
// unsupported feature; then libjpeg-turbo decodes the image, and its warnings
// are listed. The input is untrusted: images with too many pixels or scans are
// reported, not decoded.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace leat::cli {

struct JpegReport {
  uint32_t width = 0;  // 0: no frame header
  uint32_t height = 0;
  uint32_t components = 0;
  uint32_t precision = 0;   // bits per sample
  std::string process;      // "baseline", "progressive", "lossless", ...
  std::string subsampling;  // "4:2:0"; for three components or more
  std::string colors;       // "gray", "YCbCr", "RGB", "CMYK", "YCCK"
  uint32_t scans = 0;
  uint32_t restart_interval = 0;  // MCUs; 0: none
  uint32_t orientation = 0;       // from EXIF, 1–8; 0: none
  uint64_t metadata_bytes = 0;    // in APPn and COM segments
  bool icc_profile = false;
  bool arithmetic = false;
  bool decodes = false;  // completely
  std::vector<std::string> problems;
};

inline constexpr uint64_t kMaxJpegPixels = 100'000'000;
inline constexpr uint32_t kMaxJpegScans = 64;

JpegReport InspectJpeg(std::string_view file);

}  // namespace leat::cli
