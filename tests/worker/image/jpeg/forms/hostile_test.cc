// SPDX-License-Identifier: Apache-2.0
//
// Damaged forms, and forged ones.
#include <cstring>

#include "core/crc32c.h"
#include "gtest/gtest.h"
#include "tests/support/sanitized.h"
#include "tests/worker/image/jpeg/forms/support.h"

namespace leat::worker {
namespace {

using FormBytes = std::vector<std::byte>;

FormBytes Copy(const JpegForm& form) {
  return {form.bytes().begin(), form.bytes().end()};
}

// Sets the correct sum of the bytes.
void Reseal(FormBytes& bytes) {
  const uint32_t sum = Crc32c(std::span(bytes).subspan(8));
  std::memcpy(bytes.data() + 4, &sum, sizeof sum);
}

class HostileForms : public ::testing::Test {
 protected:
  void SetUp() override {
    made_ = MakeFormsOf(decoder_, BytesOf(jpeg_));
    for (const JpegFormKind kind : kMcuFormKinds)
      ASSERT_TRUE(made_.of(kind).ok());
  }

  JpegDecoder decoder_{ImageLimits{}};
  const std::string jpeg_ =
      testing::MakeJpeg({.width = 300, .height = 40, .quality = 50});
  MadeForms made_;
};

TEST_F(HostileForms, EveryCutIsRefused) {
  for (const JpegFormKind kind : kMcuFormKinds) {
    const FormBytes whole = Copy(**made_.of(kind));
    for (size_t size = 0; size < whole.size(); ++size)
      ASSERT_FALSE(
          JpegForm::Parse({whole.begin(), whole.begin() + ptrdiff_t(size)})
              .ok())
          << FormName(kind) << " of " << size << " bytes";
    FormBytes longer = whole;
    longer.push_back({});
    EXPECT_FALSE(JpegForm::Parse(longer).ok());
    Reseal(longer);
    EXPECT_EQ(JpegForm::Parse(longer).status().code(),
              absl::StatusCode::kDataLoss);
  }
}

TEST_F(HostileForms, EveryFlippedBitIsRefused) {
  for (const JpegFormKind kind : kMcuFormKinds) {
    FormBytes bytes = Copy(**made_.of(kind));
    for (size_t i = 0; i < bytes.size(); ++i) {
      const auto bit = std::byte{1} << (i % 8);
      bytes[i] ^= bit;
      ASSERT_FALSE(JpegForm::Parse(bytes).ok()) << FormName(kind) << " " << i;
      bytes[i] ^= bit;
    }
  }
}

TEST_F(HostileForms, AnotherVersionAndAnotherKindAreRefused) {
  for (const JpegFormKind kind : kMcuFormKinds) {
    FormBytes bytes = Copy(**made_.of(kind));
    bytes[8] = std::byte{2};
    Reseal(bytes);
    EXPECT_EQ(JpegForm::Parse(bytes).status().code(),
              absl::StatusCode::kInvalidArgument);
    for (const int other : {0, 3, 255}) {
      bytes = Copy(**made_.of(kind));
      bytes[10] = static_cast<std::byte>(other);
      Reseal(bytes);
      EXPECT_EQ(JpegForm::Parse(bytes).status().code(),
                absl::StatusCode::kInvalidArgument);
    }
    bytes = Copy(**made_.of(kind));
    bytes[10] ^= std::byte{3};  // the other one's contents
    Reseal(bytes);
    EXPECT_EQ(JpegForm::Parse(bytes).status().code(),
              absl::StatusCode::kDataLoss);
  }
}

// Counts how decodings by changed forms ended.
struct Ends {
  int refused = 0, unused = 0, other = 0;
};

// The sum is correct: a form that passes decodes to some pixels, or libjpeg
// decodes the file. A sanitizer detects accesses outside the buffers.
Ends DecodeByChanged(const JpegForm& whole, const std::string& jpeg, int runs,
                     size_t first_change, JpegDecoder& decoder) {
  std::mt19937 random(6);
  const WindowOfJpeg plain = DecodeJpeg(decoder, BytesOf(jpeg), {}, false);
  Ends ends;
  for (int run = 0; run < runs; ++run) {
    FormBytes bytes = Copy(whole);
    for (int changes = 1 + static_cast<int>(random() % 3); changes > 0;
         --changes) {
      const size_t at = first_change + random() % (bytes.size() - first_change);
      bytes[at] = static_cast<std::byte>(random());
      if (random() % 4 == 0) bytes.resize(at + 1);
      if (bytes.size() <= first_change) break;
    }
    Reseal(bytes);
    const auto form = JpegForm::Parse(bytes);
    if (!form.ok()) {
      ++ends.refused;
      continue;
    }
    const WindowOfJpeg read =
        DecodeJpeg(decoder, BytesOf(jpeg), {}, false, form->get());
    EXPECT_TRUE(read.status.ok() && read.damage.ok()) << read.damage;
    EXPECT_EQ(read.pixels.size(), plain.pixels.size());
    if (!read.used_form) ++ends.unused;
    if (read.pixels != plain.pixels) ++ends.other;
  }
  return ends;
}

TEST_F(HostileForms, WhateverTheyHoldDecodingEnds) {
  constexpr int kRuns = leat::testing::kSanitized ? 300 : 1500;
  Ends all;
  for (const JpegFormKind kind : kMcuFormKinds) {
    const Ends ends =
        DecodeByChanged(**made_.of(kind), jpeg_, kRuns, 11, decoder_);
    all.refused += ends.refused;
    all.unused += ends.unused;
    all.other += ends.other;
  }
  // All three ends occur.
  EXPECT_GT(all.refused, kRuns / 15);
  EXPECT_GT(all.unused, kRuns / 15);
  EXPECT_GT(all.other, kRuns / 15);
}

// The header in the form replaces the file's.
TEST_F(HostileForms, WhateverTheHeaderOfAProgressiveFileHoldsDecodingEnds) {
  constexpr int kRuns = leat::testing::kSanitized ? 300 : 1500;
  // Short data: most changes hit the header.
  const std::string jpeg = testing::MakeJpeg(
      {.width = 41, .height = 27, .quality = 20, .progressive = true});
  const MadeForms made = MakeFormsOf(decoder_, BytesOf(jpeg));
  ASSERT_TRUE(made.coefficients.ok()) << made.coefficients.status();
  const Ends ends =
      DecodeByChanged(**made.coefficients, jpeg, 2 * kRuns, 56, decoder_);
  EXPECT_GT(ends.refused, kRuns / 15);
  EXPECT_GT(ends.unused, kRuns / 15);
  EXPECT_GT(ends.other, kRuns / 15);
}
// Returns where the last block of a form's bytes begins.
size_t LastBlockAt(const Coefficients& form) {
  const ScanLayout& layout = form.header().layout;
  const std::span<const uint8_t> row = form.BlocksFrom(layout.rows - 1);
  size_t last = 0, next = 0;
  for (uint32_t i = 0; i < layout.columns * layout.blocks; ++i) {
    last = next;
    next += row[last];
  }
  EXPECT_EQ(next, row.size());
  return static_cast<size_t>(row.data() - reinterpret_cast<const uint8_t*>(
                                              form.bytes().data())) +
         last;
}

// The last block is of a component that gray decoding ignores, so that only its
// length shows that it is wrong.
TEST_F(HostileForms, ABlockThatIsLongerThanTheRestIsNone) {
  const auto& form = dynamic_cast<const Coefficients&>(**made_.coefficients);
  const size_t at = LastBlockAt(form);
  const WindowOfJpeg plain = DecodeJpeg(decoder_, BytesOf(jpeg_), {}, true);
  EXPECT_TRUE(DecodeJpeg(decoder_, BytesOf(jpeg_), {}, true, &form).used_form);
  for (const int length : {0, 2, 255}) {
    FormBytes bytes = Copy(form);
    bytes[at] = static_cast<std::byte>(length);
    Reseal(bytes);
    const auto wrong = JpegForm::Parse(bytes);
    ASSERT_TRUE(wrong.ok()) << wrong.status();
    const WindowOfJpeg read =
        DecodeJpeg(decoder_, BytesOf(jpeg_), {}, true, wrong->get());
    EXPECT_FALSE(read.used_form) << length;
    EXPECT_TRUE(read.SameAs(plain)) << length;
  }
}

// The rows above the broken block were right, and libjpeg continues below them.
TEST_F(HostileForms, ABrokenFormLeavesTheRestToLibjpeg) {
  const std::string jpeg = testing::MakeJpeg({.width = 300, .height = 400});
  const MadeForms made = MakeFormsOf(decoder_, BytesOf(jpeg));
  FormBytes bytes = Copy(**made.coefficients);
  bytes[bytes.size() - bytes.size() / 4] = std::byte{2};  // no block's length
  for (size_t i = bytes.size() - bytes.size() / 4; i < bytes.size(); ++i)
    bytes[i] = std::byte{2};
  Reseal(bytes);
  const auto form = JpegForm::Parse(bytes);
  ASSERT_TRUE(form.ok()) << form.status();
  for (const Rect& window :
       {Rect{0, 0, 300, 400}, Rect{20, 111, 200, 280}, Rect{100, 399, 1, 1}}) {
    const WindowOfJpeg read =
        DecodeJpeg(decoder_, BytesOf(jpeg), window, false, form->get());
    EXPECT_FALSE(read.used_form);
    EXPECT_TRUE(
        read.SameAs(DecodeJpeg(decoder_, BytesOf(jpeg), window, false)));
  }
  EXPECT_TRUE(
      DecodeJpeg(decoder_, BytesOf(jpeg), {5, 5, 200, 99}, false, form->get())
          .used_form);
  std::vector<uint8_t> into(size_t{300} * 400 * 3);
  ASSERT_TRUE(decoder_.Open(BytesOf(jpeg), form->get()).ok());
  ASSERT_TRUE(
      decoder_.ReadInto({0, 0, 300, 400}, false, true, into.data(), 900).ok());
  EXPECT_FALSE(decoder_.used_form());
  EXPECT_EQ(into, DecodeJpeg(decoder_, BytesOf(jpeg), {}, false).pixels);
}

}  // namespace
}  // namespace leat::worker
