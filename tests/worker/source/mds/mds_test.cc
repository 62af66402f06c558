// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/job/records_alone.h"
#include "tests/worker/source/mds/mds_fixture.h"

namespace leat::worker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
namespace fs = std::filesystem;

TEST_F(MdsTest, ColumnsAreOutputsAndShardsAreShards) {
  WriteGood();
  const BuiltIndex index = Index(Reader());
  EXPECT_EQ(index.shards.num_shards(), 2u);
  EXPECT_EQ(index.shards.range(1).begin, 2u);
  EXPECT_EQ(index.bytes, first_.size() + second_.size());
  EXPECT_THAT(
      index.types,
      ElementsAre(ValueType{ValueType::Kind::kEncoded, DType::kUint8, {}},
                  ValueType{ValueType::Kind::kTensor, DType::kInt64, {}},
                  ValueType{ValueType::Kind::kTensor, DType::kUint8, {-1}}));
  const auto source = Open(Reader());
  EXPECT_EQ(source->fingerprint(), index.fingerprint);
  const auto sample = source->Read(1);
  ASSERT_TRUE(sample.ok()) << sample.status();
  EXPECT_EQ(TextOf(sample->fields[0]), "bb");
  EXPECT_THAT(ValuesOf<int64_t>(sample->fields[1]), ElementsAre(2));
  EXPECT_EQ(sample->fields[2].shape, Shape{0});
  const auto last = source->Read(2);
  EXPECT_THAT(ValuesOf<int64_t>(last->fields[1]), ElementsAre(-3));
  EXPECT_EQ(TextOf(last->fields[2]), "three");
  EXPECT_THAT(source->Describe(2), HasSubstr("sub/shard.1.mds sample 0"));
}

TEST_F(MdsTest, EachRecordIsReadAlone) {
  WriteGood();
  EXPECT_THAT(
      RecordsAlone(Reader(), limits_),
      ElementsAre(ElementsAre("a", Little(int64_t{1}), "one"),
                  ElementsAre("bb", Little(int64_t{2}), ""),
                  ElementsAre(testing::_, Little(int64_t{-3}), "three")));
}

TEST_F(MdsTest, SamplesReadTogetherHaveResultsOfTheirOwn) {
  WriteGood();
  dir_.Write("shard.0.mds", first_ = Shard({Sample("a", 1, "one"), "", "bb"}));
  WriteIndex({ShardJson(FileJson("shard.0.mds", first_), "null", 3),
              ShardJson(FileJson("sub/shard.1.mds", second_), "null", 1)});
  const auto source = Open(Reader());
  const auto read = source->ReadMany(std::vector<uint64_t>{3, 0, 1, 2, 0});
  ASSERT_EQ(read.size(), 5u);
  EXPECT_EQ(TextOf(read[0]->fields[2]), "three");
  EXPECT_EQ(TextOf(read[1]->fields[2]), "one");
  for (const size_t bad : {2, 3})
    EXPECT_TRUE(absl::IsDataLoss(read[bad].status()));
  EXPECT_EQ(TextOf(read[4]->fields[2]), "one");
}

TEST_F(MdsTest, ColumnsComeInTheOrderAsked) {
  WriteGood();
  const auto sample = Open(Reader({"text", "label"}))->Read(0);
  ASSERT_EQ(sample->fields.size(), 2u);
  EXPECT_EQ(TextOf(sample->fields[0]), "one");
  EXPECT_THAT(ValuesOf<int64_t>(sample->fields[1]), ElementsAre(1));
}

TEST_F(MdsTest, AnUnknownColumnIsNamedWithThoseThereAre) {
  WriteGood();
  const absl::Status status = IndexError(Reader({"labels"}));
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(Message(status), HasSubstr("\"labels\""));
  EXPECT_THAT(Message(status), HasSubstr("image, label, text"));
  EXPECT_TRUE(absl::IsInvalidArgument(IndexError(Reader({}))));
  EXPECT_TRUE(absl::IsInvalidArgument(IndexError(Reader({"text", "text"}))));
}

