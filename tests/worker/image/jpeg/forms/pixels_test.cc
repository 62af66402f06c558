// SPDX-License-Identifier: Apache-2.0
//
// Pixels as a form of a JPEG file: a window of them equals its decoding, for
// every kind of sound file, and damage is reported as without them.
#include "worker/image/jpeg/forms/pixels.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/image/jpeg/decode/damaged_jpegs.h"
#include "tests/worker/image/jpeg/forms/support.h"
#include "worker/image/resample/geometry.h"

namespace leat::worker {
namespace {

using ::testing::HasSubstr;
using testing::JpegColor;
using testing::JpegSpec;
using testing::MakeJpeg;

std::vector<JpegSpec> SoundKinds() {
  std::vector<JpegSpec> kinds = {
      {.width = 130, .height = 90, .progressive = true},
      {.width = 90, .height = 70, .restart_interval = 3},
      {.width = 131, .height = 77, .color = JpegColor::kGray, .h = 1, .v = 1},
      {.width = 99, .height = 101, .color = JpegColor::kRgb, .h = 1, .v = 1},
      {.width = 64, .height = 48, .orientation = 6},
      {.width = 1, .height = 1},
      {.width = 3, .height = 200}};
  for (const auto& [h, v] : {std::pair{1, 1}, std::pair{2, 1}, std::pair{1, 2},
                             std::pair{2, 2}, std::pair{4, 1}})
    kinds.push_back({.width = 211, .height = 97, .h = h, .v = v});
  return kinds;
}

TEST(JpegPixels, AreWhatDecodingGives) {
  std::mt19937 random(4);
  JpegDecoder decoder({});
  for (JpegSpec spec : SoundKinds()) {
    spec.seed = static_cast<uint32_t>(random());
    const std::string jpeg = MakeJpeg(spec);
    for (const bool gray : {false, true}) {
      const Rect first = RandomPart(random, spec.width, spec.height);
      const MadePixels made = MakePixelsOf(decoder, BytesOf(jpeg), first, gray);
      ASSERT_TRUE(made.form.ok()) << made.form.status();
      EXPECT_TRUE(
          made.window.SameAs(DecodeJpeg(decoder, BytesOf(jpeg), first, gray)));
      const JpegForm& form = **made.form;
      EXPECT_EQ(form.kind(), JpegFormKind::kPixels);
      EXPECT_TRUE(form.IsOf(BytesOf(jpeg)));
      EXPECT_EQ(form.size_bytes(), static_cast<size_t>(spec.width) *
                                       static_cast<size_t>(spec.height) *
                                       (gray ? 1 : 3));
      for (int i = 0; i < 12; ++i) {
        const Rect window =
            i == 0 ? Rect{} : RandomPart(random, spec.width, spec.height);
        const WindowOfJpeg read =
            DecodeJpeg(decoder, BytesOf(jpeg), window, gray, &form);
        EXPECT_TRUE(read.used_form);
        EXPECT_TRUE(
            read.SameAs(DecodeJpeg(decoder, BytesOf(jpeg), window, gray)));
      }
    }
  }
}

// libjpeg does not make gray from the colours.
TEST(JpegPixels, ServeTheirOwnColoursOnly) {
  JpegDecoder decoder({});
  const std::string jpeg = MakeJpeg({.width = 80, .height = 60});
  for (const bool gray : {false, true}) {
    const MadePixels made = MakePixelsOf(decoder, BytesOf(jpeg), {}, gray);
    ASSERT_TRUE(made.form.ok());
    const WindowOfJpeg read =
        DecodeJpeg(decoder, BytesOf(jpeg), {}, !gray, made.form->get());
    EXPECT_FALSE(read.used_form);
    EXPECT_TRUE(read.SameAs(DecodeJpeg(decoder, BytesOf(jpeg), {}, !gray)));
  }
}

// Pixels serve windows at their own scale, and the index beside them serves all
// others. Files with restart markers have no index.
TEST(JpegPixels, OfASmallerImageServeWindowsOfAllScales) {
  std::mt19937 random(5);
  JpegDecoder decoder({});
  for (JpegSpec spec : SoundKinds()) {
    if (spec.progressive) continue;
    spec.seed = static_cast<uint32_t>(random());
    const std::string jpeg = MakeJpeg(spec);
    const StoredSize whole{spec.height, spec.width};
    const bool has_index = spec.restart_interval == 0;
    for (int kept_at = 1; kept_at <= kMostHalvings; ++kept_at) {
      const bool gray = random() % 2 == 0;
      const int of_window = static_cast<int>(random() % (kMostHalvings + 1));
      const Rect first{0, 0, Halved(whole, of_window).width, 1};
      const MadePixels made = MakePixelsOf(decoder, BytesOf(jpeg), first, gray,
                                           kAnyFormBytes, kept_at, of_window);
      ASSERT_TRUE(made.form.ok()) << made.form.status();
      EXPECT_EQ(made.window.used_form, has_index || of_window == kept_at);
      EXPECT_TRUE(made.window.SameAs(
          DecodeJpeg(decoder, BytesOf(jpeg), first, gray, nullptr, of_window)));
      const JpegForm& form = **made.form;
      EXPECT_TRUE(form.IsOf(BytesOf(jpeg)));
      EXPECT_EQ(form.bytes().size(),
                Pixels::BytesOf(Halved(whole, kept_at), gray));
      EXPECT_EQ(form.size_bytes() > form.bytes().size(), has_index);
      for (int i = 0; i < 24; ++i) {
        const int halvings = i % (kMostHalvings + 1);
        const bool to_gray = i % 8 < 4;
        const StoredSize size = Halved(whole, halvings);
        const Rect window =
            i < 8 ? Rect{} : RandomPart(random, size.width, size.height);
        const WindowOfJpeg read = DecodeJpeg(decoder, BytesOf(jpeg), window,
                                             to_gray, &form, halvings);
        EXPECT_EQ(read.used_form,
                  has_index || (halvings == kept_at && to_gray == gray));
        EXPECT_TRUE(read.SameAs(DecodeJpeg(decoder, BytesOf(jpeg), window,
                                           to_gray, nullptr, halvings)))
            << read.status << ", " << read.damage;
      }
    }
  }
}

// Their coefficients serve windows of all scales.
TEST(JpegPixels, OfASmallerImageAreNotMadeOfProgressiveFiles) {
  JpegDecoder decoder({});
  const std::string jpeg =
      MakeJpeg({.width = 83, .height = 60, .progressive = true});
  const MadePixels made =
      MakePixelsOf(decoder, BytesOf(jpeg), {}, false, kAnyFormBytes, 2, 1);
  EXPECT_EQ(made.form.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(decoder.KeepsPixels());
  EXPECT_TRUE(made.window.SameAs(
      DecodeJpeg(decoder, BytesOf(jpeg), {}, false, nullptr, 1)));
  EXPECT_TRUE(decoder.KeepsPixels()) << "of its full size";
}

TEST(JpegPixels, OfASmallerImageNeedLessRoom) {
  JpegDecoder decoder({});
  const std::string jpeg = MakeJpeg({.width = 83, .height = 60});
  const auto make = [&](size_t max_bytes) {
    return MakePixelsOf(decoder, BytesOf(jpeg), {}, false, max_bytes, 2, 1);
  };
  EXPECT_TRUE(make(21 * 15 * 3).form.ok());
  const MadePixels none = make(21 * 15 * 3 - 1);
  EXPECT_TRUE(none.window.status.ok());
  EXPECT_THAT(std::string(none.form.status().message()),
              HasSubstr("945 bytes, want at most 944"));
  // The next file's pixels are those of its full size again.
  EXPECT_EQ((*MakePixelsOf(decoder, BytesOf(jpeg)).form)->size_bytes(),
            size_t{83 * 60 * 3});
}

TEST(JpegPixels, OfAnotherFileAreNotUsed) {
  JpegDecoder decoder({});
  const std::string jpeg = MakeJpeg({.width = 80, .height = 60});
  const MadePixels made = MakePixelsOf(decoder, BytesOf(jpeg));
  ASSERT_TRUE(made.form.ok());
  const std::string longer = jpeg + '\0';
  const std::string other = MakeJpeg({.width = 60, .height = 80});
  for (const std::string& file : {longer, other}) {
    EXPECT_FALSE((*made.form)->IsOf(BytesOf(file)));
    const WindowOfJpeg read =
        DecodeJpeg(decoder, BytesOf(file), {}, false, made.form->get());
    EXPECT_FALSE(read.used_form);
    EXPECT_TRUE(read.SameAs(DecodeJpeg(decoder, BytesOf(file), {}, false)));
  }
}

TEST(JpegPixels, WhereThereIsNoRoomOrThereAreInksTheFileIsDecodedPlainly) {
  JpegDecoder decoder({});
  const std::string large = MakeJpeg({.width = 80, .height = 60});
  const MadePixels none =
      MakePixelsOf(decoder, BytesOf(large), {}, false, 80 * 60 * 3 - 1);
  EXPECT_TRUE(
      none.window.SameAs(DecodeJpeg(decoder, BytesOf(large), {}, false)));
  EXPECT_FALSE(none.window.used_form);
  EXPECT_EQ(none.form.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(none.form.status().message()),
              HasSubstr("14400 bytes, want at most 14399"));
  for (const JpegColor color : {JpegColor::kCmyk, JpegColor::kYcck}) {
    const std::string inks =
        MakeJpeg({.width = 50, .height = 40, .color = color, .h = 1, .v = 1});
    const MadePixels made = MakePixelsOf(decoder, BytesOf(inks));
    EXPECT_TRUE(
        made.window.SameAs(DecodeJpeg(decoder, BytesOf(inks), {}, false)));
    EXPECT_EQ(made.form.status().code(), absl::StatusCode::kFailedPrecondition);
  }
  // No forms were requested.
  ASSERT_TRUE(decoder.Open(BytesOf(large)).ok());
  EXPECT_EQ(decoder.TakeForm(JpegFormKind::kPixels).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(JpegPixels, AreMadeOfSoundFilesOnlyAndDamageMeansTheSame) {
  JpegDecoder decoder({.max_pixels = 100'000});
  std::mt19937 random(8);
  int refused = 0, made_of_changed = 0;
  uint32_t seed = 0;
  for (const std::string& original : JpegsOfManyKinds()) {
    JpegDamager damager(original, ++seed);
    for (const std::string& copy : damager.Copies(5)) {
      if (!decoder.Open(BytesOf(copy)).ok()) continue;
      const StoredSize size = decoder.header().size;
      const bool gray = random() % 2 == 0;
      const Rect window = RandomPart(random, size.width, size.height);
      const WindowOfJpeg plain =
          DecodeJpeg(decoder, BytesOf(copy), window, gray);
      const MadePixels made =
          MakePixelsOf(decoder, BytesOf(copy), window, gray);
      EXPECT_TRUE(made.window.SameAs(plain))
          << made.window.damage << " at " << made.window.sound_rows << ", want "
          << plain.damage << " at " << plain.sound_rows;
      const int halvings = 1 + static_cast<int>(random() % kMostHalvings);
      const MadePixels smaller = MakePixelsOf(
          decoder, BytesOf(copy), {}, gray, kAnyFormBytes, halvings, halvings);
      for (const int at : {0, halvings})
        EXPECT_TRUE(!smaller.form.ok() ||
                    DecodeJpeg(decoder, BytesOf(copy), {}, gray,
                               smaller.form->get(), at)
                        .SameAs(DecodeJpeg(decoder, BytesOf(copy), {}, gray,
                                           nullptr, at)));
      EXPECT_EQ(smaller.form.ok(),
                made.form.ok() && !decoder.header().progressive)
          << smaller.form.status() << ", " << made.form.status();
      if (!made.form.ok()) {
        ++refused;
        continue;
      }
      ++made_of_changed;
      // Sound, as far as any decoder can tell.
      EXPECT_TRUE(DecodeJpeg(decoder, BytesOf(copy), {}, gray).damage.ok());
      EXPECT_TRUE(
          DecodeJpeg(decoder, BytesOf(copy), window, gray, made.form->get())
              .SameAs(plain));
    }
  }
  EXPECT_GT(refused, 200);
  EXPECT_GT(made_of_changed, 25);
}

}  // namespace
}  // namespace leat::worker
