// SPDX-License-Identifier: Apache-2.0
//
// Forms and damaged files: the file determines the lost parts, whatever
// decodes.
#include "gtest/gtest.h"
#include "tests/worker/image/jpeg/decode/damaged_jpegs.h"
#include "tests/worker/image/jpeg/forms/support.h"

namespace leat::worker {
namespace {

TEST(JpegFormsOfDamage, AreMadeWithoutAnyOtherMeaningOfIt) {
  JpegDecoder decoder({.max_pixels = 100'000});
  std::mt19937 random(8);
  int refused = 0, made_of_changed = 0;
  uint32_t seed = 0;
  for (const std::string& original : JpegsOfManyKinds()) {
    JpegDamager damager(original, ++seed);
    for (const std::string& copy : damager.Copies(5)) {
      if (!decoder.Open(BytesOf(copy)).ok()) continue;
      const StoredSize size = decoder.header().size;
      for (const bool gray : {false, true}) {
        const Rect window = RandomPart(random, size.width, size.height);
        const WindowOfJpeg plain =
            DecodeJpeg(decoder, BytesOf(copy), window, gray);
        const MadeForms made =
            MakeFormsOf(decoder, BytesOf(copy), window, gray);
        EXPECT_TRUE(made.window.SameAs(plain))
            << made.window.damage << " at " << made.window.sound_rows
            << ", want " << plain.damage << " at " << plain.sound_rows;
        if (!made.seek_index.ok()) {
          ++refused;
          continue;
        }
        ++made_of_changed;
        // Sound, as far as any decoder can tell.
        EXPECT_TRUE(DecodeJpeg(decoder, BytesOf(copy), {}, gray).damage.ok());
        for (const JpegFormKind kind : kMcuFormKinds) {
          const WindowOfJpeg read = DecodeJpeg(decoder, BytesOf(copy), window,
                                               gray, made.of(kind)->get());
          EXPECT_TRUE(read.SameAs(plain)) << FormName(kind);
        }
      }
    }
  }
  EXPECT_GT(refused, 500);
  EXPECT_GT(made_of_changed, 50);
}

TEST(JpegFormsOfDamage, BelowTheWindowSpoilTheFormAndNotTheWindow) {
  JpegDecoder decoder({});
  std::string jpeg = testing::MakeJpeg({.width = 200, .height = 200});
  jpeg = jpeg.substr(0, jpeg.size() * 3 / 4) + "\xff\xd9";
  const Rect window{10, 10, 100, 50};
  const MadeForms made = MakeFormsOf(decoder, BytesOf(jpeg), window);
  EXPECT_TRUE(made.window.damage.ok());
  EXPECT_TRUE(
      made.window.SameAs(DecodeJpeg(decoder, BytesOf(jpeg), window, false)));
  for (const JpegFormKind kind : kMcuFormKinds)
    EXPECT_EQ(made.of(kind).status().code(), absl::StatusCode::kDataLoss);
}

// A seek index leads to the entry before a window in each row, also if the
// window reaches the right side.
TEST(JpegFormsOfDamage, CodesLeftOfAWindowsEntriesAreNotRead) {
  JpegDecoder decoder({});
  const std::string sound = testing::MakeJpeg({.width = 640, .height = 100});
  const MadeForms made = MakeFormsOf(decoder, BytesOf(sound));
  ASSERT_TRUE(made.seek_index.ok());
  const auto& index = dynamic_cast<const SeekIndex&>(**made.seek_index);
  std::string damaged = sound;
  for (uint32_t row = 0; row < index.rows(); ++row) {
    const uint32_t begin = index.At(row, 0).bit_offset / 8 + 2;
    const uint32_t end = index.At(row, 1).bit_offset / 8 - 2;
    damaged.replace(index.header().layout.scan_begin + begin, end - begin,
                    end - begin, '\0');
  }
  const Rect window{560, 0, 80, 100};
  const WindowOfJpeg read =
      DecodeJpeg(decoder, BytesOf(damaged), window, false, &index);
  EXPECT_TRUE(read.used_form);
  EXPECT_TRUE(read.SameAs(DecodeJpeg(decoder, BytesOf(sound), window, false)));
}

}  // namespace
}  // namespace leat::worker
