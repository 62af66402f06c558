// SPDX-License-Identifier: Apache-2.0
//
// TIFF files of uncommon kinds; codecs_test.cc has the common ones.
#include "gtest/gtest.h"
#include "tests/support/image_maker.h"
#include "tests/worker/image/program/support.h"
#include "worker/image/codecs/codec.h"

namespace leat::worker {
namespace {

using testing::Expected;
using testing::MakePicture;
using testing::MakeTiff;
using testing::Picture;
using testing::TiffSpec;

// The file must decode to exactly the picture. Returns what it takes.
uint64_t DecodeExactly(const std::string& file, const Picture& picture) {
  const auto header = kTiff.read_header(AsSpan(file), {});
  if (!header.ok()) {
    ADD_FAILURE() << Message(header.status());
    return 0;
  }
  std::vector<uint8_t> pixels(header->bytes());
  EXPECT_EQ(kTiff.decode(AsSpan(file), *header, {}, pixels.data()),
            absl::OkStatus());
  EXPECT_EQ(pixels, Expected(picture));
  return header->working_bytes;
}

// In a volume with planes apart, a plane's tiles are followed by those of its
// other slices.
TEST(Tiff, OfSlicesIsItsFirst) {
  const Picture picture = MakePicture(37, 21, 3);
  for (const bool planar : {false, true})
    for (const int slices : {1, 3})
      DecodeExactly(
          MakeTiff(picture, {.tile = 16, .planar = planar, .slices = slices}),
          picture);
}

// libtiff decodes a copy of the bytes with their bits turned.
TEST(Tiff, OfLowBitsFirstTakesMore) {
  const Picture picture = MakePicture(60, 50, 3);
  for (const int compression : {1, 5, 8}) {
    TiffSpec spec{.compression = compression, .rows = 1};
    const uint64_t usual = DecodeExactly(MakeTiff(picture, spec), picture);
    spec.low_bits_first = true;
    const std::string turned = MakeTiff(picture, spec);
    EXPECT_EQ(DecodeExactly(turned, picture), usual + turned.size());
  }
}

}  // namespace
}  // namespace leat::worker
