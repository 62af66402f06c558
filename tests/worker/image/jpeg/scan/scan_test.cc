// SPDX-License-Identifier: Apache-2.0
//
// Files that are cut short are found without decoding: never a sound one, and
// all that are shorter than any data of their size.
#include "worker/image/jpeg/scan/scan.h"

#include <algorithm>
#include <cstring>

#include "core/status.h"
#include "gtest/gtest.h"
#include "tests/support/jpeg_maker.h"
#include "tests/worker/image/jpeg/decode/damaged_jpegs.h"
#include "tests/worker/image/program/support.h"
#include "worker/image/jpeg/decode/check.h"

namespace leat::worker {
namespace {

using testing::JpegColor;
using testing::JpegSpec;

bool EndsEarly(const std::string& jpeg) {
  JpegDecoder decoder({});
  return decoder.Open(AsSpan(jpeg)).ok() && decoder.EndsEarly();
}

// True if libjpeg decodes all of it without a complaint.
bool IsSound(const std::string& jpeg) {
  JpegDecoder decoder({});
  return decoder.Open(AsSpan(jpeg)).ok() &&
         CheckJpegRows(&decoder, decoder.header().size.height, false).ok();
}

// An image of one colour: every block except the first has the shortest code.
std::string Plain(const JpegSpec& spec) {
  return testing::MakeJpeg(
      spec, std::vector<uint8_t>(
                static_cast<size_t>(spec.width * spec.height) * 3, 128));
}

std::string CutAt(const std::string& jpeg, size_t bytes) {
  return jpeg.substr(0, bytes) + "\xff\xd9";
}

size_t DataOf(const std::string& jpeg) {
  const size_t header = jpeg.find("\xff\xda");
  return header + 2 + static_cast<uint8_t>(jpeg[header + 3]);
}

TEST(JpegScan, SoundFilesDoNotEndEarly) {
  for (const std::string& jpeg : JpegsOfManyKinds()) {
    ASSERT_TRUE(IsSound(jpeg));
    EXPECT_FALSE(EndsEarly(jpeg));
  }
  for (const auto& [h, v] : {std::pair{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}})
    for (const int interval : {0, 1, 3, 8})
      for (const int side : {1, 8, 17, 64, 301}) {
        const JpegSpec spec{.width = side,
                            .height = 40,
                            .h = h,
                            .v = v,
                            .quality = 1 + side % 100,
                            .restart_interval = interval};
        EXPECT_FALSE(EndsEarly(testing::MakeJpeg(spec))) << side;
        EXPECT_FALSE(EndsEarly(Plain(spec))) << side;
      }
}

// The bound is tight: for a plain image all cuts are found except those in the
// last bytes, which hold padding and the first block's value.
TEST(JpegScan, APlainImageThatIsCutIsFound) {
  for (const JpegColor color : {JpegColor::kYcc, JpegColor::kGray}) {
    const bool gray = color == JpegColor::kGray;
    const std::string jpeg = Plain({.width = 200,
                                    .height = 100,
                                    .color = color,
                                    .h = gray ? 1 : 2,
                                    .v = gray ? 1 : 2});
    for (size_t at = DataOf(jpeg); at + 5 < jpeg.size(); ++at)
      EXPECT_TRUE(EndsEarly(CutAt(jpeg, at))) << at << " of " << jpeg.size();
  }
}

// For any picture, only the last interval can be cut unnoticed.
TEST(JpegScan, AFileThatLacksRestartMarkersIsFound) {
  const std::string jpeg =
      testing::MakeJpeg({.width = 320, .height = 240, .restart_interval = 20});
  const size_t last = jpeg.rfind("\xff\xd0") > jpeg.rfind("\xff\xd1")
                          ? jpeg.rfind("\xff\xd0")
                          : jpeg.rfind("\xff\xd1");
  ASSERT_NE(last, std::string::npos);
  for (size_t at = DataOf(jpeg); at < last; at += 7)
    EXPECT_TRUE(EndsEarly(CutAt(jpeg, at))) << at << " of " << jpeg.size();
  const size_t first = jpeg.find("\xff\xd0", DataOf(jpeg));
  std::string renumbered = jpeg;
  renumbered[first + 1] ^= 2;
  EXPECT_TRUE(EndsEarly(renumbered));
  EXPECT_TRUE(EndsEarly(std::string(jpeg).erase(first, 2)));
  // libjpeg ignores further bytes before a marker.
  const std::string longer = std::string(jpeg).insert(first, "more");
  EXPECT_EQ(EndsEarly(longer), !IsSound(longer));
}

TEST(JpegScan, WhatEndsEarlyIsDamaged) {
  int found = 0, cut = 0;
  uint32_t seed = 0;
  for (const std::string& jpeg : JpegsOfManyKinds())
    for (const std::string& copy : JpegDamager(jpeg, ++seed).Copies()) {
      const bool early = EndsEarly(copy);
      found += early ? 1 : 0;
      cut += IsSound(copy) ? 0 : 1;
      if (early) {
        EXPECT_FALSE(IsSound(copy));
      }
    }
  EXPECT_GT(found, 150);
  EXPECT_LT(found, cut);
}

// --- By hand ----------------------------------------------------------------

using namespace std::string_literals;

bool EndsEarly(const std::string& data, uint64_t mcus,
               uint64_t restart_interval, uint64_t least_bits) {
  return JpegScan{AsSpan(data), mcus, restart_interval, least_bits}.EndsEarly();
}

TEST(JpegScan, OneIntervalHasTheBytesThatItsBitsTake) {
  EXPECT_FALSE(EndsEarly(std::string(10, 'a'), 8, 0, 10));
  EXPECT_TRUE(EndsEarly(std::string(9, 'a'), 8, 0, 10));
  EXPECT_FALSE(EndsEarly("ab", 3, 0, 3));  // 9 bits
  EXPECT_TRUE(EndsEarly("a", 3, 0, 3));
  EXPECT_FALSE(EndsEarly("a", 2, 0, 4));
  EXPECT_TRUE(EndsEarly("", 1, 0, 1));
  EXPECT_FALSE(EndsEarly("", 1, 0, 0));
  // A 0xff that is data counts as one byte; a marker ends the data.
  EXPECT_FALSE(EndsEarly("a\xff\0b"s, 3, 0, 8));
  EXPECT_TRUE(EndsEarly("a\xff\0b"s, 4, 0, 8));
  EXPECT_TRUE(EndsEarly("ab\xff\xd9zz", 3, 0, 8));
  EXPECT_FALSE(EndsEarly("abc\xff\xd9", 3, 0, 8));
  EXPECT_TRUE(EndsEarly("ab\xff\xff\xd9", 3, 0, 8));
  EXPECT_TRUE(EndsEarly("ab\xff", 3, 0, 8));
}

TEST(JpegScan, AByteMoreOrLessDecides) {
  EXPECT_TRUE(EndsEarly(std::string(11, 'a'), 12, 0, 8));
  EXPECT_FALSE(EndsEarly(std::string(12, 'a'), 12, 0, 8));
  // The same if each second byte is a 0xff, which takes two in the file.
  std::string data;
  for (uint64_t bytes = 1; bytes <= 40; ++bytes) {
    EXPECT_TRUE(EndsEarly(data, bytes, 0, 8)) << bytes;
    data += bytes % 2 == 0 ? "\xff\0"s : "a"s;
    EXPECT_FALSE(EndsEarly(data, bytes, 0, 8)) << bytes;
    EXPECT_FALSE(EndsEarly(data + "\xff\xd9", bytes, 0, 8)) << bytes;
    EXPECT_TRUE(EndsEarly(data + "\xff\xd9", bytes + 1, 0, 8)) << bytes;
  }
}

TEST(JpegScan, EveryIntervalHasItsBytesAndItsMarker) {
  const auto early = [](const std::string& data) {
    return EndsEarly(data, 5, 2, 8);
  };
  EXPECT_FALSE(
      early("ab\xff\xd0"
            "cd\xff\xd1"
            "e"));
  EXPECT_FALSE(
      early("abmore\xff\xd0"
            "cd\xff\xff\xff\xd1"
            "e"));
  EXPECT_FALSE(
      early("a\xff\0\xff\xd0"
            "cd\xff\xd1"
            "e"s));
  EXPECT_TRUE(
      early("a\xff\xd0"
            "cd\xff\xd1"
            "e"));
  EXPECT_TRUE(
      early("ab\xff\xd0"
            "c\xff\xd1"
            "e"));
  EXPECT_TRUE(
      early("ab\xff\xd0"
            "cd\xff\xd1"));
  EXPECT_TRUE(
      early("ab\xff\xd0"
            "cd\xff\xd9"
            "e"));
  EXPECT_TRUE(
      early("ab\xff\xd0"
            "cd\xff\xd2"
            "e"));
  EXPECT_TRUE(
      early("ab\xff\xd1"
            "cd\xff\xd1"
            "e"));
  EXPECT_TRUE(
      early("ab\xff\xd0"
            "cdefgh"));
  EXPECT_TRUE(early("abcdefgh"));
  // No marker follows the last interval, if all intervals are full.
  EXPECT_FALSE(
      EndsEarly("ab\xff\xd0"
                "cd",
                4, 2, 8));
  EXPECT_FALSE(EndsEarly("ab", 2, 7, 8));
  EXPECT_TRUE(
      EndsEarly("a\xff\xd0"
                "b",
                3, 1, 8));
}

TEST(JpegScan, TheMarkersNumbersBeginAgainBehindTheEighth) {
  std::string data;
  for (int i = 0; i < 20; ++i) {
    EXPECT_FALSE(EndsEarly(data + "a", i + 1, 1, 8)) << i;
    EXPECT_TRUE(EndsEarly(data + "a", i + 2, 1, 8)) << i;
    data += {'a', '\xff', static_cast<char>(0xd0 + i % 8)};
  }
}

// Codes of a table: the number of bits, and the symbol; in the order of a file.
struct Code {
  int bits;
  uint8_t symbol;
};

// A file's header as libjpeg would have read it.
class Header {
 public:
  Header(int width, int height, std::vector<std::pair<int, int>> samplings) {
    cinfo_.image_width = static_cast<JDIMENSION>(width);
    cinfo_.image_height = static_cast<JDIMENSION>(height);
    cinfo_.num_components = static_cast<int>(samplings.size());
    cinfo_.comp_info = components_;
    cinfo_.src = &source_;
    for (size_t i = 0; i < samplings.size(); ++i) {
      components_[i].h_samp_factor = samplings[i].first;
      components_[i].v_samp_factor = samplings[i].second;
    }
    SetTables({{1, 0}}, {{1, 0}});
  }
  void SetTables(const std::vector<Code>& dc, const std::vector<Code>& ac) {
    cinfo_.dc_huff_tbl_ptrs[0] = Fill(dc, &dc_);
    cinfo_.ac_huff_tbl_ptrs[0] = Fill(ac, &ac_);
  }
  JpegScan Scan() const { return JpegScan::Of(cinfo_); }

