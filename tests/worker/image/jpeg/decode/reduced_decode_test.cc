// SPDX-License-Identifier: Apache-2.0
//
// JPEG files decoded at 1/2, 1/4 and 1/8: any window, with any form, equals the
// crop of libjpeg's whole image at that scale; and so does the damage.
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/worker/image/jpeg/decode/damaged_jpegs.h"
#include "tests/worker/image/jpeg/forms/support.h"
#include "worker/image/program/scales_check.h"
#include "worker/image/resample/geometry.h"

namespace leat::worker {
namespace {

using testing::JpegColor;
using testing::JpegSpec;
using testing::MakeJpeg;

WindowOfJpeg DecodeReduced(JpegDecoder& decoder, const std::string& file,
                           int halvings, const Rect& window, bool gray,
                           const JpegForm* form = nullptr) {
  return DecodeJpeg(decoder, BytesOf(file), window, gray, form, halvings);
}

std::vector<uint8_t> CropOf(const testing::DecodedImage& image,
                            const Rect& window, int channels) {
  std::vector<uint8_t> pixels;
  for (int64_t y = window.y; y < window.y + window.height; ++y) {
    const uint8_t* const row =
        image.pixels.data() + (y * image.width + window.x) * channels;
    pixels.insert(pixels.end(), row, row + window.width * channels);
  }
  return pixels;
}

std::vector<JpegSpec> DecodedKinds() {
  std::vector<JpegSpec> kinds;
  const int samplings[][2] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1},
                              {4, 2}, {1, 4}, {2, 4}, {3, 1}, {1, 3}};
  const int sizes[][2] = {{131, 97}, {64, 64}, {17, 200}, {333, 41}, {7, 5}};
  for (const auto& [h, v] : samplings)
    for (const auto& [width, height] : sizes)
      for (const bool progressive : {false, true})
        kinds.push_back({.width = width,
                         .height = height,
                         .h = h,
                         .v = v,
                         .progressive = progressive});
  for (const auto& [width, height] : {std::pair{210, 133}, std::pair{9, 3}})
    for (const JpegColor color : {JpegColor::kGray, JpegColor::kRgb})
      kinds.push_back(
          {.width = width, .height = height, .color = color, .h = 1, .v = 1});
  kinds.push_back({.width = 150, .height = 90, .color = JpegColor::kRgb});
  kinds.push_back({.width = 150, .height = 90, .color = JpegColor::kGray});
  kinds.push_back({.width = 150, .height = 190, .restart_interval = 3});
  kinds.push_back({.width = 150, .height = 90, .arithmetic = true});
  return kinds;
}

TEST(ReducedDecode, WindowsAreThoseOfLibjpegsWholeImage) {
  std::mt19937 random(1);
  JpegDecoder decoder({});
  int windows = 0;
  for (JpegSpec spec : DecodedKinds()) {
    spec.seed = static_cast<uint32_t>(random());
    const std::string file = MakeJpeg(spec);
    for (int halvings = 1; halvings <= kMostHalvings; ++halvings) {
      const bool gray = random() % 2 == 0;
      const testing::DecodedImage whole =
          testing::PlainDecode(file, gray, halvings);
      ASSERT_FALSE(whole.pixels.empty());
      ASSERT_TRUE(decoder.Open(BytesOf(file)).ok());
      ASSERT_TRUE(decoder.header().has_scales);
      decoder.Reduce(halvings);
      ASSERT_EQ(decoder.size(), StoredSize(whole.height, whole.width));
      for (int i = 0; i < 6; ++i, ++windows) {
        const Rect window = i == 0
                                ? Rect{0, 0, whole.width, whole.height}
                                : RandomPart(random, whole.width, whole.height);
        const WindowOfJpeg read =
            DecodeReduced(decoder, file, halvings, window, gray);
        ASSERT_TRUE(read.status.ok() && read.damage.ok()) << read.status;
        ASSERT_EQ(read.sound_rows, whole.height);
        ASSERT_EQ(read.pixels, CropOf(whole, window, gray ? 1 : 3))
            << spec.h << " × " << spec.v << " samples of " << spec.width
            << " × " << spec.height << ", halved " << halvings << " times, at "
            << window.x << ", " << window.y << ": " << window.width << " × "
            << window.height << (spec.progressive ? ", progressive" : "");
      }
    }
  }
  EXPECT_GT(windows, 1500);
}

