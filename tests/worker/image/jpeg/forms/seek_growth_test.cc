// SPDX-License-Identifier: Apache-2.0
//
// Seek indexes that windows' decodes make on the way and later ones extend:
// pixels and damage are those of a plain decode, and an index that has reached
// the end of the file equals the one made by one decode of all of it.
#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/jpeg_maker.h"
#include "tests/worker/image/jpeg/decode/damaged_jpegs.h"
#include "tests/worker/image/jpeg/forms/support.h"

namespace leat::worker {
namespace {

using testing::JpegColor;
using testing::MakeJpeg;

// One file, whose index grows from window to window.
class Growth {
 public:
  explicit Growth(const std::string& file) : file_(BytesOf(file)) {}

  WindowOfJpeg Decode(const Rect& window, bool gray) {
    WindowOfJpeg read;
    read.status = decoder_.Open(file_, form_.get());
    if (!read.status.ok()) return read;
    decoder_.GrowSeekIndex();
    read = ReadWindow(decoder_, window.width == 0 ? WholeOf(decoder_) : window,
                      gray);
    auto grown = decoder_.TakeGrown();
    last = grown.status();
    EXPECT_TRUE(form_ == nullptr || read.used_form || !last.ok());
    if (grown.ok() && *grown != nullptr) {
      const uint32_t before = index() == nullptr ? 0 : index()->rows();
      form_ = *std::move(grown);
      EXPECT_GT(index()->rows(), before);
      ++times;
    }
    return read;
  }
  const SeekIndex* index() const {
    return static_cast<const SeekIndex*>(form_.get());
  }

  absl::Status last;  // of TakeGrown
  int times = 0;      // how often it became longer