TEST_F(MdsTest, NumbersAreAsTheyAreAndDoublesAreRounded) {
  const auto read = [&]<class T>(const char* encoding, auto stored, T) {
    const auto sample =
        ReadColumn(encoding, std::to_string(sizeof stored), Little(stored));
    EXPECT_TRUE(sample.ok()) << sample.status();
    return sample.ok() ? ValuesOf<T>(sample->fields[0]) : std::vector<T>();
  };
  EXPECT_THAT(read("int", int64_t{-5}, int64_t{}), ElementsAre(-5));
  EXPECT_THAT(read("int64", int64_t{-5}, int64_t{}), ElementsAre(-5));
  EXPECT_THAT(read("int32", int32_t{-5}, int32_t{}), ElementsAre(-5));
  EXPECT_THAT(read("int16", int16_t{-5}, int16_t{}), ElementsAre(-5));
  EXPECT_EQ(type_.dtype, DType::kInt16);
  EXPECT_THAT(read("int8", int8_t{-5}, int8_t{}), ElementsAre(-5));
  EXPECT_EQ(type_.dtype, DType::kInt8);
  EXPECT_THAT(read("uint8", uint8_t{250}, uint8_t{}), ElementsAre(250));
  EXPECT_THAT(read("uint16", uint16_t{65535}, uint16_t{}), ElementsAre(65535));
  EXPECT_EQ(type_.dtype, DType::kUint16);
  EXPECT_THAT(read("uint32", UINT32_MAX, uint32_t{}), ElementsAre(UINT32_MAX));
  EXPECT_EQ(type_.dtype, DType::kUint32);
  EXPECT_THAT(read("float16", uint16_t{0x3c00}, uint16_t{}),
              ElementsAre(0x3c00));
  EXPECT_EQ(type_.dtype, DType::kFloat16);
  EXPECT_THAT(read("float32", 1.5f, float{}), ElementsAre(1.5f));
  EXPECT_THAT(read("float64", 0.1, float{}), ElementsAre(0.1f));
  EXPECT_EQ(type_.dtype, DType::kFloat32);
}

TEST_F(MdsTest, ArraysHaveTheirDeclaredShape) {
  const auto sample = ReadColumn("ndarray:int16:2,3", "12",
                                 BytesOfValues<int16_t>({1, 2, 3, 4, 5, -6}));
  ASSERT_TRUE(sample.ok()) << sample.status();
  EXPECT_EQ(type_,
            (ValueType{ValueType::Kind::kTensor, DType::kInt16, {2, 3}}));
  EXPECT_THAT(ValuesOf<int16_t>(sample->fields[0]),
              ElementsAre(1, 2, 3, 4, 5, -6));
}

TEST_F(MdsTest, OtherEncodingsAreRefusedByName) {
  for (const char* encoding :
       {"pkl", "json", "pil", "uint64", "str_int", "jpeg_array", "list[jpeg]",
        "ndarray", "ndarray:uint8", "ndarray:uint64:2", "", "nonsense"}) {
    const absl::Status status =
        ReadColumn(encoding, "null", Little(uint32_t{1}) + "x").status();
    EXPECT_TRUE(absl::IsUnimplemented(status)) << encoding << status;
    EXPECT_THAT(Message(status), HasSubstr(fmt::format("\"{}\"", encoding)));
    EXPECT_THAT(Message(status), HasSubstr("column \"x\""));
  }
  for (const char* encoding :
       {"ndarray:uint8:0", "ndarray:uint8:-1",
        "ndarray:uint8:", "ndarray:uint8:2,",
        "ndarray:uint8:4294967296,4294967296", "ndarray:int64:4294967295",
        "ndarray:uint8:99999999999999999999", "ndarray:uint8:2:3", "int"})
    EXPECT_TRUE(absl::IsDataLoss(ReadColumn(encoding, "null", "x").status()))
        << encoding;
}

