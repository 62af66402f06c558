// SPDX-License-Identifier: Apache-2.0
//
// Memory and work that a JPEG 2000 file demands of OpenJPEG are found before it
// reads the file.
#include "worker/image/codecs/jpeg2000_structure.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/image_maker.h"
#include "tests/worker/image/program/support.h"
#include "worker/image/codecs/codec.h"

namespace leat::worker {
namespace {

using ::testing::HasSubstr;
using testing::MakeJpeg2000;
using testing::MakePicture;
using testing::Picture;

std::string Number(uint64_t value, int bytes) {
  std::string text;
  for (int i = bytes - 1; i >= 0; --i)
    text.push_back(static_cast<char>(value >> 8 * i));
  return text;
}
std::string Segment(uint32_t marker, const std::string& content) {
  return Number(marker, 2) + Number(content.size() + 2, 2) + content;
}
std::string Box(const std::string& type, const std::string& content) {
  return Number(content.size() + 8, 4) + type + content;
}

absl::StatusOr<std::vector<uint8_t>> Decode(const std::string& file,
                                            const ImageLimits& limits = {}) {
  ASSIGN_OR_RETURN(const ImageHeader header,
                   kJpeg2000.read_header(AsSpan(file), limits));
  std::vector<uint8_t> pixels(header.bytes());
  RETURN_IF_ERROR(
      kJpeg2000.decode(AsSpan(file), header, limits, pixels.data()));
  return pixels;
}

// A codestream of one tile-part.
struct Stream {
  uint32_t width = 256, height = 256;
  uint32_t tile = 1 << 20;
  int components = 1;
  std::string segments;
  std::string data;

