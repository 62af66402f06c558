// SPDX-License-Identifier: Apache-2.0
#include "worker/image/jpeg/decode/form_maker.h"

#include <algorithm>

#include "gtest/gtest.h"
#include "tests/worker/image/jpeg/forms/support.h"
#include "worker/image/jpeg/forms/pixels.h"

namespace leat::worker {
namespace {

using testing::JpegColor;
using testing::MakeJpeg;

class FormMakerTest : public ::testing::Test {
 protected:
  absl::StatusOr<KeptForm> Make(const std::string& jpeg, JpegFormKind kind,
                                bool gray = false,
                                size_t max_bytes = kAnyFormBytes) {
    return maker_->Make({.file = BytesOf(jpeg),
                         .kind = kind,
                         .gray = gray,
                         .max_bytes = max_bytes},
                        give_up_);
  }
  static bool Same(const KeptForm& made, const absl::StatusOr<Form>& other) {
    return other.ok() && made.form->kind() == (*other)->kind() &&
           made.bytes == (*other)->size_bytes() &&
           std::ranges::equal(made.form->bytes(), (*other)->bytes());
  }

  std::atomic<uint32_t> give_up_{0};
  const std::unique_ptr<FormMaker> maker_ = JpegFormMakers({})();
  JpegDecoder decoder_{{}};
};

TEST_F(FormMakerTest, MakesWhatDecodesMake) {
  for (const bool progressive : {false, true}) {
    const std::string jpeg =
        MakeJpeg({.width = 211, .height = 157, .progressive = progressive});
    const MadeForms by_rows = MakeFormsOf(decoder_, BytesOf(jpeg));
    for (const JpegFormKind kind : kMcuFormKinds) {
      const auto made = Make(jpeg, kind);
      ASSERT_EQ(made.ok(), by_rows.of(kind).ok()) << made.status();
      if (!made.ok()) continue;  // a progressive file's seek index
      EXPECT_EQ(made->kind, kind);
      EXPECT_TRUE(made->whole);
      EXPECT_TRUE(Same(*made, by_rows.of(kind)));
    }
    for (const bool gray : {false, true}) {
      const auto made = Make(jpeg, JpegFormKind::kPixels, gray);
      ASSERT_TRUE(made.ok()) << made.status();
      EXPECT_TRUE(
          Same(*made, MakePixelsOf(decoder_, BytesOf(jpeg), {}, gray).form));
    }
  }
}

TEST_F(FormMakerTest, MakesPixelsAtTheScaleThatIsWanted) {
  const std::string jpeg = MakeJpeg({.width = 211, .height = 157});
  for (int halvings = 1; halvings <= 3; ++halvings) {
    const auto made = maker_->Make({.file = BytesOf(jpeg),
                                    .kind = JpegFormKind::kPixels,
                                    .pixel_halvings = halvings,
                                    .max_bytes = kAnyFormBytes},
                                   give_up_);
    ASSERT_TRUE(made.ok()) << made.status();
    ASSERT_TRUE(decoder_.Open(BytesOf(jpeg), made->form.get()).ok());
    decoder_.Reduce(halvings);
    const StoredSize size = decoder_.size();
    const Rect all{0, 0, size.width, size.height};
    const WindowOfJpeg by_pixels = ReadWindow(decoder_, all, false);
    EXPECT_TRUE(by_pixels.used_form);
    EXPECT_EQ(by_pixels.pixels.size(), made->form->bytes().size());
    ASSERT_TRUE(decoder_.Open(BytesOf(jpeg)).ok());
    decoder_.Reduce(halvings);
    EXPECT_TRUE(by_pixels.SameAs(ReadWindow(decoder_, all, false)));
  }
}

TEST_F(FormMakerTest, GivesUpWhenToldAndGoesOnWithTheNextFile) {
  const std::string plain = MakeJpeg({.width = 300, .height = 200});
  const std::string progressive =
      MakeJpeg({.width = 300, .height = 200, .progressive = true});
  for (const std::string& jpeg : {plain, progressive})
    for (const JpegFormKind kind : kJpegFormKinds) {
      const bool has = kind != JpegFormKind::kSeekIndex || jpeg == plain;
      give_up_ = 1;
      EXPECT_EQ(Make(jpeg, kind).status().code(), absl::StatusCode::kCancelled)
          << FormName(kind);
      give_up_ = 0;
      EXPECT_EQ(Make(jpeg, kind).ok(), has) << FormName(kind);
    }
}

TEST_F(FormMakerTest, SaysWhyThereIsNone) {
  const std::string jpeg = MakeJpeg({.width = 120, .height = 100});
  EXPECT_EQ(Make(jpeg, JpegFormKind::kPixels, false, 100).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Make(jpeg, JpegFormKind::kCoefficients, false, 100).status().code(),
            absl::StatusCode::kResourceExhausted);
  const std::string inks = MakeJpeg(
      {.width = 50, .height = 40, .color = JpegColor::kCmyk, .h = 1, .v = 1});
  EXPECT_EQ(Make(inks, JpegFormKind::kPixels).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Make("no JPEG", JpegFormKind::kPixels).status().code(),
            absl::StatusCode::kInvalidArgument);
  std::string damaged = jpeg;
  for (size_t i = damaged.size() / 2; i < damaged.size() / 2 + 40; ++i)
    damaged[i] = '\xff';
  for (const JpegFormKind kind : kJpegFormKinds)
    EXPECT_EQ(Make(damaged, kind).status().code(), absl::StatusCode::kDataLoss)
        << FormName(kind);
  EXPECT_TRUE(Make(jpeg, JpegFormKind::kPixels).ok());
}

// Rows decode a file whose scans need more memory than a maker may use.
TEST_F(FormMakerTest, LeavesLargeFilesOfSeveralScansToRows) {
  ImageLimits limits;
  limits.max_scratch_bytes = 1000;
  const auto small = JpegFormMakers(limits)();
  const std::string progressive =
      MakeJpeg({.width = 300, .height = 200, .progressive = true});
  EXPECT_EQ(small
                ->Make({.file = BytesOf(progressive),
                        .kind = JpegFormKind::kPixels,
                        .max_bytes = kAnyFormBytes},
                       give_up_)
                .status()
                .code(),
            absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace leat::worker