TEST(ReducedDecode, FormsMakeNoDifference) {
  std::mt19937 random(2);
  JpegDecoder decoder({});
  int used = 0, grown = 0;
  for (JpegSpec spec : DecodedKinds()) {
    if (spec.progressive && spec.width != 131) continue;
    spec.seed = static_cast<uint32_t>(random());
    const std::string file = MakeJpeg(spec);
    const MadeForms made = MakeFormsOf(decoder, BytesOf(file));
    const MadePixels pixels = MakePixelsOf(decoder, BytesOf(file));
    Form index;  // grows
    for (int i = 0; i < 6; ++i) {
      const int halvings = 1 + static_cast<int>(random() % kMostHalvings);
      const StoredSize size =
          Halved(StoredSize(spec.height, spec.width), halvings);
      const Rect window = RandomPart(random, size.width, size.height);
      const bool gray = random() % 2 == 0;
      const WindowOfJpeg plain =
          DecodeReduced(decoder, file, halvings, window, gray);
      for (const JpegFormKind kind : kMcuFormKinds) {
        if (!made.of(kind).ok()) continue;
        const WindowOfJpeg by_form = DecodeReduced(
            decoder, file, halvings, window, gray, made.of(kind)->get());
        EXPECT_TRUE(by_form.used_form);
        ASSERT_TRUE(by_form.SameAs(plain));
        ++used;
      }
      ASSERT_TRUE(pixels.form.ok());
      const WindowOfJpeg by_pixels = DecodeReduced(
          decoder, file, halvings, window, gray, pixels.form->get());
      EXPECT_FALSE(by_pixels.used_form);
      ASSERT_TRUE(by_pixels.SameAs(plain));
      ASSERT_TRUE(decoder.Open(BytesOf(file), index.get()).ok());
      decoder.GrowSeekIndex();
      decoder.Reduce(halvings);
      ASSERT_TRUE(ReadWindow(decoder, window, gray).SameAs(plain));
      if (auto more = decoder.TakeGrown(); more.ok() && *more != nullptr) {
        index = *std::move(more);
        ++grown;
      }
    }
  }
  EXPECT_GT(used, 200);
  EXPECT_GT(grown, 40);
}

// Seek indexes and coefficients do not depend on the scale at which they were
// made.
TEST(ReducedDecode, MakesTheFormsOfTheFullSize) {
  JpegDecoder decoder({});
  const std::string file = MakeJpeg({.width = 203, .height = 155});
  const MadeForms full = MakeFormsOf(decoder, BytesOf(file));
  for (int halvings = 1; halvings <= kMostHalvings; ++halvings) {
    ASSERT_TRUE(decoder.Open(BytesOf(file)).ok());
    decoder.MakeForms({.seek_index = true, .coefficients = true},
                      kAnyFormBytes);
    decoder.Reduce(halvings);
    const WindowOfJpeg read = ReadWindow(decoder, {3, 2, 9, 11}, false);
    EXPECT_TRUE(read.SameAs(
        DecodeReduced(decoder, file, halvings, {3, 2, 9, 11}, false)));
    ASSERT_TRUE(decoder.Open(BytesOf(file)).ok());
    decoder.MakeForms({.seek_index = true, .coefficients = true},
                      kAnyFormBytes);
    decoder.Reduce(halvings);
    ReadWindow(decoder, {3, 2, 9, 11}, false);
    for (const JpegFormKind kind : kMcuFormKinds) {
      const auto form = decoder.TakeForm(kind);
      ASSERT_TRUE(form.ok()) << form.status();
      EXPECT_TRUE(
          std::ranges::equal((*form)->bytes(), (*full.of(kind))->bytes()));
    }
  }
  // The next file has full size again.
  ASSERT_TRUE(decoder.Open(BytesOf(file)).ok());
  EXPECT_EQ(decoder.size(), StoredSize(155, 203));
}

