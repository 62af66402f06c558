// SPDX-License-Identifier: Apache-2.0
#include "worker/source/array_record/array_record.h"

#include <zstd.h>

#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "leat/stored/v1/records.pb.h"
#include "tests/worker/source/array_record/riegeli_writer.h"
#include "tests/worker/temp_dir.h"
#include "worker/source/index_blob.h"
#include "worker/source/storage/storage.h"

namespace leat::worker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ArrayRecordTest : public ::testing::Test {
 protected:
  static Node Reader(const std::vector<std::string>& paths,
                     const std::string& type = "encoded") {
    return {.op = "readers.array_record",
            .inputs = {},
            .args = {{"paths", paths}, {"type", type}}};
  }
  std::string Write(const std::string& name,
                    const std::vector<std::string>& records, size_t group) {
    return dir_.Write(name, RiegeliWriter::File(records, group));
  }
  std::unique_ptr<Source> Open(const Node& reader) {
    const auto index = BuildIndex(reader, limits_);
    EXPECT_TRUE(index.ok()) << index.status();
    auto source = OpenSource(reader, index->blob, limits_);
    EXPECT_TRUE(source.ok()) << source.status();
    return *std::move(source);
  }
  absl::Status ErrorOf(const std::string& bytes) {
    return BuildIndex(Reader({dir_.Write("bad", bytes)}), limits_).status();
  }
  // Returns the error of reading a file with this one chunk.
  absl::Status ReadError(const std::string& data, uint64_t records,
                         uint64_t decoded, char type = 'r') {
    RiegeliWriter writer;
    const uint64_t at = writer.Chunk(data, records, decoded, type);
    const std::string file = dir_.Write("one", writer.Finish({at}, {1}));
    return Open(Reader({file}))->Read(0).status();
  }

  TempDir dir_;
  SourceLimits limits_;
};

TEST_F(ArrayRecordTest, TheHashIsHighwayHash) {
  // The first block's header, and the signature's, of every such file.
  EXPECT_EQ(RiegeliWriter::Hash(Little(uint64_t{0}) + Little(uint64_t{64})),
            0x3f4a880dd170af83u);
  EXPECT_EQ(RiegeliWriter::Hash(""), 0x72c3b1e9c0139fe1u);
}

TEST_F(ArrayRecordTest, RecordsOfSeveralFilesAreSamplesInOrder) {
  const std::string a = Write("a", {"one", "", "three"}, 1);
  const std::string b = Write("b", {"4", "5", "6", "7", "8"}, 2);
  const auto source = Open(Reader({a, b}));
  ASSERT_EQ(source->num_samples(), 8u);
  std::vector<std::string> records;
  for (uint64_t i = 0; i < 8; ++i) {
    const auto sample = source->Read(i);
    ASSERT_TRUE(sample.ok()) << sample.status();
    EXPECT_TRUE(sample->fields[0].shape.empty());
    records.push_back(TextOf(sample->fields[0]));
  }
  EXPECT_THAT(records,
              ElementsAre("one", "", "three", "4", "5", "6", "7", "8"));
  EXPECT_EQ(source->Describe(4), b + " record 1");
  EXPECT_EQ(Open(Reader({b}, "bytes"))->Read(0)->fields[0].shape, Shape{1});
}

TEST_F(ArrayRecordTest, RecordsMayBeRawElements) {
  const std::string file = Write("a", {"abcdef", "", "abc"}, 2);
  const auto open = Open(Reader({file}, "uint16[?]"));
  EXPECT_EQ(open->Read(0)->fields[0].shape, Shape{3});
  EXPECT_EQ(open->Read(1)->fields[0].shape, Shape{0});
  EXPECT_THAT(std::string(open->Read(2).status().message()),
              HasSubstr("a record 2: 3 bytes of shape (1), want uint16 (?,)"));
  const auto fixed = Open(Reader({file}, "uint16[3]"));
  EXPECT_TRUE(fixed->Read(0).ok());
  EXPECT_FALSE(fixed->Read(1).ok());
}