TEST_F(MdsTest, ARefusedColumnMayStandBesideThoseThatAreRead) {
  const std::string shard = Shard({Little(uint32_t{3}) + "pkl" + Little(7)});
  dir_.Write("s.mds", shard);
  WriteIndex({ShardJson(FileJson("s.mds", shard), "null", 1,
                        {R"(["a","b"])", R"(["pkl","int32"])", "[null,4]"})});
  EXPECT_THAT(ValuesOf<int>(Open(Reader({"b"}))->Read(0)->fields[0]),
              ElementsAre(7));
}

TEST_F(MdsTest, BytesAreImagesWhereTheReaderSaysSo) {
  const std::string shard = Shard({Little(uint32_t{3}) + "jpg"});
  dir_.Write("s.mds", shard);
  WriteIndex({ShardJson(FileJson("s.mds", shard), "null", 1,
                        {R"(["x"])", R"(["bytes"])", "[null]"})});
  Node reader = Reader({"x"});
  EXPECT_EQ(Index(reader).types[0].kind, ValueType::Kind::kTensor);
  reader.args["images"] = std::vector<std::string>{"x"};
  EXPECT_EQ(Index(reader).types[0].kind, ValueType::Kind::kEncoded);
  const auto sample = Open(reader)->Read(0);
  EXPECT_EQ(TextOf(sample->fields[0]), "jpg");
  EXPECT_TRUE(sample->fields[0].shape.empty());
  reader.args["images"] = std::vector<std::string>{"y"};
  EXPECT_TRUE(absl::IsInvalidArgument(IndexError(reader)));
}

TEST_F(MdsTest, BytesAreElementsWhereTheReaderSaysSo) {
  const Node reader = WriteTokens({BytesOfValues<uint16_t>({7, 65535, 1}), "",
                                   BytesOfValues<uint16_t>({50256})},
                                  {"uint16[?]", "int64"});
  const BuiltIndex index = Index(reader);
  EXPECT_THAT(
      index.types,
      ElementsAre(ValueType{ValueType::Kind::kTensor, DType::kUint16, {-1}},
                  ValueType{ValueType::Kind::kTensor, DType::kInt64, {}}));
  const auto source = Open(reader);
  const auto first = source->Read(0);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_THAT(ValuesOf<uint16_t>(first->fields[0]), ElementsAre(7, 65535, 1));
  EXPECT_EQ(first->fields[0].shape, Shape{3});
  EXPECT_THAT(ValuesOf<int64_t>(first->fields[1]), ElementsAre(0));
  EXPECT_TRUE(first->fields[1].shape.empty());
  EXPECT_EQ(source->Read(1)->fields[0].shape, Shape{0});
  EXPECT_THAT(ValuesOf<uint16_t>(source->Read(2)->fields[0]),
              ElementsAre(50256));
}

TEST_F(MdsTest, DeclaredBytesMayHaveMoreAxesOrBeImages) {
  const std::string rows = BytesOfValues<int32_t>({1, 2, 3, 4, 5, 6});
  const auto rows_of_three =
      Open(WriteTokens({rows}, {"int32[?,3]", "int64"}))->Read(0);
  ASSERT_TRUE(rows_of_three.ok()) << rows_of_three.status();
  EXPECT_EQ(rows_of_three->fields[0].shape, (Shape{2, 3}));
  const auto fixed = Open(WriteTokens({rows}, {"int32[6]", "int64"}))->Read(0);
  ASSERT_TRUE(fixed.ok()) << fixed.status();
  EXPECT_TRUE(fixed->fields[0].shape.empty());
  EXPECT_EQ(Index(WriteTokens({rows}, {"encoded", "int64"})).types[0].kind,
            ValueType::Kind::kEncoded);
}

