// SPDX-License-Identifier: Apache-2.0
//
// Makes JPEG files for tests with libjpeg: every sampling, colour space and
// coding that readers may meet, and some that they must refuse.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace leat::testing {

enum class JpegColor { kGray, kYcc, kRgb, kCmyk, kYcck };

struct JpegSpec {
  int width = 64;
  int height = 48;
  JpegColor color = JpegColor::kYcc;
  // Sampling factors of the first component; the others have 1 × 1 (the fourth
  // has the first's). 1, 1 is 4:4:4; 2, 1 is 4:2:2; 1, 2 is 4:4:0; 2, 2 is
  // 4:2:0; 4, 1 is 4:1:1; 4, 2 is 4:1:0.
  int h = 2;
  int v = 2;
  int quality = 90;
  bool progressive = false;
  bool arithmetic = false;
  int restart_interval = 0;  // MCUs; 0: none
  int orientation = 0;       // EXIF's, 1 … 8; 0: no EXIF segment
  bool exif_big_endian = false;
  int scans = 0;  // > 0: progressive, with about as many scans (at most 250)
  uint32_t seed = 1;  // of the drawn picture
};

// Returns the bytes of a file with gradients, edges and noise. REQUIRES:
// libjpeg supports the spec.
std::string MakeJpeg(const JpegSpec& spec);

// The same for a given picture of 3 bytes per pixel. REQUIRES: it has the
// spec's size, and the colour is kGray, kYcc or kRgb.
std::string MakeJpeg(const JpegSpec& spec, const std::vector<uint8_t>& rgb);

// Returns a small valid file whose header claims another size.
std::string MakeJpegClaiming(int width, int height);

// Decodes the whole image plainly with libjpeg, as stored, with the accurate
// DCT and fancy upsampling, at 1 / 2^halvings: 3 bytes per pixel, or 1 if
// `gray`. It must not be CMYK. Empty: decoding failed or gave a warning.
struct DecodedImage {
  int width = 0;
  int height = 0;
  std::vector<uint8_t> pixels;
};
DecodedImage PlainDecode(const std::string& jpeg, bool gray = false,
                         int halvings = 0);

}  // namespace leat::testing
