// SPDX-License-Identifier: Apache-2.0
//
// Kernels that decode codes, beside the host's reading of the same codes and
// beside libjpeg: what they accept has the same pixels, and they accept what
// the host does.
#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <utility>

#include "core/crc32c.h"
#include "gtest/gtest.h"
#include "tests/support/sanitized.h"
#include "tests/worker/gpu/kernels/jpeg_support.h"
#include "tests/worker/image/jpeg/decode/damaged_jpegs.h"

namespace leat::worker {
namespace {

using testing::JpegColor;
using testing::JpegSpec;
using testing::MakeJpeg;

constexpr int kCodedSamplings[][2] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}};

std::unique_ptr<const JpegForm> IndexOf(JpegDecoder& decoder,
                                        const std::string& file) {
  MadeForms made = MakeFormsOf(decoder, BytesOf(file));
  EXPECT_TRUE(made.seek_index.ok()) << made.seek_index.status();
  return made.seek_index.ok() ? *std::move(made.seek_index) : nullptr;
}

TEST(JpegCodes, HaveLibjpegsPixelsInEverySampling) {
  JpegDecoder decoder{ImageLimits{}};
  std::mt19937 random(3);
  for (const auto& [h, v] : kCodedSamplings)
    for (const int quality : {5, 60, 100}) {
      // More than 16 MCUs a row, and a last run that is not whole.
      const std::string file = MakeJpeg(
          {.width = 700, .height = 90, .h = h, .v = v, .quality = quality});
      const auto index = IndexOf(decoder, file);
      for (int i = 0; i < 12; ++i) {
        const Rect window =
            i == 0 ? Rect{0, 0, 700, 90} : RandomPart(random, 700, 90);
        const bool gray = i % 3 == 0;
        const ByCodes by =
            DecodeByCodes(decoder, file, window, gray, index.get());
        ASSERT_TRUE(by.found);
        const WindowOfJpeg want =
            DecodeJpeg(decoder, BytesOf(file), window, gray);
        EXPECT_EQ(by.pixels == want.pixels, true) << h << v << quality;
      }
    }
}

TEST(JpegCodes, HaveLibjpegsPixelsOfGrayFilesAndOfOnePixel) {
  JpegDecoder decoder{ImageLimits{}};
  for (const JpegSpec& spec :
       {JpegSpec{.width = 150,
       .height = 20,
       .color = JpegColor::kGray,
       .h = 1,
       .v = 1},
        JpegSpec{.width = 1, .height = 1},
        JpegSpec{.width = 17, .height = 300, .h = 1, .v = 2}}) {
    const std::string file = MakeJpeg(spec);
    const auto index = IndexOf(decoder, file);
    const Rect whole{0, 0, spec.width, spec.height};
    for (const bool gray : {false, true})
      EXPECT_EQ(DecodeByCodes(decoder, file, whole, gray, index.get()).pixels ==
                    DecodeJpeg(decoder, BytesOf(file), whole, gray).pixels,
                true);
  }
}

// Requests for windows of a file with an index that need not fit it.
struct Compared {
  int taken = 0, refused = 0;

  void Ask(JpegDecoder& decoder, const std::string& file, const Rect& window,
           bool gray, const JpegForm& index) {
    const ByCodes by = DecodeByCodes(decoder, file, window, gray, &index);
    if (!by.found) return;
    const auto host = ByKernels(decoder, BytesOf(file), window, gray, &index);
    ++(by.pixels ? taken : refused);
    // A device sees the data up to the next entry only, and may refuse more.
    EXPECT_TRUE(!by.pixels || by.pixels == host);
  }
};

// Data of several runs a row that were damaged after the index was made, so that it leads into the
// middle of codes.
TEST(JpegCodes, AreTakenOrRefusedAsTheHostDoes) {
  JpegDecoder decoder{ImageLimits{}};
  std::mt19937 random(5);
  Compared compared;
  uint32_t seed = 0;
  std::vector<std::string> files = JpegsOfManyKinds();
  files.push_back(MakeJpeg({.width = 620, .height = 40}));
  files.push_back(MakeJpeg({.width = 620, .height = 20, .h = 1, .v = 1}));
  for (const std::string& file : files) {
    MadeForms made = MakeFormsOf(decoder, BytesOf(file));
    if (!made.seek_index.ok()) continue;
    ASSERT_TRUE(decoder.Open(BytesOf(file)).ok());
    const StoredSize size = decoder.header().size;
    for (std::string copy :
         JpegDamager(file, ++seed).Copies(testing::kSanitized ? 17 : 3)) {
      copy.resize(file.size(), '\xd9');  // the index fits only its length
      for (int i = 0; i < 3; ++i)
        compared.Ask(decoder, copy, RandomPart(random, size.width, size.height),
                     i == 0, **made.seek_index);
    }
  }
  EXPECT_GT(compared.taken, testing::kSanitized ? 30 : 200);
  EXPECT_GT(compared.refused, testing::kSanitized ? 30 : 200);
}

