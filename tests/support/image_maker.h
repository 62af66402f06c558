// SPDX-License-Identifier: Apache-2.0
//
// Image files of formats other than JPEG, made by the formats' own libraries
// (BMP by hand), for tests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace leat::testing {

struct Picture {
  int width = 0, height = 0;
  int channels = 3;  // 1 gray, 2 with alpha, 3 RGB, 4 with alpha
  int bits = 8;      // per sample
  std::vector<uint16_t> samples;

  uint16_t At(int x, int y, int c) const {
    return samples[static_cast<size_t>((y * width + x) * channels + c)];
  }
};

// Makes a picture with slopes, edges and noise, using every value of few bits.
Picture MakePicture(int width, int height, int channels, int bits = 8,
                    uint32_t seed = 1);
// Returns a channel of colour i of every palette; channel 0 is R.
uint8_t PaletteColour(int i, int channel);
// Returns what a decoder should give: 8 bits, alpha dropped, 1 channel or 3;
// for a picture of one channel, `palette`: its colours.
std::vector<uint8_t> Expected(const Picture& picture, bool palette = false);

struct PngSpec {
  bool palette = false, interlaced = false, transparent = false;
  int orientation = 0;  // 0: no eXIf chunk
};
std::string MakePng(const Picture& picture, const PngSpec& spec = {});

struct BmpSpec {
  int bits = 24;  // up to 8: the picture's channel is an index
  bool top_down = false, os2 = false, run_length = false;
  uint32_t masks[3] = {};  // if not 0: bit fields
};
std::string MakeBmp(const Picture& picture, const BmpSpec& spec = {});

struct TiffSpec {
  int photometric = -1;  // -1: chosen by the channels
  int compression = 1;   // none
  int tile = 0;          // its side; 0: strips
  int rows = 7;          // per strip
  bool planar = false, big_endian = false, big = false;
  bool low_bits_first = false;
  int slices = 1;       // of a volume in tiles; all but the first are black
  int orientation = 0;  // 0: no tag
};
std::string MakeTiff(const Picture& picture, const TiffSpec& spec = {});

struct WebpSpec {
  bool lossless = true;
  int orientation = 0;  // 0: no EXIF chunk
};
std::string MakeWebp(const Picture& picture, const WebpSpec& spec = {});

struct Jpeg2000Spec {
  bool boxed = true, is_signed = false, sycc = false;
  int subsampling = 1;  // of channels 1 and 2
  int tile = 0;
  int resolutions = 3;
};
std::string MakeJpeg2000(const Picture& picture, const Jpeg2000Spec& spec = {});

// Makes one small file of each kind, by name, for fuzzing.
std::vector<std::pair<std::string, std::string>> SmallImageFiles();

}  // namespace leat::testing
