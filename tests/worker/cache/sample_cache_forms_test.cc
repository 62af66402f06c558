// SPDX-License-Identifier: Apache-2.0
//
// Forms beside records: which are planned, kept, and given up. Their contents
// do not matter here.
#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/status.h"
#include "gtest/gtest.h"
#include "tests/worker/image/base/stored_image.h"
#include "worker/cache/sample_cache.h"
#include "worker/cache/sample_forms.h"

namespace leat::worker {
namespace {

using std::chrono::milliseconds;

constexpr size_t kPhoto = 10'000, kSeek = 200, kCoefs = 20'000, kPixs = 54'000;
constexpr uint64_t kPhotoCost = kPhoto + 4 + SampleCache::kEntryBytes;
constexpr uint64_t kCoefsCost = kCoefs + SampleDataset::kFormBytes;
constexpr uint64_t kPixsCost = kPixs + SampleDataset::kFormBytes;
constexpr size_t kSmallPixs = 5'000;
constexpr FormKinds kAnyForm = {.seek_index = true, .coefficients = true};
constexpr FormKinds kPixelsToo = {
    .seek_index = true, .coefficients = true, .pixels = true};

KeptForm SomeForm(JpegFormKind kind, DecodeClass decode = DecodeClass::kFull) {
  const auto owner = std::make_shared<const int>(1);
  const auto* const form = reinterpret_cast<const JpegForm*>(owner.get());
  return {std::shared_ptr<const JpegForm>(owner, form), kind,
          kind == JpegFormKind::kSeekIndex      ? kSeek
          : kind == JpegFormKind::kCoefficients ? kCoefs
          : decode == DecodeClass::kFull        ? kPixs
                                                : kSmallPixs};
}

absl::StatusOr<StoredSample> ReadPhoto() {
  const auto bytes = std::make_shared<std::vector<std::byte>>(kPhoto);
  StoredSample stored = StoredImage(*bytes, 1);
  stored.owner = std::make_shared<const std::pair<std::shared_ptr<const void>,
                                                  std::shared_ptr<const void>>>(
      stored.owner, bytes);
  return stored;
}

// A cache whose datasets are read.
class FormedCache {
 public:
  explicit FormedCache(uint64_t limit, FormKinds kinds = kAnyForm)
      : cache(limit, &uses, clock, kinds) {}

  SampleCache::DatasetPtr Open(const char* name, uint64_t records) {
    uses_begun_[name] = uses.Begin(HashOf(name));
    return cache.Open(HashOf(name), name, name, records);
  }
  void End(const char* name) { uses_begun_.erase(name); }

  // Reads and decodes; returns which form was used or made.
  struct Done {
    FormWish wish;
    std::optional<JpegFormKind> used;
  };
  Done Decode(const SampleCache::DatasetPtr& dataset, uint64_t record,
              bool has_forms = true, DecodeClass decode = DecodeClass::kFull) {
    const auto sample = cache.Get(dataset, {.number = record}, true, ReadPhoto);
    SampleForms forms(&cache, &dataset, record);
    Done done{.wish = forms.Begin(sample->fields[0].bytes, decode), .used = {}};
    FormAnswer answer;
    if (done.wish.use.form != nullptr) answer.used = done.wish.use.kind;
    done.used = answer.used;
    for (const JpegFormKind kind : kJpegFormKinds)
      if (has_forms && done.wish.make.Has(kind))
        answer.made.push_back(SomeForm(kind, decode));
    if (has_forms && done.wish.grow)
      answer.made.push_back(SomeForm(JpegFormKind::kSeekIndex));
    if (!has_forms) answer.refused = done.wish.make;
    if (!has_forms && done.wish.grow) answer.refused.seek_index = true;
    static constexpr std::array<int, kDecodeWays> kTimes = {10, 7, 4, 1};
    const int full = kTimes[answer.used ? WayOf(*answer.used) : 0];
    clock.Advance(milliseconds(decode == DecodeClass::kFull ? full : full / 2));
    for (const KeptForm& form : answer.made)
      if (done.wish.make.Has(form.kind)) clock.Advance(making);
    forms.End(std::move(answer));
    return done;
  }
  void Epoch(const SampleCache::DatasetPtr& dataset, uint64_t records,
             DecodeClass decode = DecodeClass::kFull) {
    std::vector<uint64_t> order(records);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    for (const uint64_t record : order) Decode(dataset, record, true, decode);
  }
  // Returns the statistics of the dataset `name`.
  CachedFormStats Stats(const char* name, JpegFormKind kind) const {
    for (const CachedDatasetStats& each : cache.stats().datasets)
      if (each.name == name)
        for (const CachedFormStats& form : each.forms)
          if (form.form == FormName(kind)) return form;
    return {};
  }