  std::string file() const {
    std::string sizes = Number(0, 2) + Number(width, 4) + Number(height, 4) +
                        Number(0, 8) + Number(tile, 4) + Number(tile, 4) +
                        Number(0, 8) +
                        Number(static_cast<uint64_t>(components), 2);
    for (int c = 0; c < components; ++c) sizes += Number(0x070101, 3);
    return Number(0xff4f, 2) + Segment(0xff51, sizes) + segments +
           Segment(0xff90,
                   Number(0, 2) + Number(14 + data.size(), 4) + Number(1, 2)) +
           Number(0xff93, 2) + data + Number(0xffd9, 2);
  }
};

// Code-blocks of 64 × 64. `precincts`: a byte for each resolution.
std::string Coding(uint64_t layers, uint64_t levels,
                   const std::string& precincts = "", uint64_t blocks = 0x404) {
  return Segment(0xff52, Number(precincts.empty() ? 0 : 1, 1) + Number(2, 1) +
                             Number(layers, 2) + Number(0, 1) +
                             Number(levels, 1) + Number(blocks, 2) +
                             Number(0, 1) + Number(1, 1) + precincts);
}

Jpeg2000Structure StructureOf(const Stream& stream) {
  const auto structure = ReadJpeg2000Structure(AsSpan(stream.file()));
  EXPECT_TRUE(structure.ok()) << Message(structure.status());
  return structure.value_or(Jpeg2000Structure());
}

// Inserts a segment before the coding of a codestream.
std::string WithSegment(std::string file, const std::string& segment) {
  return file.insert(file.find("\xff\x52"), segment);
}

TEST(Jpeg2000Structure, ASegmentThatOpenJpegDoesNotKnowIsSkippedByBoth) {
  const Picture picture = MakePicture(19, 17, 1);
  const std::string file = MakeJpeg2000(picture, {.boxed = false});
  const auto decoded = Decode(
      WithSegment(file, Segment(0xff7a, std::string("\xff\x7b\0\7", 4))));
  ASSERT_TRUE(decoded.ok()) << Message(decoded.status());
  EXPECT_EQ(*decoded, testing::Expected(picture));
}

// OpenJPEG looks for the next marker inside the segment, in steps of two bytes.
TEST(Jpeg2000Structure, NoSegmentIsHiddenInOneThatOpenJpegDoesNotKnow) {
  const std::string file =
      MakeJpeg2000(MakePicture(19, 17, 1), {.boxed = false});
  for (const std::string& content :
       {Coding(0xffff, 5), "ab" + Coding(0xffff, 5), std::string("odd")}) {
    const auto decoded = Decode(WithSegment(file, Segment(0xff7a, content)));
    EXPECT_EQ(decoded.status().code(), absl::StatusCode::kInvalidArgument)
        << Message(decoded.status());
    EXPECT_THAT(std::string(Message(decoded.status())),
                HasSubstr("JPEG 2000 with a segment ff7a of "));
  }
}

TEST(Jpeg2000Structure, TheDataOfATileCount) {
  Stream stream{.segments = Coding(1, 5)};
  const uint64_t without = StructureOf(stream).memory_bytes;
  stream.data.resize(1'000'000);
  EXPECT_EQ(StructureOf(stream).memory_bytes, without + 1'000'000);
}

// OpenJPEG has a flag for each layer, resolution and precinct, for the most of
// each that any component has.
TEST(Jpeg2000Structure, FlagsOfPacketsAreThoseOfTheLargestNumbers) {
  // The second component has 16 × 16 precincts in its only resolution.
  const std::string second =
      Segment(0xff53, Number(1, 1) + Number(1, 1) + Number(0, 1) +
                          Number(0x404, 2) + Number(0, 2) + Number(0x44, 1));
  const uint64_t flags = 2 * uint64_t{1001} * 33 * 256 * 2;
  EXPECT_GT(
      StructureOf({.components = 2, .segments = Coding(1000, 32) + second})
          .memory_bytes,
      flags);
}

// OpenJPEG copies what the main header says of transforms to every tile.
TEST(Jpeg2000Structure, EveryTileHasACopyOfTheTransforms) {
  const Stream stream{
      .width = 250,
      .height = 250,
      .tile = 1,
      .segments =
          Coding(1, 0) +
          Segment(0xff74, Number(0, 2) + Number(0x400, 2) + Number(0, 2) +
                              std::string(60'000, '\0'))};
  EXPECT_GT(StructureOf(stream).memory_bytes, 62'500u * 60'000);
  const auto header = kJpeg2000.read_header(AsSpan(stream.file()), {});
  EXPECT_EQ(header.status().code(), absl::StatusCode::kResourceExhausted);
}

// One resolution has narrow precincts, and another one flat ones. OpenJPEG
// visits all crossings of their edges, for each resolution and progression.
TEST(Jpeg2000Structure, PlacesThatProgressionsVisitAreWork) {
  const std::string precincts =
      std::string(31, '\xff') + std::string("\x1f\xf1", 2);
  Stream stream{.width = 5000,
                .height = 5000,
                .segments = Coding(1, 32, precincts, 0x008)};
  EXPECT_LT(StructureOf(stream).parts, 10'000'000u);
  EXPECT_TRUE(kJpeg2000.read_header(AsSpan(stream.file()), {}).ok());
  std::string progressions;
  for (int i = 0; i < 31; ++i)
    progressions += std::string("\0\0\0\1\x21\1\2", 7);
  stream.segments += Segment(0xff5f, progressions);
  EXPECT_GT(StructureOf(stream).parts, 100'000'000u);
  const auto header = kJpeg2000.read_header(AsSpan(stream.file()), {});
  EXPECT_EQ(header.status().code(), absl::StatusCode::kResourceExhausted);
}

// A palette of 256 colours, and which component and column make a channel.
std::string Palette(int columns) {
  std::string palette = Number(256, 2) +
                        Number(static_cast<uint64_t>(columns), 1) +
                        std::string(static_cast<size_t>(columns), 7);
  std::string mapping;
  for (int i = 0; i < 256; ++i)
    for (int c = 0; c < columns; ++c)
      palette.push_back(static_cast<char>(testing::PaletteColour(i, c)));
  for (int c = 0; c < columns; ++c)
    mapping +=
        Number(0, 2) + Number(1, 1) + Number(static_cast<uint64_t>(c), 1);
  return Box("pclr", palette) + Box("cmap", mapping);
}

// Inserts boxes at the end of the header, or behind it.
std::string WithBoxes(std::string file, const std::string& boxes, bool inside) {
  const size_t header = file.find("jp2h") - 4;
  const uint64_t length = BigEndian(AsSpan(file), header, 4);
  file.insert(header + length, boxes);
  if (inside) file.replace(header, 4, Number(length + boxes.size(), 4));
  return file;
}

TEST(Jpeg2000Structure, APaletteIsLookedUpWhereverItsBoxIs) {
  const Picture indices = MakePicture(19, 17, 1);
  for (const bool inside : {true, false}) {
    const auto decoded =
        Decode(WithBoxes(MakeJpeg2000(indices), Palette(3), inside));
    ASSERT_TRUE(decoded.ok()) << Message(decoded.status());
    EXPECT_EQ(*decoded, testing::Expected(indices, true)) << inside;
  }
}

TEST(Jpeg2000Structure, ColumnsOfAPaletteAreMemory) {
  const std::string plain = MakeJpeg2000(MakePicture(64, 64, 1));
  const ImageLimits limits{.max_scratch_bytes = 4 * 64 * 64 * 255};
  EXPECT_TRUE(Decode(WithBoxes(plain, Palette(3), true), limits).ok());
  for (const bool inside : {true, false}) {
    const auto decoded = Decode(WithBoxes(plain, Palette(255), inside), limits);
    EXPECT_EQ(decoded.status().code(), absl::StatusCode::kResourceExhausted)
        << Message(decoded.status());
  }
}

}  // namespace
}  // namespace leat::worker
