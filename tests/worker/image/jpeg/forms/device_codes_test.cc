// SPDX-License-Identifier: Apache-2.0
//
// An index leads to the codes of a window in the rows that it knows; without a
// form all codes are taken. Whether they are the right ones,
// tests/worker/gpu/kernels/codes_test.cc and sync_test.cc find out by decoding
// them.
#include "worker/image/jpeg/forms/device_codes.h"

#include <algorithm>

#include "gtest/gtest.h"
#include "tests/worker/image/jpeg/forms/support.h"

namespace leat::worker {
namespace {

using testing::MakeJpeg;

class WindowCodesTest : public ::testing::Test {
 protected:
  bool Find(const std::string& file, const Rect& window, const JpegForm* form,
            bool grow = false) {
    EXPECT_TRUE(decoder_.Open(BytesOf(file), form).ok());
    if (grow) decoder_.GrowSeekIndex();
    return decoder_.FindCodes(*decoder_.BlocksOf(window, false), &codes_)
        .value();
  }

  JpegDecoder decoder_{ImageLimits{}};
  DeviceCodes codes_;
};

// 44 × 13 MCUs, whose rows have three entries.
TEST_F(WindowCodesTest, ARunBeginsAtEachEntryOfTheWindow) {
  const std::string file = MakeJpeg({.width = 700, .height = 203});
  const MadeForms made = MakeFormsOf(decoder_, BytesOf(file));
  const auto& index = static_cast<const SeekIndex&>(**made.seek_index);
  ASSERT_TRUE(Find(file, {330, 40, 200, 50}, &index));
  EXPECT_EQ(codes_.first_group(), 1u);
  EXPECT_EQ(codes_.runs_of_row(), 2u);
  const uint32_t first = codes_.window.first_row;
  ASSERT_EQ(codes_.runs.size(), 2 * codes_.window.rows);
  const uint32_t begin = index.At(first, 1).bit_offset / 8;
  const auto* const file_bytes =
      reinterpret_cast<const uint8_t*>(BytesOf(file).data());
  EXPECT_EQ(codes_.data.data(),
            file_bytes + index.header().layout.scan_begin + begin);
  for (uint32_t i = 0; i < codes_.runs.size(); ++i) {
    const SeekIndex::Entry entry = index.At(first + i / 2, 1 + i % 2);
    const CodeRun& run = codes_.runs[i];
    EXPECT_EQ(run.begin.bit, entry.bit_offset - 8 * begin);
    for (size_t c = 0; c < 3; ++c)
      EXPECT_EQ(run.begin.predictors[c], entry.predictors[c]);
    const uint32_t row = first + i / 2;
    EXPECT_EQ(run.first, 44 * row + (i % 2 == 0 ? 16 : 32));
    EXPECT_EQ(run.end, i % 2 == 0 ? run.first + 16
                                  : 44 * row + codes_.window.first_column +
                                        codes_.window.columns);
  }
  // No more than the window's rows is sent.
  const uint32_t end = index.At(first + codes_.window.rows, 0).bit_offset / 8;
  EXPECT_GE(codes_.data.size(), end - begin);
  EXPECT_LE(codes_.data.size(), end - begin + 2);
}

TEST_F(WindowCodesTest, AreFoundInRowsThatAnIndexKnows) {
  const std::string file = MakeJpeg({.width = 301, .height = 203});
  ASSERT_TRUE(decoder_.Open(BytesOf(file)).ok());
  decoder_.GrowSeekIndex();
  JpegBlocks blocks;
  const auto read = decoder_.ReadBlocks(
      *decoder_.BlocksOf({10, 0, 50, 60}, false), kAnyFormBytes, &blocks);
  ASSERT_TRUE(read.ok() && *read);
  const auto index = decoder_.TakeGrown();
  ASSERT_TRUE(index.ok() && *index != nullptr);
  ASSERT_FALSE(static_cast<const SeekIndex&>(**index).is_whole());
  // An index of too few rows is as good as none.
  ASSERT_TRUE(Find(file, {100, 5, 180, 100}, index->get(), /*grow=*/true));
  EXPECT_FALSE(decoder_.used_form());
  EXPECT_TRUE(codes_.runs.empty());
  EXPECT_TRUE(codes_.leaves_index);
  // Nothing is learned from known rows, and nothing is refused.
  ASSERT_TRUE(Find(file, {100, 5, 180, 50}, index->get(), /*grow=*/true));
  EXPECT_TRUE(decoder_.used_form());
  EXPECT_FALSE(codes_.leaves_index);
  const auto grown = decoder_.TakeGrown();
  ASSERT_TRUE(grown.ok()) << grown.status();
  EXPECT_EQ(*grown, nullptr);
}

TEST_F(WindowCodesTest, AreNotFoundByOtherForms) {
  const std::string file = MakeJpeg({});
  const MadeForms made = MakeFormsOf(decoder_, BytesOf(file));
  const MadeForms other = MakeFormsOf(decoder_, BytesOf(MakeJpeg({.seed = 7})));
  for (const JpegForm* form :
       {made.coefficients->get(), other.seek_index->get()}) {
    EXPECT_FALSE(Find(file, {0, 0, 64, 48}, form));
    EXPECT_FALSE(decoder_.used_form());
  }
}

TEST_F(WindowCodesTest, WithoutAFormAreThoseOfTheScan) {
  const std::string file = MakeJpeg({.width = 300});
  ASSERT_TRUE(Find(file, {200, 10, 50, 8}, nullptr, /*grow=*/true));
  EXPECT_FALSE(decoder_.used_form());
  EXPECT_TRUE(codes_.runs.empty());
  const auto* const file_end =
      reinterpret_cast<const uint8_t*>(file.data()) + file.size();
  EXPECT_EQ(codes_.data.data() + codes_.data.size(), file_end);
  EXPECT_EQ(file.substr(file.size() - codes_.data.size() - 3, 3),
            std::string("\0\x3f\0", 3));  // the end of the scan's header
  // Nothing is learned, and nothing is refused.
  const auto grown = decoder_.TakeGrown();
  ASSERT_TRUE(grown.ok()) << grown.status();
  EXPECT_EQ(*grown, nullptr);
}

// 6 × 5 MCUs, and the window needs the first two rows.
TEST_F(WindowCodesTest, ARunBeginsBehindEachRestartMarker) {
  const std::string file =
      MakeJpeg({.width = 90, .height = 70, .restart_interval = 5});
  ASSERT_TRUE(Find(file, {40, 18, 20, 8}, nullptr, /*grow=*/true));
  ASSERT_EQ(codes_.window.end_row, 2u);
  ASSERT_EQ(codes_.runs.size(), 3u);
  EXPECT_TRUE(codes_.restarts);
  EXPECT_FALSE(codes_.leaves_index);
  for (uint32_t i = 0; i < 3; ++i) {
    const uint32_t at = codes_.runs[i].begin.bit / 8;
    EXPECT_EQ(codes_.runs[i].first, 5 * i);
    EXPECT_EQ(codes_.runs[i].end, std::min(12u, 5 * i + 5));
    if (i == 0) continue;
    EXPECT_EQ(codes_.data[at - 1], 0xd0 + i - 1);
  }
  // The file gets no index.
  EXPECT_FALSE(decoder_.TakeGrown().ok());
}

// The tables of a file that libjpeg refuses are not sent.
TEST_F(WindowCodesTest, OfAFileThatLibjpegRefusesAreNotFound) {
  std::string file = MakeJpeg({.width = 300});
  const size_t table = file.find("\xff\xc4");
  ASSERT_NE(table, std::string::npos);
  // Three codes of one bit, and as many fewer of three.
  ASSERT_EQ(file.substr(table + 5, 3), std::string("\0\1\5", 3));
  file[table + 5] = 3;
  file[table + 7] = 2;
  const Rect window{0, 0, 64, 40};
  ASSERT_TRUE(decoder_.Open(BytesOf(file)).ok());
  EXPECT_FALSE(
      decoder_.FindCodes(*decoder_.BlocksOf(window, false), &codes_).value());
  EXPECT_FALSE(decoder_.Start(window, false).ok() && decoder_.damage().ok());
}

}  // namespace
}  // namespace leat::worker