TEST_F(ArrayRecordTest, ChunksLieAcrossTheHeadersOfBlocks) {
  std::vector<std::string> records;
  for (int i = 0; i < 30; ++i)
    records.emplace_back(static_cast<size_t>(i * 1999), static_cast<char>(i));
  records.emplace_back(300'000, 'x');
  for (const size_t group : {1, 3, 100}) {
    const auto source = Open(Reader({Write("a", records, group)}));
    for (size_t i = 0; i < records.size(); ++i)
      EXPECT_EQ(TextOf(source->Read(i)->fields[0]), records[i]) << group;
  }
}

TEST_F(ArrayRecordTest, CompressedChunksAreUnpacked) {
  const auto pack = [](const std::string& bytes) {
    std::string packed(ZSTD_compressBound(bytes.size()), '\0');
    packed.resize(ZSTD_compress(packed.data(), packed.size(), bytes.data(),
                                bytes.size(), 3));
    return VarintOf(bytes.size()) + packed;
  };
  const std::string sizes = pack("\x03");
  const std::string good = "z" + VarintOf(sizes.size()) + sizes + pack("abc");
  EXPECT_TRUE(ReadError(good, 1, 3).ok());
  for (const std::string& bad :
       {good.substr(0, good.size() - 1), good + "x",
        "z" + VarintOf(sizes.size()) + sizes + pack("abcd"),
        "z" + VarintOf(sizes.size()) + sizes + VarintOf(1ull << 60) + "abc",
        std::string("z"), std::string("z\x05zzzzz")})
    EXPECT_TRUE(absl::IsDataLoss(ReadError(bad, 1, 3))) << bad;
  EXPECT_TRUE(absl::IsUnimplemented(ReadError("s\x01x", 1, 3)));
  EXPECT_TRUE(absl::IsUnimplemented(ReadError(good, 1, 3, 't')));
}

TEST_F(ArrayRecordTest, MalformedChunksAreErrors) {
  const std::string good = RiegeliWriter::Simple({"abc"});
  EXPECT_TRUE(ReadError(good, 1, 3).ok());
  EXPECT_TRUE(absl::IsDataLoss(ReadError(good, 1, 4)));
  EXPECT_TRUE(absl::IsDataLoss(ReadError(good, 1, 2)));
  EXPECT_TRUE(absl::IsDataLoss(ReadError(good, 0, 3)));
  EXPECT_TRUE(absl::IsDataLoss(ReadError(good, 2, 3)));
  EXPECT_TRUE(absl::IsDataLoss(ReadError(good, (1ull << 56) - 1, 3)));
  EXPECT_TRUE(absl::IsDataLoss(ReadError(good, 1, 3, 'm')));
  EXPECT_TRUE(absl::IsDataLoss(ReadError("", 1, 0)));
  EXPECT_TRUE(
      absl::IsDataLoss(ReadError("q\x01\x03"
                                 "abc",
                                 1, 3)));
  EXPECT_TRUE(absl::IsResourceExhausted(ReadError(good, 1, 1ull << 60)));
  const std::string two = RiegeliWriter::Simple({"abc", "d"});
  const absl::Status status = ReadError(two, 2, 4);
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_THAT(Message(status), HasSubstr("has 2 records, the footer says 1"));
}

TEST_F(ArrayRecordTest, AnErrorAboutAnIndexHasNoSecrets) {
  const std::string uri = "https://user:secret@host/a?sig=secret";
  const Node reader = Reader({uri});
  for (const uint64_t records : {0, 1}) {  // none, and a chunk after the end
    stored::v1::ArrayRecordHead head;
    head.set_reader(CanonicalText(reader));
    head.set_encoded(true);
    stored::v1::ArrayRecordFile file;
    file.mutable_file()->set_name(uri);
    file.mutable_file()->set_bytes(1);
    file.mutable_file()->set_identity("size=1");
    file.set_records(records);
    file.set_group(1);
    for (const uint64_t offset : {0, 2}) file.add_offsets(offset);
    BlobWriter blob(limits_);
    ASSERT_TRUE(blob.Add(head).ok() && blob.Add(file, 1).ok());
    const absl::Status status =
        OpenSource(reader, *blob.Finish(), limits_).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(Message(status), HasSubstr("https://host/a: "));
    EXPECT_THAT(Message(status), testing::Not(HasSubstr("secret")));
  }
}

TEST_F(ArrayRecordTest, AFlippedBitIsFoundByItsHash) {
  std::string bytes = RiegeliWriter::File({"abcdef"}, 1);
  bytes[bytes.find("abcdef")] ^= 4;
  const auto source = Open(Reader({dir_.Write("a", bytes)}));
  const absl::Status status = source->Read(0).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("another hash"));
  EXPECT_THAT(Message(status), HasSubstr("record 0"));
}

TEST_F(ArrayRecordTest, OtherFilesAreRefused) {
  const std::string good = RiegeliWriter::File({"a"}, 1);
  for (const std::string& bad :
       {std::string(), std::string("x"), good.substr(0, 65536), good + "x",
        std::string(1 << 17, '\0'), std::string(1 << 17, 'x'),
        good.substr(65536) + good.substr(0, 65536)})
    EXPECT_TRUE(absl::IsDataLoss(ErrorOf(bad))) << bad.size();
  EXPECT_TRUE(absl::IsNotFound(ErrorOf(RiegeliWriter::File({}, 1))));
  EXPECT_TRUE(absl::IsNotFound(
      BuildIndex(Reader({"/no/such/file"}), limits_).status()));
}

