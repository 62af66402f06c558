// SPDX-License-Identifier: Apache-2.0
//
// JpegDecoder::ReadBlocks reads the same from codes and from forms, and nothing
// from a file that libjpeg finds damaged within the window's needs.
#include <algorithm>
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

constexpr int kSamplings[][2] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}};

TEST(JpegBlocks, FormsGiveWhatCodesGive) {
  JpegDecoder decoder{ImageLimits{}};
  std::mt19937 random(3);
  for (const auto& [h, v] : kSamplings) {
    const std::string file =
        MakeJpeg({.width = 700, .height = 90, .h = h, .v = v});
    const MadeForms made = MakeFormsOf(decoder, BytesOf(file));
    for (int i = 0; i < 12; ++i) {
      const Rect window = RandomPart(random, 700, 90);
      const bool gray = i % 3 == 0;
      const auto plain = ByKernels(decoder, BytesOf(file), window, gray);
      ASSERT_TRUE(plain.has_value());
      for (const JpegFormKind kind : kMcuFormKinds) {
        const JpegForm* const form = made.of(kind)->get();
        const auto pixels =
            ByKernels(decoder, BytesOf(file), window, gray, form);
        ASSERT_TRUE(pixels.has_value()) << FormName(kind);
        EXPECT_TRUE(decoder.used_form()) << FormName(kind);
        EXPECT_EQ(*pixels == *plain, true) << FormName(kind);
      }
      const auto& coefficients =
          static_cast<const Coefficients&>(**made.coefficients);
      EXPECT_EQ(ByKernels(decoder, coefficients.file_header(), window, gray,
                          &coefficients),
                plain);
    }
  }
}

// Each reading notes where the MCUs of further rows begin. Readings with such
// an index, and libjpeg's decodes between them, give what codes alone give, and
// an index that has reached the end equals the one that is made at once.
TEST(JpegBlocks, ASeekIndexGrowsWithReadings) {
  JpegDecoder decoder{ImageLimits{}};
  std::mt19937 random(4);
  int times = 0;
  for (const auto& [h, v] : kSamplings) {
    const std::string file =
        MakeJpeg({.width = 301, .height = 203, .h = h, .v = v});
    const MadeForms made = MakeFormsOf(decoder, BytesOf(file));
    ASSERT_TRUE(made.seek_index.ok());
    for (int run = 0; run < 4; ++run) {
      std::unique_ptr<const JpegForm> index;
      for (int step = 0; step < 12; ++step) {
        const bool gray = random() % 4 == 0;
        const Rect window =
            step == 11 ? Rect{0, 0, 301, 203} : RandomPart(random, 301, 203);
        const auto plain = ByKernels(decoder, BytesOf(file), window, gray);
        ASSERT_TRUE(plain.has_value());
        if (step % 4 == 3) {
          ASSERT_TRUE(decoder.Open(BytesOf(file), index.get()).ok());
          decoder.GrowSeekIndex();
          EXPECT_EQ(ReadWindow(decoder, window, gray).pixels == *plain, true);
        } else {
          EXPECT_EQ(ByKernels(decoder, BytesOf(file), window, gray,
                              index.get()) == plain,
                    true);
        }
        auto grown = decoder.TakeGrown();
        ASSERT_TRUE(grown.ok()) << grown.status();
        if (*grown == nullptr) continue;
        index = *std::move(grown);
        ++times;
      }
      ASSERT_NE(index, nullptr);
      ASSERT_TRUE(static_cast<const SeekIndex&>(*index).is_whole());
      EXPECT_TRUE(
          std::ranges::equal(index->bytes(), (*made.seek_index)->bytes()));
    }
  }
  EXPECT_GT(times, 24);  // most grew in several steps
}

TEST(JpegBlocks, AreReadOfSomeKindsOnly) {
  JpegDecoder decoder{ImageLimits{}};
  for (const JpegSpec& spec :
       {JpegSpec{.progressive = true}, JpegSpec{.arithmetic = true},
        JpegSpec{.h = 4, .v = 1}, JpegSpec{.h = 1, .v = 3},
        JpegSpec{.color = JpegColor::kRgb}, JpegSpec{.color = JpegColor::kCmyk},
        JpegSpec{.color = JpegColor::kYcck}}) {
    const std::string file = MakeJpeg(spec);
    ASSERT_TRUE(decoder.Open(BytesOf(file)).ok());
    EXPECT_EQ(decoder.BlocksOf(WholeOf(decoder), false), std::nullopt);
  }
}

// Their codes alone are sent.
TEST(JpegBlocks, AreNotReadOfFilesWithRestartMarkers) {
  JpegDecoder decoder{ImageLimits{}};
  const std::string file = MakeJpeg({.restart_interval = 2});
  EXPECT_EQ(ByKernels(decoder, BytesOf(file), {}, false), std::nullopt);
}

TEST(JpegBlocks, AreNotReadWhereAFormIsToBeMadeOrPixelsAreKept) {
  JpegDecoder decoder{ImageLimits{}};
  const std::string file = MakeJpeg({});
  const MadePixels made = MakePixelsOf(decoder, BytesOf(file));
  ASSERT_TRUE(made.form.ok()) << made.form.status();
  ASSERT_TRUE(decoder.Open(BytesOf(file), made.form->get()).ok());
  EXPECT_EQ(decoder.BlocksOf(WholeOf(decoder), false), std::nullopt);
  ASSERT_TRUE(decoder.Open(BytesOf(file)).ok());
  decoder.MakeForms({.seek_index = true}, kAnyFormBytes);
  EXPECT_EQ(decoder.BlocksOf(WholeOf(decoder), false), std::nullopt);
}