 private:
  const std::span<const std::byte> file_;
  JpegDecoder decoder_{ImageLimits{}};
  Form form_;
};

std::vector<std::string> SequentialFiles() {
  std::vector<std::string> files;
  uint32_t seed = 0;
  for (const auto& [h, v] :
       {std::pair{1, 1}, std::pair{2, 1}, std::pair{1, 2}, std::pair{2, 2}})
    for (const int width : {40, 331})
      files.push_back(MakeJpeg({.width = width + h,
                                .height = 170 - 7 * v,
                                .h = h,
                                .v = v,
                                .seed = ++seed}));
  files.push_back(MakeJpeg(
      {.width = 131, .height = 77, .color = JpegColor::kGray, .h = 1, .v = 1}));
  files.push_back(MakeJpeg(
      {.width = 99, .height = 101, .color = JpegColor::kYcck, .h = 1, .v = 1}));
  return files;
}

TEST(SeekGrowth, WindowsAreThoseOfAPlainDecodeAndTheEndIsTheWholeIndex) {
  std::mt19937 random(3);
  JpegDecoder decoder(ImageLimits{});
  int times = 0;
  for (const std::string& file : SequentialFiles()) {
    const MadeForms made = MakeFormsOf(decoder, BytesOf(file));
    ASSERT_TRUE(made.seek_index.ok());
    ASSERT_TRUE(decoder.Open(BytesOf(file)).ok());
    const Rect whole = WholeOf(decoder);
    for (int run = 0; run < 3; ++run) {
      Growth growth(file);
      for (int step = 0; step < 8; ++step) {
        const Rect window =
            step == 7 ? whole : RandomPart(random, whole.width, whole.height);
        const bool gray = random() % 4 == 0;
        const WindowOfJpeg plain =
            DecodeJpeg(decoder, BytesOf(file), window, gray);
        ASSERT_TRUE(growth.Decode(window, gray).SameAs(plain));
        ASSERT_TRUE(growth.last.ok()) << growth.last;
      }
      ASSERT_NE(growth.index(), nullptr);
      ASSERT_TRUE(growth.index()->is_whole());
      EXPECT_TRUE(std::ranges::equal(growth.index()->bytes(),
                                     (*made.seek_index)->bytes()));
      times += growth.times;
    }
  }
  EXPECT_GT(times, 40);  // most grew in several steps
}

// In a file as long as this, several unwanted coefficients are skipped at once,
// just as strictly.
TEST(SeekGrowth, LongScansAreLookedOver) {
  std::mt19937 random(12);
  JpegDecoder decoder(ImageLimits{});
  const std::string file =
      MakeJpeg({.width = 1100, .height = 900, .quality = 97});
  ASSERT_GT(file.size(), size_t{300} << 10);
  std::vector<std::string> files = {file, file};
  for (int i = 0; i < 16; ++i) {
    files.push_back(file);
    files.back()[file.size() / 8 + random() % (file.size() / 2)] ^=
        static_cast<char>(1 << random() % 8);
  }
  for (const std::string& each : files) {
    Growth growth(each);
    for (int i = 0; i < 2; ++i) {
      const Rect window{.x = 600, .y = 300 + 200 * i, .width = 60, .height = 9};
      EXPECT_TRUE(
          growth.Decode(window, i == 0)
              .SameAs(DecodeJpeg(decoder, BytesOf(each), window, i == 0)));
    }
  }
}

// The tables that both files have look over, and those of colours do not.
TEST(SeekGrowth, ALongGrayFileMayComeBeforeAShortOneInColours) {
  JpegDecoder decoder(ImageLimits{}), plain(ImageLimits{});
  const std::string gray = MakeJpeg({.width = 500,
                                     .height = 400,
                                     .color = JpegColor::kGray,
                                     .h = 1,
                                     .v = 1,
                                     .quality = 97});
  const std::string colours = MakeJpeg({.width = 330, .height = 200});
  ASSERT_GT(gray.size(), size_t{70} << 10);
  ASSERT_LT(colours.size(), size_t{60} << 10);
  const Rect window{.x = 200, .y = 100, .width = 60, .height = 9};
  for (const std::string& each : {gray, colours}) {
    ASSERT_TRUE(decoder.Open(BytesOf(each)).ok());
    decoder.GrowSeekIndex();
    EXPECT_TRUE(ReadWindow(decoder, window, false)
                    .SameAs(DecodeJpeg(plain, BytesOf(each), window, false)));
    EXPECT_TRUE(decoder.TakeGrown().ok());
  }
}

// The index ends with the window's last row of MCUs, and the next window begins
// there.
TEST(SeekGrowth, GoesNoFurtherThanTheWindow) {
  const std::string file = MakeJpeg({.width = 640, .height = 480});
  Growth growth(file);
  growth.Decode({100, 64, 80, 64}, false);
  ASSERT_NE(growth.index(), nullptr);
  EXPECT_FALSE(growth.index()->is_whole());
  const uint32_t rows = growth.index()->rows();
  EXPECT_GE(rows, 8u);
  EXPECT_LE(rows, 10u);
  growth.Decode({0, 0, 640, 100}, false);
  EXPECT_EQ(growth.index()->rows(), rows);
  EXPECT_EQ(growth.times, 1);
  growth.Decode({0, 400, 640, 80}, false);
  EXPECT_TRUE(growth.index()->is_whole());
  EXPECT_EQ(growth.times, 2);
}

// Other processes never take a part for an index of the whole file.
TEST(SeekGrowth, APartIsNoFormOutsideOfTheProcess) {
  const std::string file = MakeJpeg({.width = 640, .height = 480});
  Growth growth(file);
  growth.Decode({0, 0, 640, 100}, false);
  const auto bytes = growth.index()->bytes();
  EXPECT_EQ(JpegForm::Parse(std::vector<std::byte>(bytes.begin(), bytes.end()))
                .status()
                .code(),
            absl::StatusCode::kDataLoss);
  EXPECT_FALSE(growth.index()->IsOf(BytesOf(file)));
}

TEST(SeekGrowth, DamageIsThatOfAPlainDecode) {
  std::mt19937 random(4);
  JpegDecoder decoder(ImageLimits{});
  int damaged = 0, grown = 0;
  uint32_t seed = 0;
  for (const std::string& file : SequentialFiles()) {
    JpegDamager damager(file, ++seed);
    for (const std::string& copy : damager.Copies(24)) {
      if (!decoder.Open(BytesOf(copy)).ok()) continue;
      const Rect whole = WholeOf(decoder);
      Growth growth(copy);
      for (int step = 0; step < 6; ++step) {
        const Rect window = RandomPart(random, whole.width, whole.height);
        const WindowOfJpeg plain =
            DecodeJpeg(decoder, BytesOf(copy), window, false);
        const WindowOfJpeg read = growth.Decode(window, false);
        ASSERT_TRUE(read.SameAs(plain)) << plain.damage << read.damage;
        if (plain.damage.ok()) continue;
        ++damaged;
        EXPECT_FALSE(growth.last.ok());
      }
      grown += growth.times;
    }
  }
  EXPECT_GT(damaged, 20);
  EXPECT_GT(grown, 20);
}

TEST(SeekGrowth, KindsWithoutOneSaySoAndAreDecoded) {
  JpegDecoder decoder(ImageLimits{});
  for (const std::string& file :
       {MakeJpeg({.width = 130, .height = 90, .progressive = true}),
        MakeJpeg({.width = 90, .height = 70, .restart_interval = 3})}) {
    const WindowOfJpeg plain = DecodeJpeg(decoder, BytesOf(file), {}, false);
    Growth growth(file);
    EXPECT_TRUE(growth.Decode({}, false).SameAs(plain));
    EXPECT_EQ(growth.last.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(growth.index(), nullptr);
  }
}

}  // namespace
}  // namespace leat::worker
