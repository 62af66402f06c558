// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "gmock/gmock.h"
#include "tests/support/test_data.h"
#include "tests/worker/source/arrays/array_support.h"
#include "tests/worker/source/located.h"
#include "worker/source/storage/storage.h"

namespace leat::worker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
namespace fs = std::filesystem;
using Paths = std::vector<std::string>;

// A record whose pixel (y, x, c) is (y * 32 + x + c * 7 + seed) mod 251.
std::string Record(const std::string& labels, int seed) {
  std::string record = labels;
  for (int c = 0; c < 3; ++c)
    for (int i = 0; i < 1024; ++i)
      record += static_cast<char>((i + c * 7 + seed) % 251);
  return record;
}

class CifarTest : public ReaderTest {
 protected:
  static Node Cifar10(const Paths& paths) {
    return {.op = "readers.cifar10",
            .inputs = {},
            .args = {{"paths", paths}, {"prefix", std::string("data_batch_")}}};
  }
  static Node Cifar100(const Paths& paths) {
    return {.op = "readers.cifar100",
            .inputs = {},
            .args = {{"paths", paths}, {"prefix", std::string("train")}}};
  }
};

TEST_F(CifarTest, PlanesAreInterleaved) {
  const std::string file =
      dir_.Write("a", Record("\x03", 0) + Record("\x09", 100));
  const auto source = Open(Cifar10({file}));
  ASSERT_EQ(source->num_samples(), 2u);
  const StoredSample sample = Get(*source, 1);
  ASSERT_EQ(sample.fields.size(), 2u);
  EXPECT_EQ(IntOf(sample.fields[1]), 9);
  const auto pixels = ValuesOf<uint8_t>(sample.fields[0]);
  ASSERT_EQ(pixels.size(), 3072u);
  for (int i = 0; i < 1024; ++i)
    for (int c = 0; c < 3; ++c)
      ASSERT_EQ(pixels[3 * i + c], (i + c * 7 + 100) % 251);
  EXPECT_EQ(source->Describe(1), file + ": record 1");
  const auto place = source->Locate(1);
  EXPECT_EQ(place->index, 1u);
  EXPECT_EQ(BytesAt(place)[0], 9) << "the label is a record's first byte";
}

TEST_F(CifarTest, ARecordOfACopyIsWhereTheJobSaysThatItIs) {
  dir_.Write("copy/a", Record("\x03", 0));
  StorageConfig config;
  config.local_copies["/jobs/cifar"] = dir_.path() + "/copy";
  const auto storage = *Storage::Create(config);
  limits_.storage = storage.get();
  EXPECT_EQ(Open(Cifar10({"/jobs/cifar/a"}))->Locate(0)->file, "/jobs/cifar/a");
}

TEST_F(CifarTest, TheFineLabelComesFirst) {
  const std::string file = dir_.Write("a", Record("\x13\x63", 1));
  const auto source = Open(Cifar100({file}));
  const StoredSample sample = Get(*source, 0);
  ASSERT_EQ(sample.fields.size(), 3u);
  EXPECT_EQ(IntOf(sample.fields[1]), 99);
  EXPECT_EQ(IntOf(sample.fields[2]), 19);
  EXPECT_EQ(ValuesOf<uint8_t>(sample.fields[0])[1], 8);
}

TEST_F(CifarTest, FilesFollowEachOtherAndFoldersAreSorted) {
  dir_.Write("d/data_batch_2.bin", Record("\x02", 0) + Record("\x03", 0));
  dir_.Write("d/data_batch_1.bin", Record("\x01", 0));
  dir_.Write("d/test_batch.bin", Record("\x09", 0));
  dir_.Write("d/batches.meta.txt", "airplane");
  const std::string last = dir_.Write("z", Record("\x04", 0));
  const auto source = Open(Cifar10({dir_.path() + "/d", last}));
  std::vector<int32_t> labels;
  for (uint64_t i = 0; i < source->num_samples(); ++i)
    labels.push_back(IntOf(Get(*source, i).fields[1]));
  EXPECT_THAT(labels, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(source->Describe(2), HasSubstr("data_batch_2.bin: record 1"));
}

TEST_F(CifarTest, AFolderWithoutSuchFilesSaysWhatWasLookedFor) {
  dir_.Write("d/other", "");
  const auto status = ErrorOf(Cifar10({dir_.path() + "/d"}));
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("data_batch_*.bin"));
}

