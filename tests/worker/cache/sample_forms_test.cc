// SPDX-License-Identifier: Apache-2.0
//
// A seek index that a device finds after a row's decode has ended; decodes that
// do not end; files of other formats, and several files of a record.
#include "worker/cache/sample_forms.h"

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/worker/cache/idle_forms_fixture.h"

namespace leat::worker {
namespace {

constexpr FormKinds kSeekIndexes = {.seek_index = true};

class LaterFormsTest : public testing::Test {
 protected:
  // The first decodes are plain, and then a plan is made.
  LaterFormsTest() {
    for (uint64_t record = 0; record < 40; ++record) {
      const auto file = std::make_shared<std::vector<std::byte>>(1000);
      StoredSample stored = StoredImage(*file, 1);
      stored.owner =
          std::make_shared<const std::pair<std::shared_ptr<const void>,
                                           std::shared_ptr<const void>>>(
              stored.owner, file);
      EXPECT_TRUE(cache_.Put(kept_, {.number = record}, std::move(stored)));
    }
    for (uint64_t record = 0; record < 40; ++record) Decode(record);
  }
  // Returns how the index of a record is kept after its decode.
  FormKeeper::KeepLater Decode(uint64_t record) {
    const auto sample = cache_.Find(kept_, record);
    SampleForms forms(&cache_, &kept_, record);
    forms.Begin(sample->fields[0].bytes, DecodeClass::kFull);
    clock_.Advance(std::chrono::milliseconds(1));
    forms.End({});
    return forms.Later();
  }
  static KeptForm Index() {
    return FormThatIsNoForm(JpegFormKind::kSeekIndex, 20);
  }