TEST(ReducedDecode, DamageIsTheFilesWhateverWindowIsDecoded) {
  std::mt19937 random(3);
  JpegDecoder decoder({.max_pixels = 100'000});
  int partly = 0, lost = 0;
  uint32_t seed = 0;
  for (const std::string& jpeg : JpegsOfManyKinds())
    for (const std::string& copy : JpegDamager(jpeg, ++seed).Copies(16)) {
      if (!decoder.Open(BytesOf(copy)).ok()) continue;
      const int halvings = 1 + static_cast<int>(random() % kMostHalvings);
      const bool gray = random() % 3 == 0;
      const StoredSize size = Halved(decoder.header().size, halvings);
      const WindowOfJpeg whole = DecodeReduced(
          decoder, copy, halvings, {0, 0, size.width, size.height}, gray);
      if (!whole.status.ok()) continue;
      const int64_t rows = whole.sound_rows;
      ASSERT_EQ(whole.damage.ok(), rows == size.height);
      partly += rows > 0 && rows < size.height;
      lost += rows == 0;
      Form index;
      for (int i = 0; i < 5; ++i) {
        const Rect window = RandomPart(random, size.width, size.height);
        const WindowOfJpeg part =
            DecodeReduced(decoder, copy, halvings, window, gray);
        ASSERT_EQ(part.damage.ok(), window.y + window.height <= rows)
            << window.y << " + " << window.height << " of " << rows;
        ASSERT_EQ(part.sound_rows,
                  part.damage.ok() ? size.height : std::max(rows, window.y));
        ASSERT_TRUE(decoder.Open(BytesOf(copy), index.get()).ok());
        decoder.GrowSeekIndex();
        decoder.Reduce(halvings);
        ASSERT_TRUE(ReadWindow(decoder, window, gray).SameAs(part));
        if (auto more = decoder.TakeGrown(); more.ok() && *more != nullptr)
          index = *std::move(more);
      }
    }
  EXPECT_GT(partly, 50);
  EXPECT_GT(lost, 5);
}

TEST(ReducedDecode, RowsThatGoStraightIntoPlaceAreTheSame) {
  JpegDecoder decoder({});
  const std::string file = MakeJpeg({.width = 99, .height = 77});
  for (int halvings = 1; halvings <= kMostHalvings; ++halvings) {
    const testing::DecodedImage whole =
        testing::PlainDecode(file, false, halvings);
    ASSERT_TRUE(decoder.Open(BytesOf(file)).ok());
    decoder.Reduce(halvings);
    const Rect window{0, 1, whole.width, whole.height - 1};
    ASSERT_TRUE(decoder.CanReadInto(window));
    std::vector<uint8_t> rows(
        static_cast<size_t>(3 * window.width * window.height));
    ASSERT_TRUE(
        decoder.ReadInto(window, false, true, rows.data(), 3 * window.width)
            .ok());
    EXPECT_EQ(rows, CropOf(whole, window, 3));
    EXPECT_FALSE(decoder.BlocksOf(window, false).has_value());
  }
}

// Checks these processors and this library; with JSIMD_FORCENONE=1 it computes
// without SIMD.
TEST(ReducedDecode, TheLibraryIsOneThatPipelinesMayReduceWith) {
  EXPECT_TRUE(CheckScales().ok()) << CheckScales();
}

}  // namespace
}  // namespace leat::worker