  jpeg_decompress_struct cinfo_{};
  jpeg_component_info components_[4]{};

 private:
  static JHUFF_TBL* Fill(const std::vector<Code>& codes, JHUFF_TBL* table) {
    *table = {};
    for (size_t i = 0; i < codes.size(); ++i) {
      ++table->bits[codes[i].bits];
      table->huffval[i] = codes[i].symbol;
    }
    return table;
  }

  JHUFF_TBL dc_{}, ac_{};
  jpeg_source_mgr source_{};
};

TEST(JpegScan, McusAreCountedUp) {
  const auto mcus = [](int width, int height,
                       std::vector<std::pair<int, int>> samplings) {
    return Header(width, height, std::move(samplings)).Scan().mcus;
  };
  EXPECT_EQ(mcus(8, 8, {{1, 1}}), 1u);
  EXPECT_EQ(mcus(17, 9, {{1, 1}}), 6u);
  // a single component's MCUs are its blocks
  EXPECT_EQ(mcus(17, 9, {{2, 2}}), 6u);
  EXPECT_EQ(mcus(33, 17, {{2, 2}, {1, 1}, {1, 1}}), 6u);
  EXPECT_EQ(mcus(33, 17, {{1, 1}, {4, 2}, {1, 1}}), 4u);
  EXPECT_EQ(mcus(32, 16, {{4, 1}, {1, 1}, {1, 1}}), 2u);
}

TEST(JpegScan, AnMcuHasABlockForEachSamplingOfItsComponents) {
  const auto bits = [](std::vector<std::pair<int, int>> samplings) {
    return Header(8, 8, std::move(samplings)).Scan().least_bits;
  };
  EXPECT_EQ(bits({{1, 1}}), 2u);
  EXPECT_EQ(bits({{2, 2}}), 2u);
  EXPECT_EQ(bits({{2, 2}, {1, 1}, {1, 1}}), 12u);
  EXPECT_EQ(bits({{4, 1}, {1, 1}, {1, 2}}), 14u);
}

// Zeros after a table's symbols are not codes.
TEST(JpegScan, ATableHasNoMoreThan256Codes) {
  Header header(8, 8, {{1, 1}});
  header.SetTables({}, {});
  JHUFF_TBL* const table = header.cinfo_.dc_huff_tbl_ptrs[0];
  table->bits[1] = 255;
  table->bits[2] = 255;
  memset(table->huffval, 9, sizeof table->huffval);
  EXPECT_EQ(header.Scan().least_bits, 1u + 9);
}

TEST(JpegScan, ABlockIsCodedAsShortAsItsTablesAllow) {
  const auto bits = [](const std::vector<Code>& dc,
                       const std::vector<Code>& ac) {
    Header header(8, 8, {{1, 1}});
    header.SetTables(dc, ac);
    return header.Scan().least_bits;
  };
  const std::vector<Code> none;
  // The first coefficient: a code, and as many bits as it says.
  EXPECT_EQ(bits({{1, 5}, {3, 0}}, none), 3u);
  EXPECT_EQ(bits({{1, 0}, {2, 5}}, none), 1u);
  EXPECT_EQ(bits({{2, 1}, {16, 0}}, none), 3u);
  EXPECT_EQ(bits({{16, 7}}, none), 23u);
  // The others: an end, or the way to the last one in steps.
  EXPECT_EQ(bits(none, {{4, 0x00}}), 4u);
  EXPECT_EQ(bits(none, {{2, 0xe0}}), 2u);  // an end for libjpeg, too
  EXPECT_EQ(bits(none, {{1, 0x01}}), 63 * 2u);
  EXPECT_EQ(bits(none, {{1, 0x01}, {2, 0x02}}), 63 * 2u);
  EXPECT_EQ(bits(none, {{1, 0x01}, {2, 0xf0}}), 4 * 2u);
  EXPECT_EQ(bits(none, {{1, 0x01}, {2, 0xf1}}), 4 * 3u);
  EXPECT_EQ(bits(none, {{1, 0x11}}), 32 * 2u);
  EXPECT_EQ(bits(none, {{1, 0x61}, {9, 0x00}}), 9u);
  EXPECT_EQ(bits(none, {{1, 0x61}, {16, 0x0a}}), 9 * 2u);
  EXPECT_EQ(bits(none, {{2, 0x0a}, {3, 0x00}}), 3u);
  EXPECT_EQ(bits(none, none), 0u);
}

// Without tables nothing is known.
TEST(JpegScan, MissingTablesAreLibjpegsToFind) {
  Header header(8, 8, {{1, 1}});
  header.components_[0].dc_tbl_no = NUM_HUFF_TBLS;
  EXPECT_EQ(header.Scan().least_bits, 1u);
  header.components_[0].dc_tbl_no = 1;
  EXPECT_EQ(header.Scan().least_bits, 1u);
  header.components_[0].ac_tbl_no = -1;
  header.cinfo_.dc_huff_tbl_ptrs[NUM_HUFF_TBLS - 1] =
      header.cinfo_.dc_huff_tbl_ptrs[0];  // memory before the others
  EXPECT_EQ(header.Scan().least_bits, 0u);
}

}  // namespace
}  // namespace leat::worker