TEST(JpegBlocks, MoreThanThereIsRoomForAreNotRead) {
  JpegDecoder decoder{ImageLimits{}};
  const std::string file = MakeJpeg({.width = 300, .height = 300});
  for (const size_t room : {0, 100, 3000, 20'000})
    EXPECT_EQ(ByKernels(decoder, BytesOf(file), {}, false, nullptr, room),
              std::nullopt);
}

// Requests for a window: blocks are read only from a file that libjpeg finds
// sound, and libjpeg reports the same afterwards as without them.
struct Asked {
  int taken = 0, sound = 0, damaged = 0;

  void Ask(JpegDecoder& decoder, const std::string& file, const Rect& window,
           bool gray, const JpegForm* form = nullptr) {
    const WindowOfJpeg want = DecodeJpeg(decoder, BytesOf(file), window, gray);
    const bool is_sound = want.status.ok() && want.damage.ok();
    ++(is_sound ? sound : damaged);
    if (!decoder.Open(BytesOf(file), form).ok()) return;
    const StoredSize size = decoder.header().size;
    if (window.x + window.width > size.width ||
        window.y + window.height > size.height)
      return;
    const auto of = decoder.BlocksOf(window, gray);
    if (!of) return;
    JpegBlocks blocks;
    const auto read = decoder.ReadBlocks(*of, kAnyFormBytes, &blocks);
    ASSERT_TRUE(read.ok()) << read.status();
    if (!*read) {
      EXPECT_TRUE(ReadWindow(decoder, window, gray).SameAs(want));
      return;
    }
    ++taken;
    ASSERT_TRUE(is_sound) << want.damage;
    EXPECT_EQ(PixelsOf(blocks) == want.pixels, true);
  }
};

TEST(JpegBlocks, AreReadOfSoundFilesOnly) {
  JpegDecoder decoder{ImageLimits{}};
  std::mt19937 random(5);
  Asked asked;
  uint32_t seed = 0;
  for (const std::string& file : JpegsOfManyKinds()) {
    ASSERT_TRUE(decoder.Open(BytesOf(file)).ok());
    const StoredSize size = decoder.header().size;
    for (const std::string& copy :
         JpegDamager(file, ++seed).Copies(testing::kSanitized ? 7 : 1))
      for (int i = 0; i < 3; ++i) {
        // A changed header may make the image smaller.
        StoredSize of = size;
        if (decoder.Open(BytesOf(copy)).ok()) of = decoder.header().size;
        if (of.width > 1000 || of.height > 1000) continue;
        asked.Ask(decoder, copy, RandomPart(random, of.width, of.height),
                  i == 0);
      }
  }
  EXPECT_GT(asked.taken, testing::kSanitized ? 100 : 700);
  EXPECT_GT(asked.damaged, testing::kSanitized ? 100 : 700);
}

// Each row of a file that breaks off in each MCU row: the test knows for each
// row where libjpeg begins to read the MCUs below.
TEST(JpegBlocks, EachRowIsLostWhereItIsLibjpegs) {
  JpegDecoder decoder{ImageLimits{}};
  for (const auto& [h, v] : kSamplings) {
    const std::string file =
        MakeJpeg({.width = 40, .height = 70, .h = h, .v = v});
    for (int cut = 1; cut < 12; ++cut) {
      const std::string copy =
          file.substr(0, file.size() * (12 + static_cast<size_t>(cut)) / 24) +
          "\xff\xd9";
      Asked asked;
      for (int64_t y = 0; y < 70; ++y) {
        asked.Ask(decoder, copy, {5, y, 20, 1}, false);
        asked.Ask(decoder, copy, {5, y, 20, 1}, true);
      }
      // Sound rows are read, all of them.
      EXPECT_EQ(asked.taken, asked.sound) << h << v << cut;
    }
  }
}

// Changed bytes of forms, with a sum that fits them.
TEST(JpegBlocks, FormsThatLieDoNoHarm) {
  JpegDecoder decoder{ImageLimits{}};
  std::mt19937 random(17);
  const std::string file = MakeJpeg({.width = 200, .height = 120});
  const MadeForms made = MakeFormsOf(decoder, BytesOf(file));
  int read = 0, refused = 0;
  for (const JpegFormKind kind : kMcuFormKinds) {
    const auto sound = (*made.of(kind))->bytes();
    for (int i = 0; i < (testing::kSanitized ? 100 : 600); ++i) {
      std::vector<std::byte> bytes(sound.begin(), sound.end());
      for (uint32_t k = 1 + random() % 9; k > 0; --k)
        bytes[48 + random() % (bytes.size() - 48)] =
            static_cast<std::byte>(random());
      const uint32_t sum = Crc32c(std::span(bytes).subspan(8));
      StoreLittle(sum, reinterpret_cast<uint8_t*>(bytes.data()) + 4);
      const auto form = JpegForm::Parse(std::move(bytes));
      if (!form.ok()) continue;
      const Rect window = RandomPart(random, 200, 120);
      if (!decoder.Open(BytesOf(file), form->get()).ok()) continue;
      const auto of = decoder.BlocksOf(window, false);
      ASSERT_TRUE(of.has_value());
      JpegBlocks blocks;
      const auto is_read = decoder.ReadBlocks(*of, kAnyFormBytes, &blocks);
      ASSERT_TRUE(is_read.ok()) << is_read.status();
      ++(*is_read ? read : refused);
      if (*is_read) {
        PixelsOf(blocks);
      } else {
        EXPECT_TRUE(ReadWindow(decoder, window, false).status.ok());
      }
    }
  }
  EXPECT_GT(read, 20);
  EXPECT_GT(refused, 20);
}

}  // namespace
}  // namespace leat::worker