TEST_F(CifarTest, AFileThatIsNoMultipleOfARecordIsRefused) {
  for (const std::string& bad :
       {std::string(), std::string("x"), Record("\x01", 0) + "x",
        Record("\x01\x01", 0)}) {
    const auto status = ErrorOf(Cifar10({dir_.Write("a", bad)}));
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(Message(status), HasSubstr("3073"));
  }
  EXPECT_TRUE(
      absl::IsDataLoss(ErrorOf(Cifar100({dir_.Write("a", Record("\1", 0))}))));
}

TEST_F(CifarTest, ALabelOutOfRangeIsABadSample) {
  const auto ten =
      Open(Cifar10({dir_.Write("a", Record("\x0a", 0) + Record("\x09", 0))}));
  const auto status = ten->Read(0).status();
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_THAT(Message(status), HasSubstr("label 10, want 0 to 9"));
  EXPECT_TRUE(ten->Read(1).ok());
  const auto hundred = Open(Cifar100(
      {dir_.Write("b", Record("\x14\x01", 0) + Record("\x01\x64", 0))}));
  EXPECT_TRUE(absl::IsDataLoss(hundred->Read(0).status()));
  EXPECT_TRUE(absl::IsDataLoss(hundred->Read(1).status()));
}

TEST_F(CifarTest, NoSuchFileAndNoPathsAreErrors) {
  const auto status = ErrorOf(Cifar10({"/no/such"}));
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("/no/such"));
  EXPECT_TRUE(absl::IsInvalidArgument(ErrorOf(Cifar10({}))));
}

TEST_F(CifarTest, AFileThatChangesIsNotReadOn) {
  const auto source = Open(Cifar10({dir_.Write("a", Record("\1", 0))}));
  dir_.Write("a", Record("\1", 0) + Record("\2", 0));
  EXPECT_TRUE(absl::IsFailedPrecondition(source->Read(0).status()));
}

TEST_F(CifarTest, ALimitOfRecordsHolds) {
  limits_.max_files = 1;
  EXPECT_TRUE(absl::IsResourceExhausted(
      ErrorOf(Cifar10({dir_.Write("a", Record("\1", 0) + Record("\1", 0))}))));
}

TEST_F(CifarTest, RandomBytesAreNotAnIndex) {
  const Node reader = Cifar10({dir_.Write("a", Record("\1", 0))});
  const StoredSample good = Get(*Open(reader), 0);
  for (size_t i = 0; i < index_.blob.size(); ++i) {
    std::string blob = index_.blob;
    blob[i] = static_cast<char>(blob[i] ^ 1);
    const auto source = OpenSource(reader, blob, limits_);
    if (source.ok())
      if (const auto read = (*source)->Read(0); read.ok())
        for (size_t f = 0; f < good.fields.size(); ++f) {
          EXPECT_TRUE(
              std::ranges::equal(read->fields[f].bytes, good.fields[f].bytes))
              << "byte " << i << " field " << f;
        }
    EXPECT_FALSE(OpenSource(reader, blob.substr(0, i), limits_).ok());
  }
}

class CifarOf : public CifarTest,
                public ::testing::WithParamInterface<TestData> {};
INSTANTIATE_TEST_SUITE_P(Data, CifarOf, AllTestData(), TestDataName);

TEST_P(CifarOf, SeveralFilesIsRead) {
  const std::string root = TestDataFolder(GetParam(), "cifar10-bin");
  if (root.empty()) GTEST_SKIP() << NoTestData(GetParam(), "cifar10-bin");
  const auto source = Open(Cifar10({root}));
  std::ifstream file(root + "/data_batch_2.bin", std::ios::binary);
  const std::string second{std::istreambuf_iterator<char>(file), {}};
  const uint64_t first = fs::file_size(root + "/data_batch_1.bin") / 3073;
  for (uint64_t i = 0; i < second.size() / 3073; i += 97) {
    const StoredSample sample = Get(*source, first + i);
    ASSERT_EQ(IntOf(sample.fields[1]), second[i * 3073]);
    const std::string pixels = TextOf(sample.fields[0]);
    for (size_t p : {0, 33, 1023})
      for (size_t c : {0, 1, 2})
        ASSERT_EQ(pixels[p * 3 + c], second[i * 3073 + 1 + c * 1024 + p]);
  }
}

}  // namespace
}  // namespace leat::worker