  FakeClock clock_;
  SampleCache cache_{1 << 20, nullptr, clock_, kSeekIndexes};
  const SampleCache::DatasetPtr kept_ =
      cache_.Open(HashOf("photos"), "photos", "photos", 40);
};

TEST_F(LaterFormsTest, AnIndexIsKeptAfterTheDecode) {
  const FormKeeper::KeepLater later = Decode(7);
  ASSERT_NE(later, nullptr);
  EXPECT_FALSE(cache_.forms().HasForm(kept_, 7));
  later(Index());
  EXPECT_TRUE(cache_.forms().HasForm(kept_, 7));
  EXPECT_EQ(Decode(7), nullptr);  // none is wanted
}

TEST_F(LaterFormsTest, NoneIsKeptOfARecordThatIsGone) {
  const FormKeeper::KeepLater later = Decode(7);
  ASSERT_NE(later, nullptr);
  cache_.SetOwned("photos", {false});
  const auto other = cache_.Open(HashOf("other"), "other", "other", 100);
  const std::vector<std::byte> large(100'000);
  for (uint64_t record = 0; record < 20; ++record)
    cache_.Put(other, {.number = record}, StoredImage(large, 1));
  ASSERT_FALSE(cache_.Find(kept_, 7).has_value());
  later(Index());
  EXPECT_FALSE(cache_.forms().HasForm(kept_, 7));
}

class PaidFormsTest : public IdleFormsFixture {
 protected:
  PaidFormsTest() : IdleFormsFixture(kPlenty) {}
};

// A device leaves the decode to the CPU, which finds that the file is damaged.
TEST_F(PaidFormsTest, WhatWasPaidForADecodeThatDoesNotEndIsGivenBack) {
  ReadEpochs(1);
  FormAccount& account = cache_.forms().account();
  account.Save(std::chrono::seconds(1));
  const Duration balance = account.balance();
  {
    const auto sample = cache_.Find(kept_, 7);
    SampleForms forms(&cache_, &kept_, 7);
    const auto begin = [&] {
      return forms.Begin(sample->fields[0].bytes, DecodeClass::kFull);
    };
    ASSERT_TRUE(begin().make.pixels);
    const Duration after_one = account.balance();
    ASSERT_LT(after_one, balance);
    ASSERT_TRUE(begin().make.pixels);
    EXPECT_EQ(account.balance(), after_one);
  }
  EXPECT_EQ(account.balance(), balance);
}

// Its decode says so, whether pixels were requested or not, and no thread tries.
TEST_F(PaidFormsTest, WhatCannotBeMadeOfAFileIsNotRequested) {
  ReadEpochs(1);
  FormAccount& account = cache_.forms().account();
  const auto make = [&](uint64_t record, FormKinds impossible) {
    const auto sample = cache_.Find(kept_, record);
    SampleForms forms(&cache_, &kept_, record, {},
                      {.job = &job_, .epoch = 1, .idle = &work_});
    const bool makes =
        forms.Begin(sample->fields[0].bytes, DecodeClass::kReduced).make.pixels;
    forms.End({.impossible = impossible});
    return makes;
  };
  while (work_.Take()) {
  }
  account.Save(-account.balance() - std::chrono::seconds(1));
  EXPECT_FALSE(make(7, {.pixels = true})) << "it cannot be paid for";
  EXPECT_EQ(work_.size(), 0u);
  EXPECT_FALSE(make(8, {}));
  EXPECT_EQ(work_.size(), 1u);
  account.Save(std::chrono::seconds(60));
  for (uint64_t record = 20; record < 40; ++record) make(record, {});
  EXPECT_TRUE(make(8, {.pixels = true}));
  EXPECT_FALSE(make(7, {}));
  EXPECT_FALSE(make(8, {}));
}

TEST_F(PaidFormsTest, PixelsOfAnotherFormatAreMadeByRowsAlone) {
  decode_ = DecodeClass::kOtherFormat;
  for (int epoch = 0; epoch < 4; ++epoch) {
    ReadEpochs(1);
    EXPECT_EQ(work_.size(), 0u) << "no thread can make them";
  }
  EXPECT_GT(CountForms(), 10u);
}

// It has none but pixels, which this cache does not keep.
TEST_F(LaterFormsTest, AFileOfAnotherFormatHasNoIndex) {
  const auto sample = cache_.Find(kept_, 7);
  SampleForms forms(&cache_, &kept_, 7);
  for (int i = 0; i < 40; ++i) {
    const FormWish wish =
        forms.Begin(sample->fields[0].bytes, DecodeClass::kOtherFormat);
    EXPECT_FALSE(wish.grow);
    EXPECT_FALSE(wish.make.any());
    forms.End({});
  }
}

// Records of a JPEG and a mask of another format.
class TwoFilesTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kRecords = 60;
  static constexpr DecodeClass kClasses[] = {DecodeClass::kFull,
                                             DecodeClass::kOtherFormat};

  TwoFilesTest() {
    for (uint64_t record = 0; record < kRecords; ++record) {
      const auto files = std::make_shared<std::vector<std::byte>>(1500);
      const std::span<const std::byte> all(*files);
      StoredSample stored;
      stored.fields = {{all.first(1000), {}}, {all.subspan(1000), {}}};
      stored.owner = files;
      EXPECT_TRUE(cache_.Put(kept_, {.number = record}, stored));
    }
  }
  // Decodes a file in 1 ms, or by pixels in 0.1 ms; to make them takes 0.1 ms
  // more. Returns what was used.
  std::optional<JpegFormKind> Decode(uint64_t record, size_t field) {
    const auto sample = cache_.Find(kept_, record);
    SampleForms forms(&cache_, &kept_, record);
    const FormWish wish =
        forms.Begin(sample->fields[field].bytes, kClasses[field]);
    FormAnswer answer;
    if (wish.use.form != nullptr) answer.used = wish.use.kind;
    if (wish.make.pixels) {
      answer.made.push_back(FormThatIsNoForm(JpegFormKind::kPixels, 3000));
      answer.made[0].of_jpeg = field == 0;
    }
    clock_.Advance(std::chrono::microseconds(answer.used       ? 100
                                             : wish.make.any() ? 1100
                                                               : 1000));
    const std::optional<JpegFormKind> used = answer.used;
    forms.End(std::move(answer));
    return used;
  }
  uint64_t Forms() const {
    uint64_t forms = 0;
    for (const CachedDatasetStats& dataset : cache_.stats().datasets)
      for (const auto& form : dataset.forms) forms += form.entries;
    return forms;
  }

  FakeClock clock_;
  DatasetUses uses_{clock_};
  SampleCache cache_{2 << 20, &uses_, clock_, {.pixels = true}};
  const SampleCache::DatasetPtr kept_ =
      cache_.Open(HashOf("pairs"), "pairs", "pairs", kRecords);
  const std::shared_ptr<const void> use_ = cache_.BeginUse(kept_);
};

TEST_F(TwoFilesTest, EachHasAFormOfItsOwn) {
  for (int epoch = 0; epoch < 20; ++epoch)
    for (uint64_t record = 0; record < kRecords; ++record)
      for (size_t field = 0; field < 2; ++field) Decode(record, field);
  EXPECT_EQ(Forms(), 2 * kRecords);
  int used = 0;
  for (uint64_t record = 0; record < kRecords; ++record) {
    for (size_t field = 0; field < 2; ++field)
      used += Decode(record, field) == JpegFormKind::kPixels;
    const auto sample = cache_.Find(kept_, record);
    ASSERT_NE(sample->form, nullptr) << "disks and peers may have the JPEG's";
    EXPECT_EQ(sample->form->file.data(), sample->fields[0].bytes.data());
  }
  EXPECT_GE(used, 2 * static_cast<int>(kRecords) - 2)
      << "but for plain decodes";
  // All forms of a record go with it.
  cache_.SetOwned("pairs", {false});
  const auto other = cache_.Open(HashOf("other"), "other", "other", 100);
  const auto use = cache_.BeginUse(other);
  const std::vector<std::byte> large(100'000);
  for (uint64_t record = 0; record < 30; ++record)
    cache_.Put(other, {.number = record}, StoredImage(large, 1));
  EXPECT_FALSE(cache_.Find(kept_, 7).has_value());
  EXPECT_EQ(Forms(), 0u);
  EXPECT_LE(cache_.stats().bytes, cache_.limit_bytes());
}

TEST_F(TwoFilesTest, OneIsNotRefusedWhatTheOtherRefuses) {
  const auto sample = cache_.Find(kept_, 7);
  cache_.forms().RefuseForms(kept_, 7, sample->fields[0].bytes,
                             {.pixels = true});
  for (int epoch = 0; epoch < 20; ++epoch)
    for (uint64_t record = 0; record < kRecords; ++record)
      for (size_t field = 0; field < 2; ++field) Decode(record, field);
  EXPECT_EQ(Forms(), 2 * kRecords - 1);
  EXPECT_EQ(cache_.Find(kept_, 7)->form, nullptr);
  EXPECT_FALSE(cache_.forms().HasForm(kept_, 7))
      << "a disk may have one of the JPEG";
  EXPECT_TRUE(cache_.forms().HasForm(kept_, 8));
}

}  // namespace
}  // namespace leat::worker