TEST_F(ArrayRecordTest, WrongFootersAreRefused) {
  const auto error = [&](const std::vector<uint64_t>& offsets,
                         const std::vector<uint64_t>& sizes) {
    RiegeliWriter writer;
    writer.Chunk({"a"});
    return ErrorOf(writer.Finish(offsets, sizes));
  };
  EXPECT_TRUE(error({0}, {1}).ok());
  EXPECT_TRUE(absl::IsDataLoss(error({1ull << 40}, {1})));
  EXPECT_TRUE(absl::IsDataLoss(error({UINT64_MAX}, {1})));
  EXPECT_TRUE(absl::IsDataLoss(error({5, 5}, {1, 1})));
  EXPECT_TRUE(absl::IsUnimplemented(error({0, 5}, {1, 2})));
  EXPECT_TRUE(absl::IsUnimplemented(error({0, 5, 9}, {2, 1, 2})));
  EXPECT_TRUE(absl::IsUnimplemented(error({0}, {0})));
  // Sizes whose sum overflows.
  EXPECT_FALSE(error({0, 5}, {UINT64_MAX, UINT64_MAX}).ok());
}

// A worker may have the folder elsewhere, and not under the jobs' path.
TEST_F(ArrayRecordTest, AFolderIsListedWhereThisMachineHasItsCopy) {
  Write("copy/b.array_record", {"b"}, 1);
  Write("copy/a.array_record", {"a"}, 1);
  StorageConfig config;
  config.local_copies["/jobs/records"] = dir_.path() + "/copy";
  const auto storage = Storage::Create(config);
  ASSERT_TRUE(storage.ok()) << storage.status();
  limits_.storage = storage->get();
  for (const char* path :
       {"/jobs/records", "/jobs/records/", "file:///jobs/records"}) {
    const auto source = Open(Reader({path}));
    ASSERT_EQ(source->num_samples(), 2u);
    EXPECT_EQ(TextOf(source->Read(0)->fields[0]), "a");
  }
}

// A size takes a byte in the chunk and eight in memory.
TEST_F(ArrayRecordTest, ManyEmptyRecordsAreBoundedAsTheirSizesInMemory) {
  const std::vector<std::string> empty(1000);
  const auto file = dir_.Write("a", RiegeliWriter::File(empty, empty.size()));
  limits_.max_file_bytes = 8000;
  EXPECT_TRUE(Open(Reader({file}))->Read(0).ok());
  limits_.max_file_bytes = 7999;
  const absl::Status status = Open(Reader({file}))->Read(0).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
}

TEST_F(ArrayRecordTest, LimitsHold) {
  const std::string file = Write("a", {std::string(5000, 'x'), "y"}, 1);
  limits_.max_file_bytes = 4000;
  const auto source = Open(Reader({file}));
  EXPECT_TRUE(absl::IsResourceExhausted(source->Read(0).status()));
  EXPECT_TRUE(source->Read(1).ok());
  limits_.max_files = 1;
  EXPECT_TRUE(
      absl::IsResourceExhausted(BuildIndex(Reader({file}), limits_).status()));
  limits_.max_files = 2;
  EXPECT_TRUE(BuildIndex(Reader({file}), limits_).ok());
  limits_.max_index_bytes = 10;
  EXPECT_TRUE(
      absl::IsResourceExhausted(BuildIndex(Reader({file}), limits_).status()));
  const std::atomic<bool> cancelled{true};
  limits_.cancelled = &cancelled;
  EXPECT_TRUE(absl::IsCancelled(BuildIndex(Reader({file}), limits_).status()));
}

TEST_F(ArrayRecordTest, AFileThatChangedAfterIndexingIsAnError) {
  const std::string file = Write("a", {"x"}, 1);
  const auto source = Open(Reader({file}));
  dir_.Write("a", RiegeliWriter::File({"x"}, 1) + "more");
  const absl::Status status = source->Read(0).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("changed"));
}

TEST_F(ArrayRecordTest, DamagedFilesNeverCrash) {
  const std::string good = RiegeliWriter::File({"abc", "de", "f"}, 2);
  std::minstd_rand random(1);
  for (int i = 0; i < 300; ++i) {
    std::string bytes = good;
    // Most of a file is padding.
    const size_t at = random() % 400 + (i % 3 == 0 ? 65536 : 0);
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
    const Node reader = Reader({dir_.Write("a", bytes)});
    const auto index = BuildIndex(reader, limits_);
    if (!index.ok()) continue;
    const auto source = OpenSource(reader, index->blob, limits_);
    ReadDamaged(source);
    // All bytes except padding have checksums.
    ASSERT_TRUE(source.ok()) << source.status();
    const std::vector<std::string> records = {"abc", "de", "f"};
    ASSERT_EQ((*source)->num_samples(), records.size());
    for (uint64_t sample = 0; sample < records.size(); ++sample)
      if (const auto stored = (*source)->Read(sample); stored.ok()) {
        EXPECT_EQ(TextOf(stored->fields[0]), records[sample]) << at;
      }
  }
}

}  // namespace
}  // namespace leat::worker