// Changed bytes of an index, with a sum that fits them.
TEST(JpegCodes, AnIndexThatLiesDoesNoHarm) {
  JpegDecoder decoder{ImageLimits{}};
  std::mt19937 random(17);
  const std::string file = MakeJpeg({.width = 400, .height = 120});
  const auto sound = IndexOf(decoder, file);
  Compared compared;
  for (int i = 0; i < (testing::kSanitized ? 100 : 400); ++i) {
    std::vector<std::byte> bytes(sound->bytes().begin(), sound->bytes().end());
    for (uint32_t k = 1 + random() % 3; k > 0; --k)
      bytes[48 + random() % (bytes.size() - 48)] ^=
          static_cast<std::byte>(1 << random() % 8);
    const uint32_t sum = Crc32c(std::span(bytes).subspan(8));
    StoreLittle(sum, reinterpret_cast<uint8_t*>(bytes.data()) + 4);
    const auto index = JpegForm::Parse(std::move(bytes));
    if (!index.ok()) continue;
    compared.Ask(decoder, file, RandomPart(random, 400, 120), false, **index);
  }
  EXPECT_GT(compared.taken, 10);
  EXPECT_GT(compared.refused, 10);
}

// Windows of a file with restart markers. Returns how many kernels have decoded
// from them; each has libjpeg's pixels.
int CountMarked(JpegDecoder& decoder, const std::string& file) {
  std::mt19937 random(11);
  int marked = 0;
  EXPECT_TRUE(decoder.Open(BytesOf(file)).ok());
  const StoredSize size = decoder.header().size;
  for (int i = 0; i < 6; ++i) {
    const Rect window = i == 0 ? Rect{0, 0, size.width, size.height}
                               : RandomPart(random, size.width, size.height);
    const ByCodes by =
        DecodeByCodes(decoder, file, window, i % 3 == 1, nullptr);
    if (!by.found || !by.pixels) continue;
    ++marked;
    const WindowOfJpeg want =
        DecodeJpeg(decoder, BytesOf(file), window, i % 3 == 1);
    EXPECT_TRUE(want.status.ok() && want.damage.ok()) << want.damage;
    EXPECT_EQ(by.pixels == want.pixels, true);
  }
  return marked;
}

// Intervals that are parts of a row, of several rows, and longer than the file.
TEST(JpegCodes, BeginAtRestartMarkers) {
  JpegDecoder decoder{ImageLimits{}};
  for (const auto& [h, v] : kCodedSamplings)
    for (const int interval : {1, 3, 11, 40, 77, 60'000})
      EXPECT_EQ(CountMarked(decoder, MakeJpeg({.width = 170,
                                               .height = 130,
                                               .h = h,
                                               .v = v,
                                               .restart_interval = interval})),
                6)
          << h << v << ' ' << interval;
}

// Returns the place of the `count`-th marker of a file's scan.
size_t RestartAt(const std::string& file, int count) {
  size_t at = file.find("\xff\xda");
  for (; count >= 0; --count) do
      at = file.find('\xff', at + 1);
    while ((file[at + 1] & 0xf8) != 0xd0);
  return at;
}

// Bytes that libjpeg skips before a marker are skipped. All else that is odd is
// left to libjpeg, if a window depends on it: 12 × 9 MCUs, and the third marker is in
// the second row.
TEST(JpegCodes, OfOddRestartMarkersAreLibjpegs) {
  JpegDecoder decoder{ImageLimits{}};
  const std::string file =
      MakeJpeg({.width = 180, .height = 130, .restart_interval = 5});
  const size_t at = RestartAt(file, 2);
  ASSERT_EQ(CountMarked(decoder, file), 6);
  for (const char* skipped : {"\xff\xff", "\x55\x66", "\x55\xff"})
    EXPECT_EQ(CountMarked(decoder, std::string(file).insert(at, skipped)), 6);
  std::string number = file;
  number[at + 1] ^= 1;
  for (const std::string& odd :
       {std::string(file).erase(at, 2), number,
        std::string(file).insert(at, file.substr(at, 2)),
        std::string(file).insert(at + 9, "\xff\xd3"),
        std::string(file).erase(at - 3, 3)}) {
    EXPECT_EQ(
        DecodeByCodes(decoder, odd, {0, 0, 180, 130}, false, nullptr).pixels,
        std::nullopt);
    const ByCodes above =
        DecodeByCodes(decoder, odd, {0, 0, 180, 9}, true, nullptr);
    EXPECT_EQ(
        above.pixels ==
            DecodeJpeg(decoder, BytesOf(file), {0, 0, 180, 9}, true).pixels,
        true);
  }
}

// Coefficients so large that libjpeg's IDCTs differ: every quantiser is 255.
TEST(JpegCodes, BlocksThatAreNotExactAreRefused) {
  JpegDecoder decoder{ImageLimits{}};
  std::string file = MakeJpeg({.width = 80, .height = 40, .quality = 100});
  for (size_t at = 0; (at = file.find("\xff\xdb", at)) != std::string::npos;
       at += 2)
    std::fill_n(file.begin() + static_cast<ptrdiff_t>(at) + 5, 64, '\xff');
  const auto index = IndexOf(decoder, file);
  const Rect whole{0, 0, 80, 40};
  const ByCodes by = DecodeByCodes(decoder, file, whole, false, index.get());
  EXPECT_TRUE(by.found);
  EXPECT_EQ(by.pixels, std::nullopt);
  EXPECT_EQ(ByKernels(decoder, BytesOf(file), whole, false, index.get()),
            std::nullopt);
}

}  // namespace
}  // namespace leat::worker
