// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "leat/stored/v1/records.pb.h"
#include "tests/worker/source/mds/mds_fixture.h"
#include "worker/source/index_blob.h"

namespace leat::worker {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

TEST_F(MdsTest, AShardOutsideItsFolderIsRefused) {
  WriteGood();
  for (const char* name : {"../shard.0.mds", "/etc/passwd", "sub/../../x", "..",
                           "", "a\\u0000b"}) {
    WriteIndex({ShardJson(FileJson(name, first_), "null", 2)});
    const absl::Status status = IndexError();
    EXPECT_TRUE(absl::IsDataLoss(status)) << name << status;
    EXPECT_THAT(Message(status), HasSubstr("outside the dataset's folder"));
  }
}

TEST_F(MdsTest, HostileIndexFilesAreRefused) {
  const std::string file = FileJson("s.mds", "x");
  const std::string deep(1'000'000, '[');
  for (const std::string& json : std::vector<std::string>{
           "",
           "null",
           "[]",
           "{}",
           "{",
           deep,
           deep + std::string(1'000'000, ']'),
           R"({"version":2,"shards":{}})",
           R"({"version":2,"shards":[1]})",
           R"({"version":2.5,"shards":[]})",
           R"({"version":-2,"shards":[]})",
           R"({"version":2})",
           "\xff\xfe{}",
           IndexJson({ShardJson(file, "null", UINT64_MAX)}),
           IndexJson({ShardJson("7", "null", 1)}),
           IndexJson({ShardJson("null", "null", 1)}),
           IndexJson({ShardJson(file, "7", 1)}),
           IndexJson({ShardJson(file, file, 1)}),
           IndexJson(
               {ShardJson(R"({"basename":"a","bytes":1e400})", "null", 1)}),
           IndexJson({ShardJson(R"({"basename":"a","bytes":4294967297})",
                                "null", 1)}),
           IndexJson({ShardJson(R"({"basename":7,"bytes":1})", "null", 1)}),
           IndexJson(
               {ShardJson(R"({"basename":"a","bytes":1,"hashes":{"a:b":"c"}})",
                          "null", 1)}),
           IndexJson({ShardJson(file, "null", 1, {"[]", "[]", "[1]"})}),
           IndexJson({ShardJson(file, "null", 1, {"[1]", "[1]", "[1]"})}),
           IndexJson({ShardJson(file, "null", 1,
                                {R"(["image"])", R"(["jpeg"])", "[-1]"})}),
           IndexJson({ShardJson(file, "null", 1,
                                {R"(["image"])", R"(["jpeg"])", "[1e99]"})}),
       }) {
    dir_.Write("index.json", json);
    const absl::Status status = IndexError();
    EXPECT_TRUE(absl::IsDataLoss(status)) << json.substr(0, 300) << status;
  }
  dir_.Write("index.json", R"({"version":1,"shards":[]})");
  EXPECT_TRUE(absl::IsUnimplemented(IndexError()));
  dir_.Write("index.json", IndexJson({}));
  EXPECT_TRUE(absl::IsNotFound(IndexError()));
}

TEST_F(MdsTest, ShardsOfOtherFormatsOrColumnsAreRefused) {
  const std::string file = FileJson("s.mds", "x");
  std::string csv = ShardJson(file, "null", 1);
  csv.replace(csv.find("\"mds\""), 5, "\"csv\"");
  WriteIndex({csv});
  EXPECT_TRUE(absl::IsUnimplemented(IndexError()));
  WriteIndex({ShardJson(file, "null", 1),
              ShardJson(file, "null", 1, {"[]", "[]", "[]"})});
  EXPECT_THAT(Message(IndexError()), HasSubstr("columns differ"));
}

TEST_F(MdsTest, BytesThatAreNoWholeElementsNameRecordColumnAndLength) {
  const auto source =
      Open(WriteTokens({"abcd", "abc", ""}, {"uint16[?]", "int64"}));
  EXPECT_TRUE(source->Read(0).ok());
  EXPECT_TRUE(source->Read(2).ok());
  const absl::Status status = source->Read(1).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  for (const char* part :
       {"s.mds sample 1", "column \"tokens\"", "3 bytes", "uint16 (?,)"})
    EXPECT_THAT(Message(status), HasSubstr(part));
  const auto fixed = Open(WriteTokens({"abc"}, {"uint16[2]", "int64"}));
  EXPECT_THAT(Message(fixed->Read(0).status()),
              HasSubstr("3 bytes, want uint16 (2,)"));
}

TEST_F(MdsTest, TypesMustFitTheColumnsOfIndexJson) {
  const absl::Status other =
      IndexError(WriteTokens({"ab"}, {"uint16[?]", "int32"}));
  EXPECT_TRUE(absl::IsInvalidArgument(other)) << other;
  for (const char* part :
       {"column \"label\"", "encoding \"int\"", "int64 scalar", "int32 scalar"})
    EXPECT_THAT(Message(other), HasSubstr(part));
  EXPECT_THAT(Message(IndexError(WriteTokens({"ab"}, {"uint16[?]"}))),
              HasSubstr("2 columns and 1 types"));
  EXPECT_THAT(Message(IndexError(WriteTokens({"ab"}, {"uint17[?]", "int64"}))),
              HasSubstr("\"uint17[?]\" is no type"));
  Node both = WriteTokens({"ab"}, {"encoded", "int64"});
  both.args["images"] = std::vector<std::string>{"tokens"};
  EXPECT_THAT(Message(IndexError(both)), HasSubstr("images: types says"));
}

TEST_F(MdsTest, AShardThatIsMissingOrOfAnotherSizeIsNamed) {
  WriteGood();
  dir_.Write("shard.0.mds", first_ + "x");
  absl::Status status = IndexError();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("shard.0.mds"));
  fs::remove(dir_.path() + "/shard.0.mds");
  status = IndexError();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("shard.0.mds"));
  fs::remove(dir_.path() + "/index.json");
  EXPECT_THAT(Message(IndexError()), HasSubstr("index.json"));
}