TEST_F(MdsTest, CompressedShardsAreUnpackedWhenTheyAreAloneThere) {
  const std::string raw = Shard({Sample("a", 1, "one"), Sample("bb", 2, "")});
  const std::string half = raw.substr(0, raw.size() / 2);
  const std::pair<std::string, std::string> all[] = {
      {"zstd", Zstd(raw)},
      {"gz", Gzip(raw)},
      {"gz", Gzip(half) + Gzip(raw.substr(half.size()))}};
  for (const auto& [name, packed] : all) {
    WritePacked(packed, name, Sha1(packed));
    const auto sample = Open(Reader())->Read(1);
    ASSERT_TRUE(sample.ok()) << sample.status();
    EXPECT_EQ(TextOf(sample->fields[0]), "bb");
  }
  dir_.Write("shard.0.mds", first_);
  EXPECT_THAT(Open(Reader())->Describe(0), HasSubstr("shard.0.mds sample"));
  fs::remove(dir_.path() + "/shard.0.mds");
  WritePacked(Zstd(raw), "snappy");
  EXPECT_TRUE(absl::IsUnimplemented(IndexError()));
}

TEST_F(MdsTest, AShardThatUnpacksToSomethingElseIsAnError) {
  const std::string raw = Shard({Sample("a", 1, "one"), Sample("bb", 2, "")});
  std::string other = raw;
  other.back() ^= 1;
  for (const std::string& wrong : {raw + "x", raw.substr(1), other,
                                   std::string(), std::string(1 << 20, 'x')}) {
    for (const bool zstd : {true, false}) {
      WritePacked(zstd ? Zstd(wrong) : Gzip(wrong), zstd ? "zstd" : "gz");
      const absl::Status status = Open(Reader())->Read(0).status();
      EXPECT_TRUE(absl::IsDataLoss(status)) << status;
      EXPECT_THAT(Message(status), HasSubstr("shard.0.mds"));
    }
  }
  WritePacked(Zstd(raw), "zstd", R"({"sha1":"00"})");
  EXPECT_THAT(Message(Open(Reader())->Read(0).status()),
              HasSubstr("the index says 00"));
  WritePacked("", "gz");
  EXPECT_TRUE(absl::IsDataLoss(Open(Reader())->Read(0).status()));
}

TEST_F(MdsTest, VerifyReadsEveryShardAndChecksItsHash) {
  WriteGood();
  Node reader = Reader();
  reader.args["verify"] = true;
  EXPECT_TRUE(absl::IsFailedPrecondition(IndexError(reader)));  // no hashes
  const auto with = [&](const std::string& hashes) {
    WriteIndex({ShardJson(FileJson("shard.0.mds", first_, hashes), "null", 2)});
    return IndexError(reader);
  };
  EXPECT_TRUE(with(Sha1(first_)).ok());
  EXPECT_TRUE(absl::IsDataLoss(with(Sha1(second_))));
  EXPECT_TRUE(absl::IsFailedPrecondition(with(R"({"xxh64":"00"})")));
}

TEST_F(MdsTest, ASmallCacheReadsAllTheSame) {
  std::vector<std::string> shards;
  for (int i = 0; i < 20; ++i) {
    const std::string raw = Shard({Sample("a", i, std::string(100, 'x'))});
    const std::string name = fmt::format("shard.{}.mds", i);
    dir_.Write(name + ".zstd", Zstd(raw));
    shards.push_back(ShardJson(FileJson(name, raw),
                               FileJson(name + ".zstd", Zstd(raw)), 1, {},
                               "\"zstd\""));
  }
  WriteIndex(shards);
  limits_.max_unpacked_bytes = 300;
  const auto source = Open(Reader());
  for (int round = 0; round < 2; ++round)
    for (int i = 0; i < 20; ++i)
      EXPECT_THAT(
          ValuesOf<int64_t>(source->Read(static_cast<uint64_t>(i))->fields[1]),
          ElementsAre(i));
  limits_.max_file_bytes = 50;
  EXPECT_TRUE(absl::IsResourceExhausted(Open(Reader())->Read(0).status()));
}

}  // namespace
}  // namespace leat::worker
