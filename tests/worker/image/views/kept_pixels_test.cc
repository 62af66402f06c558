// SPDX-License-Identifier: Apache-2.0
//
// Images of formats other than JPEG whose pixels are kept have the pixels and
// the errors of images that are decoded.
#include "worker/image/views/kept_pixels.h"

#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/image_maker.h"
#include "tests/worker/image/program/support.h"
#include "worker/image/views/encoded_image.h"

namespace leat::worker {
namespace {

using ::testing::HasSubstr;
using testing::MakeBmp;
using testing::MakeJpeg2000;
using testing::MakePicture;
using testing::MakePng;
using testing::MakeTiff;
using testing::MakeWebp;
using testing::Picture;

constexpr Colours kEveryColour[] = {Colours::kRgb, Colours::kGray,
                                    Colours::kBgr, Colours::kYcbcr};

// Wants all pixels up to a size, and returns what it was given.
class PixelKeeper final : public FormKeeper {
 public:
  FormWish Begin(std::span<const std::byte> file, DecodeClass decode) override {
    EXPECT_EQ(decode, DecodeClass::kOtherFormat);
    file_ = file.data();
    ++begun;
    FormWish wish{.use = kept_[file_], .make = {}, .max_bytes = max_bytes};
    wish.make.pixels = wish.use.form == nullptr;
    return wish;
  }
  void End(FormAnswer answer) override {
    answers.push_back(answer);
    for (const KeptForm& form : answer.made) kept_[file_] = form;
  }
  // A second passes between two calls.
  MonotonicTime Now() const override {
    return MonotonicTime(std::chrono::seconds(++calls_));
  }
  // Gives a file another file's pixels.
  void Mix(const std::string& file, const std::string& others) {
    kept_[AsSpan(file).data()] = kept_[AsSpan(others).data()];
  }

  size_t max_bytes = 1 << 20;
  int begun = 0;
  std::vector<FormAnswer> answers;

 private:
  std::map<const std::byte*, KeptForm> kept_;
  const std::byte* file_ = nullptr;
  mutable int calls_ = 0;
};

class KeptPixelsTest : public ::testing::Test {
 protected:
  // Returns the window of 23 × 17 pixels at (9, 5), resized to 31 × 12.
  absl::StatusOr<std::vector<std::byte>> Decode(const std::string& file,
                                                Colours colours, bool orient,
                                                FormKeeper* keeper) {
    ASSIGN_OR_RETURN(
        EncodedImage image,
        EncodedImage::Open(AsSpan(file), orient, scratch_, keeper));
    View view(image.size());
    view.Crop({9, 5, 23, 17});
    view.Resize(ImageSize{12, 31}, {});
    std::vector<std::byte> out(static_cast<size_t>(12 * 31) *
                               static_cast<size_t>(ChannelsOf(colours)));
    std::optional<DamagedView> damage;
    RETURN_IF_ERROR(
        image.Run(view, colours, true, scratch_, out.data(), &damage));
    return out;
  }

  ImageScratch scratch_{ImageLimits{}};
  PixelKeeper keeper_;
};

TEST_F(KeptPixelsTest, ServeAllColoursWindowsAndTurns) {
  const Picture rgb = MakePicture(61, 45, 3), gray = MakePicture(61, 45, 1);
  const std::string kFiles[] = {MakePng(rgb),
                                MakePng(gray, {.orientation = 3}),
                                MakePng(MakePicture(61, 45, 4, 16)),
                                MakeBmp(rgb),
                                MakeWebp(rgb, {.orientation = 5}),
                                MakeTiff(gray, {.orientation = 8}),
                                MakeJpeg2000(rgb)};
  for (const std::string& file : kFiles)
    for (const bool orient : {false, true})
      for (const Colours colours : kEveryColour) {
        const auto want = Decode(file, colours, orient, nullptr);
        ASSERT_TRUE(want.ok()) << want.status();
        for (int round = 0; round < 2; ++round) {
          const auto got = Decode(file, colours, orient, &keeper_);
          ASSERT_TRUE(got.ok()) << got.status();
          EXPECT_EQ(*got, *want);
        }
      }
  size_t made = 0, used = 0;
  for (const FormAnswer& answer : keeper_.answers) {
    made += answer.made.size();
    used += answer.used == JpegFormKind::kPixels;
    EXPECT_FALSE(answer.refused.any());
  }
  EXPECT_EQ(made, std::size(kFiles)) << "one form serves all colours";
  EXPECT_EQ(made + used, keeper_.answers.size());
}

TEST_F(KeptPixelsTest, ThatAreTooLargeAreRefusedAndNotMade) {
  const std::string file = MakePng(MakePicture(61, 45, 3));
  keeper_.max_bytes = 61 * 45 * 3 - 1;
  const auto got = Decode(file, Colours::kRgb, true, &keeper_);
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(*got, *Decode(file, Colours::kRgb, true, nullptr));
  ASSERT_EQ(keeper_.answers.size(), 1u);
  EXPECT_TRUE(keeper_.answers[0].made.empty());
  EXPECT_TRUE(keeper_.answers[0].refused.pixels);
  EXPECT_EQ(keeper_.answers[0].making, Duration(0));
  keeper_.max_bytes = 61 * 45 * 3;
  ASSERT_TRUE(Decode(file, Colours::kRgb, true, &keeper_).ok());
  ASSERT_EQ(keeper_.answers[1].made.size(), 1u);
  EXPECT_EQ(keeper_.answers[1].made[0].kind, JpegFormKind::kPixels);
  EXPECT_GE(keeper_.answers[1].made[0].bytes, 61u * 45 * 3);
}

// New memory, and the form around the pixels.
TEST_F(KeptPixelsTest, SayWhatTheyCostBesideTheDecode) {
  const std::string file = MakePng(MakePicture(61, 45, 3));
  for (int round = 0; round < 2; ++round)
    ASSERT_TRUE(Decode(file, Colours::kRgb, true, &keeper_).ok());
  EXPECT_EQ(keeper_.answers[0].making, std::chrono::seconds(2));
  EXPECT_EQ(keeper_.answers[1].making, std::nullopt) << "none was made";
}

TEST_F(KeptPixelsTest, AreNotMadeOfADamagedFile) {
  std::string damaged = MakePng(MakePicture(61, 45, 3));
  damaged[damaged.size() - 40] ^= 1;
  for (int round = 0; round < 2; ++round) {
    const auto got = Decode(damaged, Colours::kRgb, true, &keeper_);
    EXPECT_EQ(got.status().code(), absl::StatusCode::kDataLoss);
    EXPECT_EQ(got.status(),
              Decode(damaged, Colours::kRgb, true, nullptr).status());
  }
  EXPECT_EQ(keeper_.begun, 2);
  EXPECT_TRUE(keeper_.answers.empty());
}

TEST_F(KeptPixelsTest, OfAnotherImageAreNotUsed) {
  const std::string file = MakeBmp(MakePicture(61, 45, 3)),
                    wider = MakeBmp(MakePicture(62, 45, 3));
  ASSERT_TRUE(Decode(file, Colours::kRgb, true, &keeper_).ok());
  keeper_.Mix(wider, file);
  const auto got = Decode(wider, Colours::kRgb, true, &keeper_);
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(*got, *Decode(wider, Colours::kRgb, true, nullptr));
  EXPECT_EQ(keeper_.answers[1].used, std::nullopt);
}

}  // namespace
}  // namespace leat::worker