TEST_F(MdsTest, AShardThatChangedAfterIndexingIsAnError) {
  WriteGood();
  const auto source = Open(Reader());
  std::string other = first_;
  other.back() ^= 1;
  dir_.Write("shard.0.mds", other);
  fs::last_write_time(
      dir_.path() + "/shard.0.mds",
      fs::file_time_type::clock::now() - std::chrono::seconds(50));
  const absl::Status status = source->Read(0).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("changed"));
  EXPECT_TRUE(source->Read(2).ok());
}

TEST_F(MdsTest, TheFingerprintChangesWithAnyShard) {
  WriteGood();
  const Digest first = Index(Reader()).fingerprint;
  EXPECT_EQ(first, Index(Reader()).fingerprint);
  EXPECT_NE(first, Index(Reader({"label"})).fingerprint);
  fs::last_write_time(
      dir_.path() + "/shard.0.mds",
      fs::file_time_type::clock::now() - std::chrono::seconds(50));
  EXPECT_NE(first, Index(Reader()).fingerprint);
}

TEST_F(MdsTest, MoreSamplesThanADatasetMayHaveAreRefused) {
  WriteGood();
  const uint64_t samples = Index(Reader()).shards.num_samples();
  limits_.max_files = samples;
  EXPECT_TRUE(BuildIndex(Reader(), limits_).ok());
  limits_.max_files = samples - 1;
  EXPECT_TRUE(absl::IsResourceExhausted(IndexError()));
}

TEST_F(MdsTest, ACancelledListingEnds) {
  WriteGood();
  const std::atomic<bool> cancelled{true};
  limits_.cancelled = &cancelled;
  EXPECT_TRUE(absl::IsCancelled(IndexError()));
}

TEST_F(MdsTest, DamagedShardsNeverCrash) {
  WriteGood();
  Damage(first_, 500, [&](const std::string& bytes) {
    dir_.Write("shard.0.mds", bytes);
    WriteIndex({ShardJson(FileJson("shard.0.mds", bytes), "null", 2)});
    const auto index = BuildIndex(Reader(), limits_);
    if (index.ok()) ReadDamaged(OpenSource(Reader(), index->blob, limits_));
  });
}

TEST_F(MdsTest, DamagedIndexFilesNeverCrash) {
  const std::string good =
      ShardJson(FileJson("shard.0.mds", "x"), FileJson("shard.0.mds.gz", "y"),
                1, {}, "\"gz\"");
  Damage(IndexJson({good}), 1000, [&](const std::string& bytes) {
    const auto parsed = ParseMdsIndex(bytes);
    if (!parsed.ok()) {
      EXPECT_TRUE(absl::IsDataLoss(parsed.status()) ||
                  absl::IsUnimplemented(parsed.status()))
          << parsed.status();
      return;
    }
    for (const MdsShardInfo& shard : parsed->shards) {
      const std::string name = "/" + shard.raw.name + "/";
      EXPECT_EQ(name.find("/../"), std::string::npos) << name;
      EXPECT_EQ(name.find("//"), std::string::npos) << name;
    }
  });
}

TEST_F(MdsTest, AnIndexThatLiesAboutAPackedShardAsksForNoMemory) {
  WritePacked(Zstd(Shard({Sample("a", 1, "one"), Sample("bb", 2, "")})),
              "zstd");
  const std::string blob = Index(Reader()).blob;
  BlobReader in(blob);
  stored::v1::MdsHead head;
  stored::v1::MdsShards shards;
  ASSERT_TRUE(in.Next(&head).ok());
  ASSERT_TRUE(in.Next(&shards).ok());
  shards.mutable_shards(0)->mutable_file()->set_bytes(UINT32_MAX);
  BlobWriter lie(limits_);
  ASSERT_TRUE(lie.Add(head).ok());
  ASSERT_TRUE(lie.Add(shards).ok());
  const auto source = OpenSource(Reader(), lie.Finish().value(), limits_);
  ASSERT_TRUE(source.ok()) << source.status();
  const absl::Status status = (*source)->Read(0).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("the index says 4294967295"));
}

TEST_F(MdsTest, TheIndexOfAnotherReaderIsRefused) {
  WriteGood();
  EXPECT_TRUE(absl::IsDataLoss(
      OpenSource(Reader({"text"}), Index(Reader()).blob, limits_).status()));
}

}  // namespace
}  // namespace leat::worker
