// SPDX-License-Identifier: Apache-2.0
//
// Small files that demand much work: the file decides about the bound, never a
// clock, so that every worker gives the same answer.
#include <zlib.h>

#include <cstring>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/image_maker.h"
#include "tests/support/jpeg_maker.h"
#include "tests/worker/image/program/support.h"
#include "worker/image/codecs/codec.h"
#include "worker/image/codecs/tiff_structure.h"

namespace leat::worker {
namespace {

using ::testing::HasSubstr;
using testing::MakeJpeg;
using testing::MakeJpeg2000;
using testing::MakePicture;
using testing::MakeTiff;
using testing::TiffSpec;

absl::Status Try(const std::string& file, const ImageLimits& limits = {}) {
  ASSIGN_OR_RETURN(const Codec* const codec,
                   FindCodec(AsSpan(file), limits.formats));
  ASSIGN_OR_RETURN(const ImageHeader header,
                   codec->read_header(AsSpan(file), limits));
  std::vector<uint8_t> pixels(header.bytes());
  return codec->decode(AsSpan(file), header, limits, pixels.data());
}

void ExpectRefused(const absl::Status& status, absl::StatusCode code,
                   const std::string& text) {
  EXPECT_EQ(status.code(), code) << Message(status);
  EXPECT_THAT(std::string(Message(status)), HasSubstr(text));
}

TEST(CodecBounds, ScansOfAJpegTimesItsPixels) {
  Runner runner(ChainOf({{"resize", {}, {{"size", std::vector<int64_t>{8}}}}}),
                1);
  const std::string jpeg = MakeJpeg({.width = 64, .height = 48, .scans = 40});
  Scratch usual({}), few({.max_scan_pixels = 64 * 48 * 30 + 1});
  EXPECT_TRUE(runner.Run(jpeg, usual).ok());
  ExpectRefused(runner.Run(jpeg, few), absl::StatusCode::kResourceExhausted,
                "JPEG of 64 × 48 has more scans than the limit of 30");
  // One scan is enough for a file that has one.
  EXPECT_TRUE(runner.Run(MakeJpeg({.width = 64, .height = 48}), few).ok());
}

std::string Chunk(const char* type, const std::string& content) {
  std::string chunk(type + content);
  const auto crc = static_cast<uint32_t>(
      crc32(0, reinterpret_cast<const Bytef*>(chunk.data()),
            static_cast<uInt>(chunk.size())));
  const auto number = [](uint64_t value) {
    std::string text;
    for (int shift = 24; shift >= 0; shift -= 8)
      text.push_back(static_cast<char>(value >> shift));
    return text;
  };
  return number(content.size()) + chunk + number(crc);
}

// A gray PNG of 8 × 8 pixels with this packed image data.
std::string PngOf(const std::vector<std::string>& packed) {
  std::string png =
      "\x89PNG\r\n\x1a\n" +
      Chunk("IHDR", std::string("\0\0\0\x08\0\0\0\x08\x08\0\0\0\0", 13));
  for (const std::string& part : packed) png += Chunk("IDAT", part);
  return png + Chunk("IEND", "");
}

// The rows of such a PNG, followed by `more`.
std::string PackedWithMore(const std::string& more) {
  const std::string rows = std::string(8 * 9, '\0') + more;
  std::string packed(compressBound(rows.size()), '\0');
  uLongf size = packed.size();
  EXPECT_EQ(
      compress2(reinterpret_cast<Bytef*>(packed.data()), &size,
                reinterpret_cast<const Bytef*>(rows.data()), rows.size(), 1),
      Z_OK);
  packed.resize(size);
  return packed;
}
std::string PngWithMore(const std::string& more) {
  return PngOf({PackedWithMore(more)});
}

// The sum of the image data may be in a chunk behind that of the rows.
TEST(CodecBounds, AWrongSumOfTheImageDataOfAPng) {
  for (const size_t last : {size_t{0}, size_t{1}, size_t{4}}) {
    std::string packed = PackedWithMore("");
    const size_t first = packed.size() - last;
    const auto file = [&] {
      return PngOf({packed.substr(0, first), packed.substr(first)});
    };
    EXPECT_TRUE(Try(file()).ok()) << last;
    packed.back() ^= 1;
    ExpectRefused(Try(file()), absl::StatusCode::kDataLoss,
                  "incorrect data check");
  }
}

TEST(CodecBounds, ImageDataOfAPngBehindItsRows) {
  EXPECT_TRUE(Try(PngWithMore("")).ok());
  // Half a kilobyte when packed.
  EXPECT_TRUE(Try(PngWithMore(std::string(100'000, '\0'))).ok());
  std::string noise;
  for (uint32_t i = 0, x = 1; i < 100'000; ++i, x = x * 1664525 + 1013904223)
    noise.push_back(static_cast<char>(x >> 24));
  ExpectRefused(Try(PngWithMore(noise)), absl::StatusCode::kDataLoss,
                "damaged PNG: image data go on behind the rows");
}

void Put(std::string* file, size_t at, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i)
    (*file)[at + static_cast<size_t>(i)] = static_cast<char>(value >> 8 * i);
}
uint64_t Get(const std::string& file, size_t at, int bytes) {
  return LittleEndian(AsSpan(file), at, bytes);
}

// A TIFF of many tags; each tag names all of the file.
std::string TiffOfTags(size_t tags, size_t values) {
  std::string file(8 + 2 + 12 * tags + 4 + values, '\0');
  memcpy(file.data(), "II*\0\x08\0\0\0", 8);
  Put(&file, 8, tags, 2);
  for (size_t i = 0; i < tags; ++i) {
    Put(&file, 10 + 12 * i, 40'000 + i, 2);
    Put(&file, 12 + 12 * i, 1, 2);  // bytes
    Put(&file, 14 + 12 * i, values, 4);
  }
  return file;
}

TEST(CodecBounds, TagsOfATiff) {
  ExpectRefused(Try(TiffOfTags(600, 1)), absl::StatusCode::kDataLoss,
                "a directory of 600 tags, want at most 512");
  ExpectRefused(Try(TiffOfTags(100, 5'000)), absl::StatusCode::kDataLoss,
                "its tags name 500000 bytes, of a file of 6214");
  // Bytes outside the file are not read; libtiff judges such a file.
  std::string cut = TiffOfTags(100, 5'000);
  cut.resize(2'000);
  EXPECT_TRUE(CheckTiffDirectory(AsSpan(cut)).ok());
}

TEST(CodecBounds, WhatTheTilesOfATiffHold) {
  const std::string tiff = MakeTiff(MakePicture(64, 64, 3), {.tile = 16});
  EXPECT_TRUE(Try(tiff).ok());
  // 16 tiles, and the minimum that a tile counts.
  EXPECT_TRUE(Try(tiff, {.max_unpacked_bytes = 16 * 4096}).ok());
  ExpectRefused(Try(tiff, {.max_unpacked_bytes = 16 * 4096 - 1}),
                absl::StatusCode::kResourceExhausted,
                "TIFF has 16 strips or tiles of 16 rows of 48 bytes");
  // Tiles of 65,536 rows, each for an image of 16: a few bytes of a file can
  // represent hundreds of gigabytes.
  EXPECT_TRUE(CheckTiffWork(4'094, 16, 48, {}).ok());
  EXPECT_FALSE(CheckTiffWork(4'094, 6'250'000, 48, {}).ok());
  EXPECT_FALSE(CheckTiffWork(1, ~uint64_t{0}, ~uint64_t{0}, {}).ok());
  EXPECT_FALSE(CheckTiffWork(~uint64_t{0}, 1, 1, {}).ok());
  EXPECT_TRUE(CheckTiffWork(0, ~uint64_t{0}, 1, {}).ok());
}

// Returns the places of a tag's numbers, and their size in bytes.
struct TiffNumbers {
  size_t at = 0, count = 0;
  int bytes = 0;

  size_t Place(size_t i) const { return at + i * static_cast<size_t>(bytes); }
};
TiffNumbers NumbersOf(const std::string& tiff, uint64_t tag) {
  const size_t directory = Get(tiff, 4, 4);
  for (size_t i = 0; i < Get(tiff, directory, 2); ++i) {
    const size_t entry = directory + 2 + 12 * i;
    if (Get(tiff, entry, 2) == tag)
      return {.at = Get(tiff, entry + 8, 4),
              .count = Get(tiff, entry + 4, 4),
              .bytes = Get(tiff, entry + 2, 2) == 3 ? 2 : 4};
  }
  return {};
}
constexpr uint64_t kStripOffsets = 273, kStripByteCounts = 279;

TEST(CodecBounds, StripsOfATiffThatAllNameTheSameBytes) {
  std::string tiff =
      MakeTiff(MakePicture(40, 70, 3), TiffSpec{.compression = 8});
  ASSERT_TRUE(Try(tiff).ok());
  const TiffNumbers bytes = NumbersOf(tiff, kStripByteCounts);
  ASSERT_EQ(bytes.count, 10u);
  for (size_t i = 0; i < bytes.count; ++i)
    Put(&tiff, bytes.Place(i), tiff.size() / 2, bytes.bytes);
  ExpectRefused(Try(tiff), absl::StatusCode::kDataLoss, "its strips name ");
}

// The JPEGs in strips are looked at only as long as they do not all name the
// same bytes: the last strip, which would be refused, is not reached.
TEST(CodecBounds, JpegsInStripsThatAllNameTheSameBytes) {
  std::string tiff =
      MakeTiff(MakePicture(48, 160, 1), TiffSpec{.compression = 7, .rows = 16});
  ASSERT_TRUE(Try(tiff).ok());
  const size_t progressive = tiff.size();
  tiff += MakeJpeg({.progressive = true});
  const TiffNumbers at = NumbersOf(tiff, kStripOffsets);
  const TiffNumbers bytes = NumbersOf(tiff, kStripByteCounts);
  ASSERT_EQ(at.count, 10u);
  ASSERT_EQ(bytes.count, 10u);
  const auto name = [&](size_t strip, size_t begin) {
    Put(&tiff, at.Place(strip), begin, at.bytes);
    Put(&tiff, bytes.Place(strip), tiff.size() - begin, bytes.bytes);
  };
  name(9, progressive);
  ExpectRefused(Try(tiff), absl::StatusCode::kInvalidArgument,
                "TIFF with a progressive JPEG is not supported");
  const size_t first = Get(tiff, at.Place(0), at.bytes);
  for (size_t strip = 0; strip < 9; ++strip) name(strip, first);
  ExpectRefused(Try(tiff), absl::StatusCode::kDataLoss, "its strips name ");
}

TEST(CodecBounds, JpegsOfSeveralScansInATiff) {
  EXPECT_TRUE(CheckTiffJpeg(AsSpan(MakeJpeg({}))).ok());
  EXPECT_TRUE(CheckTiffJpeg(AsSpan(MakeJpeg({.orientation = 3}))).ok());
  ExpectRefused(CheckTiffJpeg(AsSpan(MakeJpeg({.progressive = true}))),
                absl::StatusCode::kInvalidArgument,
                "TIFF with a progressive JPEG is not supported");
  std::string split = MakeJpeg({});
  const size_t scan = split.find("\xff\xda");
  ASSERT_EQ(split[scan + 4], 3);
  split[scan + 4] = 1;
  ExpectRefused(CheckTiffJpeg(AsSpan(split)),
                absl::StatusCode::kInvalidArgument,
                "TIFF with a JPEG of several scans is not supported");
  // libjpeg skips what is no marker.
  for (const std::string& skipped :
       {std::string("a"), std::string("\xff\0", 2)})
    ExpectRefused(CheckTiffJpeg(AsSpan(
                      MakeJpeg({.progressive = true}).insert(2, skipped))),
                  absl::StatusCode::kDataLoss, "where a marker should be");
  // Whatever follows, the walk ends within the bytes.
  for (size_t size = 0; size < split.size(); ++size)
    (void)CheckTiffJpeg(AsSpan(split.substr(0, size)));
}

TEST(CodecBounds, PacketsOfAJpeg2000) {
  std::string file = MakeJpeg2000(MakePicture(19, 17, 1), {.boxed = false});
  const std::string side("\0\0\3\xe8", 4), tile("\0\0\0\x10", 4);
  for (const size_t at : {8u, 12u}) file.replace(at, 4, side);
  for (const size_t at : {24u, 28u}) file.replace(at, 4, tile);
  EXPECT_THAT(std::string(Message(Try(file))),
              ::testing::Not(HasSubstr("packets")));
  const size_t layers = file.find("\xff\x52") + 6;
  file.replace(layers, 2, "\xff\xff");
  ExpectRefused(Try(file), absl::StatusCode::kResourceExhausted,
                "packets and code-blocks, over the limit of 32000000");
}

}  // namespace
}  // namespace leat::worker