  Duration making{0};  // additional time of making a form
  FakeClock clock;
  DatasetUses uses{clock};
  SampleCache cache;
  std::mt19937 random{1};

 private:
  std::map<std::string, std::shared_ptr<const void>> uses_begun_;
};

TEST(SampleCacheForms, AllRecordsGetCoefficientsWhereThereIsRoom) {
  FormedCache photos(100'000'000);
  const auto dataset = photos.Open("one", 200);
  for (int epoch = 0; epoch < 4; ++epoch) photos.Epoch(dataset, 200);
  const auto coefficients = photos.Stats("one", JpegFormKind::kCoefficients);
  EXPECT_EQ(coefficients.entries, 200u);
  EXPECT_EQ(coefficients.bytes, 200 * kCoefsCost);
  EXPECT_EQ(photos.Stats("one", JpegFormKind::kSeekIndex).entries, 0u);
  EXPECT_EQ(photos.cache.stats().bytes, 200 * (kPhotoCost + kCoefsCost));
  EXPECT_EQ(photos.cache.stats().datasets[0].bytes, photos.cache.stats().bytes);
  EXPECT_GT(coefficients.hits, 500u);
  EXPECT_EQ(coefficients.saved_ms, 6 * coefficients.hits);
}

TEST(SampleCacheForms, AllRecordsGetPixelsWhereThereIsRoom) {
  FormedCache photos(100'000'000, kPixelsToo);
  const auto dataset = photos.Open("one", 200);
  for (int epoch = 0; epoch < 5; ++epoch) photos.Epoch(dataset, 200);
  const auto pixels = photos.Stats("one", JpegFormKind::kPixels);
  EXPECT_EQ(pixels.entries, 200u);
  EXPECT_EQ(photos.cache.stats().bytes, 200 * (kPhotoCost + kPixsCost));
  EXPECT_GT(pixels.hits, 500u);
  EXPECT_EQ(pixels.saved_ms, 9 * pixels.hits);
}

// There is room for half of 400 records: the others keep their coefficients.
TEST(SampleCacheForms, PixelsTakeThePlaceOfCoefficientsWhileThereIsRoom) {
  constexpr uint64_t kRecords = 400;
  FormedCache photos(kRecords * (kPhotoCost + kCoefsCost) +
                         kRecords / 2 * (kPixsCost - kCoefsCost) + 100'000,
                     kPixelsToo);
  const auto dataset = photos.Open("one", kRecords);
  for (int epoch = 0; epoch < 8; ++epoch) {
    photos.Epoch(dataset, kRecords);
    ASSERT_LE(photos.cache.stats().bytes, photos.cache.limit_bytes());
  }
  EXPECT_EQ(photos.cache.stats().records, kRecords);
  EXPECT_NEAR(photos.Stats("one", JpegFormKind::kPixels).entries, 200, 40);
  EXPECT_NEAR(photos.Stats("one", JpegFormKind::kCoefficients).entries, 200,
              60);
}

TEST(SampleCacheForms, WhereThereIsRoomForSomeTheLowestRanksHaveCoefficients) {
  constexpr uint64_t kRecords = 400;
  FormedCache photos(kRecords * kPhotoCost + kRecords / 2 * kCoefsCost +
                     kRecords * 400);
  const auto dataset = photos.Open("one", kRecords);
  for (int epoch = 0; epoch < 6; ++epoch) {
    photos.Epoch(dataset, kRecords);
    ASSERT_LE(photos.cache.stats().bytes, photos.cache.limit_bytes());
  }
  EXPECT_EQ(photos.cache.stats().records, kRecords);
  int low = 0, low_with = 0, high_with = 0, with_none = 0;
  for (uint64_t record = 0; record < kRecords; ++record) {
    std::optional<JpegFormKind> used;
    // One decode may be plain, to measure, and one may make the form.
    for (int tries = 0; tries < 4 && !used; ++tries)
      used = photos.Decode(dataset, record).used;
    const bool with = used == JpegFormKind::kCoefficients;
    const double place =
        static_cast<double>(RankOf(HashOf("one"), record)) / 0x1p64;
    low += place < 0.4;
    low_with += place < 0.4 && with;
    high_with += place > 0.6 && with;
    with_none += !used.has_value();
  }
  // For some there was no room any more.
  EXPECT_GT(low, 100);
  EXPECT_GE(low_with, low * 85 / 100);
  EXPECT_EQ(high_with, 0);
  EXPECT_LE(with_none, 40);
}

TEST(SampleCacheForms, OnlyKindsThatMayBeAreMade) {
  for (const FormKinds kinds :
       {FormKinds{}, FormKinds{.seek_index = true},
        FormKinds{.coefficients = true}, FormKinds{.pixels = true}}) {
    FormedCache photos(100'000'000, kinds);
    const auto dataset = photos.Open("one", 100);
    for (int epoch = 0; epoch < 4; ++epoch) photos.Epoch(dataset, 100);
    for (const JpegFormKind kind : kJpegFormKinds)
      EXPECT_EQ(photos.Stats("one", kind).entries, kinds.Has(kind) ? 100u : 0u)
          << FormName(kind);
  }
}

// The dataset is larger than the cache, and its size is not known: forms are
// made, and all of them are given up again.
TEST(SampleCacheForms, NoFormKeepsARecordOut) {
  constexpr uint64_t kRecords = 400, kLimit = kRecords / 2 * kPhotoCost;
  FormedCache with(kLimit), without(kLimit, {});
  const auto dataset = with.Open("one", 0), same = without.Open("one", 0);
  uint64_t most = 0;
  for (int epoch = 0; epoch < 3; ++epoch)
    for (uint64_t record = 0; record < kRecords; ++record) {
      with.Decode(dataset, record);
      without.Decode(same, record);
      ASSERT_LE(with.cache.stats().bytes, kLimit);
      most = std::max(most,
                      with.Stats("one", JpegFormKind::kCoefficients).entries);
    }
  EXPECT_GT(most, 10u);
  EXPECT_EQ(with.cache.stats().records, without.cache.stats().records);
  EXPECT_EQ(with.cache.stats().hits, without.cache.stats().hits);
  for (uint64_t record = 0; record < kRecords; ++record)
    EXPECT_EQ(with.cache.Contains(dataset, record),
              without.cache.Contains(same, record));
}

TEST(SampleCacheForms, FormsOfADatasetThatNobodyReadsGiveWayFirst) {
  constexpr uint64_t kRecords = 100;
  FormedCache photos(3 * kRecords * kPhotoCost + 2 * kRecords * kCoefsCost);
  const auto first = photos.Open("first", kRecords);
  const auto second = photos.Open("second", kRecords);
  for (int epoch = 0; epoch < 4; ++epoch) {
    photos.Epoch(first, kRecords);
    photos.Epoch(second, kRecords);
  }
  EXPECT_EQ(photos.Stats("first", JpegFormKind::kCoefficients).entries,
            kRecords);
  EXPECT_EQ(photos.Stats("second", JpegFormKind::kCoefficients).entries,
            kRecords);
  photos.End("first");
  photos.clock.Advance(DatasetUses::kRest + milliseconds(1));
  const auto third = photos.Open("third", 2 * kRecords);
  for (uint64_t record = 0; record < 2 * kRecords; ++record)
    photos.cache.Get(third, {.number = record}, true, ReadPhoto).IgnoreError();
  EXPECT_LT(photos.Stats("first", JpegFormKind::kCoefficients).entries,
            kRecords);
  EXPECT_EQ(photos.Stats("second", JpegFormKind::kCoefficients).entries,
            kRecords);
  EXPECT_EQ(photos.cache.stats().records, 4 * kRecords);
}

TEST(SampleCacheForms, FormsOfADatasetThatNobodyReadsGiveWayToOthers) {
  constexpr uint64_t kRecords = 100;
  FormedCache photos(2 * kRecords * kPhotoCost + kRecords * kCoefsCost);
  const auto first = photos.Open("first", kRecords);
  for (int epoch = 0; epoch < 4; ++epoch) photos.Epoch(first, kRecords);
  EXPECT_EQ(photos.Stats("first", JpegFormKind::kCoefficients).entries,
            kRecords);
  const auto second = photos.Open("second", kRecords);
  for (int epoch = 0; epoch < 10; ++epoch) photos.Epoch(second, kRecords);
  EXPECT_EQ(photos.Stats("first", JpegFormKind::kCoefficients).entries,
            kRecords)
      << "a job reads them";
  photos.End("first");
  photos.clock.Advance(DatasetUses::kRest + milliseconds(1));
  for (int epoch = 0; epoch < 10; ++epoch) photos.Epoch(second, kRecords);
  EXPECT_GE(photos.Stats("second", JpegFormKind::kCoefficients).entries, 90u);
  EXPECT_LE(photos.Stats("first", JpegFormKind::kCoefficients).entries, 10u);
  EXPECT_EQ(photos.cache.stats().records, 2 * kRecords);
}

// Records of shards that have moved give way to forms of this worker's own, and
// stay while there is room for both: the new owner may request them.
TEST(SampleCacheForms, RecordsOfOthersGiveWayWhereRoomIsShort) {
  for (const bool is_short : {true, false}) {
    const uint64_t forms = is_short ? 30 : 200;
    FormedCache one(100 * kPhotoCost + forms * kCoefsCost);
    const auto photos = one.Open("one", 100);
    for (uint64_t record = 50; record < 100; ++record)
      one.cache.Get(photos, {.number = record, .shard = 1}, true, ReadPhoto)
          .IgnoreError();
    const auto epochs = [&] {
      for (int epoch = 0; epoch < 6; ++epoch) {
        one.Epoch(photos, 50);
        one.clock.Advance(FormShelf::kPlanPeriod);
      }
    };
    epochs();
    EXPECT_EQ(one.cache.stats().records, 100u);
    one.cache.SetOwned("one", {true, false});
    epochs();
    EXPECT_EQ(one.cache.stats().records, is_short ? 50u : 100u);
    EXPECT_EQ(one.Stats("one", JpegFormKind::kCoefficients).entries, 50u);
  }
}

TEST(SampleCacheForms, AreOfTheVeryBytesThatAreKept) {
  FormedCache photos(100'000'000);
  const auto dataset = photos.Open("one", 20);
  for (int epoch = 0; epoch < 10; ++epoch) photos.Epoch(dataset, 20);
  const auto kept = photos.cache.Get(dataset, {.number = 1}, true, ReadPhoto);
  const auto other = ReadPhoto();
  const auto file = kept->fields[0].bytes, copy = other->fields[0].bytes;
  FormShelf::DecodeTerms terms;
  EXPECT_NE(photos.cache.forms().WishFor(dataset, 1, file, &terms).use.form,
            nullptr);
  for (const auto& bytes : {copy, file.first(9)}) {
    const FormWish wish =
        photos.cache.forms().WishFor(dataset, 1, bytes, &terms);
    EXPECT_EQ(wish.use.form, nullptr);
    EXPECT_FALSE(wish.make.any() || wish.grow);
    EXPECT_FALSE(photos.cache.forms().KeepForm(
        dataset, 1, bytes, SomeForm(JpegFormKind::kCoefficients)));
  }
  EXPECT_FALSE(
      photos.cache.forms().WishFor(dataset, 77, file, &terms).make.any());
  EXPECT_FALSE(photos.cache.forms().KeepForm(
      dataset, 77, file, SomeForm(JpegFormKind::kSeekIndex)));
}

TEST(SampleCacheForms, ALesserFormTakesNoPlaceOfABetterOne) {
  FormedCache photos(100'000'000);
  const auto dataset = photos.Open("one", 20);
  const auto kept = photos.cache.Get(dataset, {.number = 1}, true, ReadPhoto);
  const auto keep = [&](JpegFormKind kind) {
    return photos.cache.forms().KeepForm(dataset, 1, kept->fields[0].bytes,
                                         SomeForm(kind));
  };
  EXPECT_TRUE(keep(JpegFormKind::kSeekIndex));
  EXPECT_FALSE(keep(JpegFormKind::kSeekIndex));
  EXPECT_TRUE(keep(JpegFormKind::kCoefficients));
  EXPECT_FALSE(keep(JpegFormKind::kSeekIndex));
  EXPECT_EQ(photos.cache.stats().bytes, kPhotoCost + kCoefsCost);
}

TEST(SampleCacheForms, WhatHasNoFormsIsNotAskedAgain) {
  FormedCache photos(100'000'000);
  const auto dataset = photos.Open("one", 50);
  std::map<uint64_t, int> asked;
  for (int epoch = 0; epoch < 8; ++epoch)
    for (uint64_t record = 0; record < 50; ++record)
      if (photos.Decode(dataset, record, false).wish.make.any())
        ++asked[record];
  EXPECT_EQ(asked.size(), 50u);
  for (const auto& [record, times] : asked) EXPECT_LE(times, 2) << record;
}

TEST(SampleCacheForms, DecodesGoOnBeingMeasuredPlainly) {
  FormedCache photos(100'000'000);
  const auto dataset = photos.Open("one", 50);
  for (int epoch = 0; epoch < 4; ++epoch) photos.Epoch(dataset, 50);
  int plain = 0;
  for (uint64_t i = 0; i < 4 * FormShelf::kPlainOf; ++i)
    plain += !photos.Decode(dataset, i % 50).used;
  EXPECT_EQ(plain, 4);
}

TEST(SampleCacheForms, ManyThreadsAgree) {
  FormedCache photos(200 * kPhotoCost + 50 * kCoefsCost);
  const auto dataset = photos.Open("one", 0);
  photos.Epoch(dataset, 100);
  std::vector<std::thread> threads;
  std::atomic<int> kept = 0;  // forms; records may have displaced all of them
  for (uint32_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::minstd_rand random(t + 1);
      for (int i = 0; i < 3000; ++i) {
        const uint64_t record = random() % 300;
        const auto sample =
            photos.cache.Get(dataset, {.number = record}, true, ReadPhoto);
        const auto file = sample->fields[0].bytes;
        FormShelf::DecodeTerms terms;
        photos.cache.forms().WishFor(dataset, record, file, &terms);
        photos.cache.forms().GiveBack(&terms);
        kept += photos.cache.forms().KeepForm(
            dataset, record, file,
            SomeForm(random() % 2 == 0 ? JpegFormKind::kSeekIndex
                                       : JpegFormKind::kCoefficients));
        if (random() % 8 == 0)
          photos.cache.forms().RefuseForms(dataset, record, file, kAnyForm);
        if (i % 500 == 0)
          photos.cache.SetOwned("one", std::vector<bool>(1, i % 1000 == 0));
      }
    });
  for (std::thread& thread : threads) thread.join();
  const SampleCache::Stats stats = photos.cache.stats();
  EXPECT_LE(stats.bytes, photos.cache.limit_bytes());
  EXPECT_GT(kept, 0);
  uint64_t bytes = stats.records * kPhotoCost;
  for (const CachedFormStats& form : stats.datasets[0].forms)
    bytes += form.bytes;
  EXPECT_EQ(stats.bytes, bytes);
}

// --- Decodes at smaller scales -----------------------------------------------

// Their pixels are smaller than coefficients, and save more.
TEST(SampleCacheForms, ReducedDecodesKeepSmallerPixels) {
  constexpr uint64_t kRecords = 200;
  FormedCache photos(kRecords * (kPhotoCost + kSmallPixs + 400), kPixelsToo);
  const auto dataset = photos.Open("one", kRecords);
  for (int epoch = 0; epoch < 6; ++epoch)
    photos.Epoch(dataset, kRecords, DecodeClass::kReduced);
  EXPECT_EQ(photos.Stats("one", JpegFormKind::kCoefficients).entries, 0u);
  const auto pixels = photos.Stats("one", JpegFormKind::kPixels);
  EXPECT_GE(pixels.entries, kRecords * 95 / 100);
  EXPECT_EQ(pixels.saved_ms, 5 * pixels.hits);
}

// A record has one form: that job continues to use it.
TEST(SampleCacheForms, PixelsThatAnotherJobHasStay) {
  FormedCache photos(100'000'000, kPixelsToo);
  const auto dataset = photos.Open("one", 100);
  for (int epoch = 0; epoch < 5; ++epoch) photos.Epoch(dataset, 100);
  ASSERT_EQ(photos.Stats("one", JpegFormKind::kPixels).entries, 100u);
  for (int epoch = 0; epoch < 2; ++epoch)
    for (uint64_t record = 0; record < 100; ++record) {
      const auto done =
          photos.Decode(dataset, record, true, DecodeClass::kReduced);
      EXPECT_FALSE(done.wish.make.any() || done.wish.grow);
    }
  EXPECT_EQ(photos.Stats("one", JpegFormKind::kPixels).entries, 100u);
  const uint64_t hits = photos.Stats("one", JpegFormKind::kPixels).hits;
  photos.Epoch(dataset, 100);
  EXPECT_GE(photos.Stats("one", JpegFormKind::kPixels).hits, hits + 95);
}

// A form saves the difference to a plain decode at the same scale. With one
// mean for both, reduced decodes would seem to save what they never cost.
TEST(SampleCacheForms, TheAccountKnowsWhatEachScaleTakes) {
  FormedCache photos(100'000'000);
  photos.making = milliseconds(2);
  const auto dataset = photos.Open("one", 100);
  int64_t saved = 0;  // ms
  for (int epoch = 0; epoch < 6; ++epoch)
    for (uint64_t record = 0; record < 100; ++record)
      for (const DecodeClass decode :
           {DecodeClass::kFull, DecodeClass::kReduced}) {
        const auto used = photos.Decode(dataset, record, true, decode).used;
        const bool full = decode == DecodeClass::kFull;
        if (used == JpegFormKind::kSeekIndex) saved += full ? 3 : 2;
        if (used == JpegFormKind::kCoefficients) saved += full ? 6 : 3;
      }
  EXPECT_GT(saved, 2000);
  EXPECT_EQ(photos.cache.forms().account().totals().saved, milliseconds(saved));
  const auto coefficients = photos.Stats("one", JpegFormKind::kCoefficients);
  const auto index = photos.Stats("one", JpegFormKind::kSeekIndex);
  EXPECT_EQ(static_cast<int64_t>(coefficients.saved_ms + index.saved_ms),
            saved);
}

}  // namespace
}  // namespace leat::worker
