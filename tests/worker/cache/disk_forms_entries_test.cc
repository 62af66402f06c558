// SPDX-License-Identifier: Apache-2.0
//
// The entries that a disk keeps by record, without rows.
#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/jpeg_maker.h"
#include "tests/worker/cache/disk_forms_fixture.h"
#include "tests/worker/image/base/stored_image.h"
#include "worker/image/jpeg/decode/decoder.h"
#include "worker/image/jpeg/forms/form.h"
#include "worker/sample/stored_bytes.h"

namespace leat::worker {
namespace {

using testing::MakeJpeg;

KeptForm FormOf(const std::string& jpeg, JpegFormKind kind) {
  JpegDecoder decoder({});
  EXPECT_TRUE(decoder.Open(std::as_bytes(std::span(jpeg))).ok());
  decoder.MakeForms(kBothForms, size_t{1} << 30);
  const StoredSize size = decoder.header().size;
  EXPECT_TRUE(decoder.Start({0, 0, size.width, size.height}, false).ok());
  PixelRows rows;
  for (int64_t y = 0; y < size.height; y += rows.count)
    EXPECT_TRUE(decoder.ReadRows(&rows).ok());
  auto form = decoder.TakeForm(kind);
  EXPECT_TRUE(form.ok()) << form.status();
  const size_t bytes = (*form)->size_bytes();
  return {*std::move(form), kind, bytes};
}

TEST_F(DiskFormsTest, AFormIsServedWithTheFileThatItWasMadeOfOnly) {
  const std::string one = MakeJpeg({.width = 50, .height = 40, .seed = 1});
  const std::string other = MakeJpeg({.width = 50, .height = 40, .seed = 2});
  Restart();
  const auto dataset = disk_->Open(HashOf("d"), "d", "/data");
  ASSERT_NE(dataset, nullptr);
  for (const JpegFormKind kind :
       {JpegFormKind::kSeekIndex, JpegFormKind::kCoefficients}) {
    disk_->KeepForm(dataset, 5, FormOf(one, kind));
    Written();
    StoredSample stored = StoredImage(std::as_bytes(std::span(one)), 3);
    disk_->ReadFormOf(dataset, 5, &stored);
    ASSERT_NE(stored.form, nullptr);
    EXPECT_EQ(stored.form->kept.kind, kind);
    EXPECT_TRUE(stored.form->IsOf(stored.fields[0].bytes));
    EXPECT_FALSE(stored.form->IsOf(stored.fields[1].bytes));
    EXPECT_EQ(stored.bytes(), one.size() + 4 + stored.form->kept.bytes);
    StoredSample another = StoredImage(std::as_bytes(std::span(one)), 3);
    disk_->ReadFormOf(dataset, 6, &another);
    EXPECT_EQ(another.form, nullptr) << "another record";
  }
  StoredSample changed = StoredImage(std::as_bytes(std::span(other)), 3);
  disk_->ReadFormOf(dataset, 5, &changed);
  EXPECT_EQ(changed.form, nullptr);
  EXPECT_EQ(cache_->stats().damaged, 2u);
  // The new file's form is kept in its place.
  EXPECT_TRUE(disk_->Wants(dataset, 5, JpegFormKind::kSeekIndex, other.size()));
  disk_->KeepForm(dataset, 5, FormOf(other, JpegFormKind::kSeekIndex));
  Written();
  for (int round = 0; round < 2; ++round) {
    const auto opened = disk_->Open(HashOf("d"), "d", "/data");
    disk_->ReadFormOf(opened, 5, &changed);
    EXPECT_NE(changed.form, nullptr) << round;
    changed.form = nullptr;
    Restart();
  }
}

TEST_F(DiskFormsTest, FormsOfAnotherVersionAreNotLookedAt) {
  const std::string one = MakeJpeg({.width = 50, .height = 40, .seed = 1});
  Restart();
  auto dataset = disk_->Open(HashOf("d"), "d", "/data");
  disk_->KeepForm(dataset, 5, FormOf(one, JpegFormKind::kSeekIndex));
  Written();
  FormCodec newer = JpegFormCodec();
  ++newer.version;
  const auto disk = DiskForms::Start(
      cache_, {.kinds = kBothForms, .codec = newer, .of = DiskCacheOf::kAll});
  ASSERT_TRUE(disk.ok());
  dataset = (*disk)->Open(HashOf("d"), "d", "/data");
  StoredSample stored = StoredImage(std::as_bytes(std::span(one)), 3);
  (*disk)->ReadFormOf(dataset, 5, &stored);
  EXPECT_EQ(stored.form, nullptr);
  EXPECT_TRUE((*disk)->Wants(dataset, 5, JpegFormKind::kSeekIndex, one.size()));
}

TEST_F(DiskFormsTest, OfWhatLiesOnFileSystemsNothingIsKeptUnlessAskedFor) {
  Restart(kBothForms, kDiskForms, DiskCacheOf::kRemote);
  EXPECT_EQ(disk_->Open(HashOf("d"), "d", "/data"), nullptr);
  EXPECT_EQ(disk_->Open(HashOf("d"), "d", ""), nullptr);
  const auto remote = disk_->Open(HashOf("d"), "d", "s3://bucket");
  ASSERT_NE(remote, nullptr);
  const std::string one = MakeJpeg({.width = 50, .height = 40, .seed = 1});
  StoredSample stored = StoredImage(std::as_bytes(std::span(one)), 3);
  disk_->KeepRecord(remote, 1, stored, Duration::zero());
  disk_->KeepForm(remote, 1, FormOf(one, JpegFormKind::kSeekIndex));
  Written();
  EXPECT_FALSE(disk_->HasRecord(remote, 1)) << "its ranges are kept";
  disk_->ReadFormOf(remote, 1, &stored);
  EXPECT_NE(stored.form, nullptr);
}

// Other workers may be told how many records of the dataset are here.
TEST_F(DiskFormsTest, DatasetsOfRecordsHaveAnIdAndThoseOfRangesNone) {
  Restart();
  const StoredSample stored =
      StoredImage(std::as_bytes(std::span("jpeg", 4)), 3);
  const auto local = disk_->Open(HashOf("d"), "d", "/data", "id of d");
  disk_->KeepRecord(local, 9, stored, std::chrono::milliseconds(1));
  const auto remote = disk_->Open(HashOf("e"), "e", "s3://bucket", "id of e");
  const auto ranges = cache_->OpenDataset(HashOf("e"), "e");
  cache_->OpenDataset(HashOf("d"), "d");  // as a source does
  Written();
  for (const CachedDatasetStats& each : cache_->stats().datasets)
    EXPECT_EQ(each.id, each.name == "d" ? "id of d" : "") << each.name;
}

TEST_F(DiskFormsTest, RecordsComeBackAsTheyWere) {
  Restart();
  StoredSample stored = StoredImage(std::as_bytes(std::span("jpeg", 4)), 3);
  stored.fields.push_back({std::as_bytes(std::span("elements", 8)), {2, 4}});
  stored.fields.push_back({{}, {0, 7}});
  disk_->KeepRecord(disk_->Open(HashOf("d"), "d", "/data"), 9, stored,
                    std::chrono::milliseconds(1));
  Written();
  Restart();
  const auto dataset = disk_->Open(HashOf("d"), "d", "/data");
  EXPECT_TRUE(disk_->HasRecord(dataset, 9));
  EXPECT_FALSE(disk_->HasRecord(dataset, 8));
  const std::vector<ValueType> types = {
      {.kind = ValueType::Kind::kEncoded},
      {.dtype = DType::kInt32},
      {.shape = {-1, -1}},
      {.dtype = DType::kFloat32, .shape = {-1, 7}}};
  const auto again = disk_->ReadRecord(dataset, 9, types);
  ASSERT_TRUE(again.has_value());
  ASSERT_EQ(again->fields.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_TRUE(
        std::ranges::equal(again->fields[i].bytes, stored.fields[i].bytes));
    EXPECT_EQ(again->fields[i].shape, stored.fields[i].shape);
  }
  EXPECT_FALSE(
      disk_->ReadRecord(disk_->Open(HashOf("e"), "e", "/data"), 9, types)
          .has_value());
}

// The dataset was read with other types: the record is read from storage again.
TEST_F(DiskFormsTest, ARecordOfOtherTypesIsNotKept) {
  const ValueType image = {.kind = ValueType::Kind::kEncoded};
  const ValueType label = {.dtype = DType::kInt32};
  for (const std::vector<ValueType>& types :
       {std::vector<ValueType>{image},
        {image, label, label},
        {image, {.dtype = DType::kInt64}},
        {image, {.dtype = DType::kInt32, .shape = {2}}},
        {image, {.dtype = DType::kInt32, .shape = {-1}}}}) {
    Restart();
    const auto dataset = disk_->Open(HashOf("d"), "d", "/data");
    const auto keep = [&] {
      disk_->KeepRecord(dataset, 9,
                        StoredImage(std::as_bytes(std::span("jpeg", 4)), 3),
                        std::chrono::milliseconds(1));
      Written();
    };
    keep();
    ASSERT_TRUE(disk_->HasRecord(dataset, 9));
    EXPECT_FALSE(disk_->ReadRecord(dataset, 9, types).has_value());
    EXPECT_FALSE(disk_->HasRecord(dataset, 9)) << "nobody reads it once more";
    keep();
    EXPECT_TRUE(
        disk_->ReadRecord(dataset, 9, std::vector<ValueType>{image, label})
            .has_value());
  }
}

TEST(StoredBytes, WhatIsNoRecordIsNone) {
  StoredSample stored = StoredImage(std::as_bytes(std::span("jpeg", 4)), 3);
  stored.fields[0].shape = {4};
  const std::vector<std::byte> bytes = PackSample(stored);
  ASSERT_TRUE(UnpackSample(bytes).has_value());
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(
        UnpackSample({bytes.begin(), bytes.begin() + size}).has_value())
        << size;
  std::vector<std::byte> longer = bytes;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(UnpackSample(longer).has_value());
  // Whatever the numbers say, nothing outside is read.
  for (size_t at = 0; at < bytes.size(); ++at)
    for (const int to : {0, 1, 0x7f, 0xff}) {
      std::vector<std::byte> changed = bytes;
      changed[at] = static_cast<std::byte>(to);
      changed.shrink_to_fit();
      if (const auto sample = UnpackSample(changed); sample.has_value()) {
        EXPECT_LE(sample->bytes(), bytes.size());
      }
    }
  stored.fields.resize(kMaxStoredFields + 1);
  EXPECT_TRUE(PackSample(stored).empty());
}

}  // namespace
}  // namespace leat::worker
