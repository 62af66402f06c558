// SPDX-License-Identifier: Apache-2.0
//
// A seek index that a device finds after a row's decode has ended, and decodes
// that do not end.
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
    forms.Begin(sample->fields[0].bytes, DecodeScale::kFull);
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
      return forms.Begin(sample->fields[0].bytes, DecodeScale::kFull);
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
        forms.Begin(sample->fields[0].bytes, DecodeScale::kReduced).make.pixels;
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

}  // namespace
}  // namespace leat::worker
