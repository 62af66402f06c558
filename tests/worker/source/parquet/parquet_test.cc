// SPDX-License-Identifier: Apache-2.0
//
// Uses files that pyarrow wrote (tests/golden/parquet/make.py describes them).
// LEAT_PARQUET_FOR_TESTS: the library as built; empty: not built.
#include "worker/source/parquet/parquet.h"

#include <filesystem>
#include <fstream>
#include <thread>

#include "core/cluster/fault.h"
#include "core/pipeline/shape_inference.h"
#include "core/status.h"
#include "gmock/gmock.h"
#include "google/protobuf/stubs/logging.h"
#include "gtest/gtest.h"
#include "tests/worker/job/records_alone.h"
#include "tests/worker/source/loader_support.h"
#include "tests/worker/temp_dir.h"
#include "worker/source/guess/reader.h"

namespace leat::worker {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
namespace fs = std::filesystem;
using Texts = std::vector<std::string>;

std::string Given(const std::string& name) {
  return fmt::format("{}/{}.parquet", LEAT_PARQUET_FILES, name);
}

std::string BytesOf(const std::string& name) {
  std::ifstream file(Given(name), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class ParquetTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::string_view(LEAT_PARQUET_FOR_TESTS).empty())
      GTEST_SKIP() << "built without Parquet (LEAT_PARQUET)";
    setenv("LEAT_PARQUET_LIBRARY", LEAT_PARQUET_FOR_TESTS, 1);
    limits_.listing_threads = 2;
  }
  static Node Reader(const Texts& paths, const Texts& columns,
                     const Texts& types) {
    return {.op = "readers.parquet",
            .inputs = {},
            .args = {{"paths", paths}, {"columns", columns}, {"types", types}}};
  }
  // Returns a reader of one given file.
  static Node Of(const std::string& name, const Texts& columns,
                 const Texts& types) {
    return Reader({Given(name)}, columns, types);
  }
  absl::Status IndexError(const Node& reader) {
    return BuildIndex(reader, limits_).status();
  }
  std::unique_ptr<Source> Open(const Node& reader) {
    const auto index = BuildIndex(reader, limits_);
    EXPECT_TRUE(index.ok()) << index.status();
    if (!index.ok()) return nullptr;
    shards_ = index->shards;
    auto source = OpenSource(reader, index->blob, limits_);
    EXPECT_TRUE(source.ok()) << source.status();
    return source.ok() ? *std::move(source) : nullptr;
  }
  // Returns a sample's only field.
  template <class T>
  static std::vector<T> Read(const Source& source, uint64_t sample) {
    const auto stored = source.Read(sample);
    EXPECT_TRUE(stored.ok()) << stored.status();
    return stored.ok() ? ValuesOf<T>(stored->fields[0]) : std::vector<T>();
  }

  TempDir dir_;
  SourceLimits limits_;
  ShardTable shards_;
};

TEST_F(ParquetTest, ARowIsAnOutputAColumn) {
  for (const char* name : {"flat", "indexed"}) {
    const auto source =
        Open(Of(name, {"label", "image.bytes", "score", "small", "kind"},
                {"int64", "encoded", "float32", "uint8", "bytes"}));
    ASSERT_NE(source, nullptr);
    ASSERT_EQ(source->num_samples(), 10);
    for (const uint64_t i : {9, 0, 5, 3, 4}) {
      const auto sample = source->Read(i);
      ASSERT_TRUE(sample.ok()) << sample.status();
      ASSERT_EQ(sample->fields.size(), 5);
      EXPECT_THAT(ValuesOf<int64_t>(sample->fields[0]),
                  ElementsAre(static_cast<int64_t>(i) - 5));
      EXPECT_EQ(TextOf(sample->fields[1]), fmt::format("image-{}", i));
      EXPECT_THAT(
          ValuesOf<float>(sample->fields[2]),
          ElementsAre(static_cast<float>(static_cast<double>(i) + 0.1)));
      EXPECT_THAT(ValuesOf<uint8_t>(sample->fields[3]),
                  ElementsAre(static_cast<uint8_t>(200 + i)));
      EXPECT_EQ(TextOf(sample->fields[4]), i % 3 == 0 ? "dog" : "cat");
      EXPECT_THAT(sample->fields[4].shape, ElementsAre(3));
    }
    EXPECT_THAT(source->Describe(7),
                HasSubstr(fmt::format("{}.parquet row 7", name)));
  }
}

TEST_F(ParquetTest, EachRecordIsReadAlone) {
  for (const char* name : {"flat", "indexed"}) {
    const auto records = RecordsAlone(Of(name, {"label", "image.bytes", "kind"},
                                         {"int64", "encoded", "bytes"}),
                                      limits_);
    ASSERT_EQ(records.size(), 10u);
    for (size_t i = 0; i < 10; ++i)
      EXPECT_THAT(records[i], ElementsAre(Little(static_cast<int64_t>(i) - 5),
                                          fmt::format("image-{}", i),
                                          i % 3 == 0 ? "dog" : "cat"));
  }
}

TEST_F(ParquetTest, NumbersMayBeReadWider) {
  EXPECT_THAT(Read<int64_t>(*Open(Of("flat", {"small"}, {"int32"})), 9).size(),
              0);  // four bytes
  EXPECT_THAT(Read<int32_t>(*Open(Of("flat", {"small"}, {"int32"})), 9),
              ElementsAre(209));
  EXPECT_THAT(Read<int64_t>(*Open(Of("flat", {"small"}, {"int64"})), 9),
              ElementsAre(209));
  EXPECT_THAT(Read<int16_t>(*Open(Of("flat", {"small"}, {"int16"})), 9),
              ElementsAre(209));
  EXPECT_THAT(Read<uint16_t>(*Open(Of("flat", {"small"}, {"uint16"})), 9),
              ElementsAre(209));
  EXPECT_THAT(Read<uint32_t>(*Open(Of("flat", {"small"}, {"uint32"})), 9),
              ElementsAre(209));
  for (const char* type : {"int8", "bfloat16"})
    EXPECT_TRUE(
        absl::IsInvalidArgument(IndexError(Of("flat", {"small"}, {type}))));
}

TEST_F(ParquetTest, BytesMayBeElements) {
  const auto source = Open(Of("flat", {"kind"}, {"uint8[3]"}));
  EXPECT_EQ(Read<uint8_t>(*source, 0), (std::vector<uint8_t>{'d', 'o', 'g'}));
  const auto wrong = Open(Of("flat", {"kind"}, {"float32[?]"}));
  const absl::Status status = wrong->Read(1).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(Message(status),
              AllOf(HasSubstr("row 1"), HasSubstr("column \"kind\""),
                    HasSubstr("3 bytes")));
}

TEST_F(ParquetTest, AListIsRagged) {
  for (const char* name : {"lists", "lists_by_page"}) {
    const auto ids = Open(Of(name, {"ids"}, {"int64[?]"}));
    ASSERT_NE(ids, nullptr);
    EXPECT_THAT(Read<int64_t>(*ids, 0), IsEmpty());
    EXPECT_THAT(Read<int64_t>(*ids, 3), ElementsAre(0, 1, 2));
    EXPECT_THAT(Read<int64_t>(*ids, 5), ElementsAre(0, 1, 2, 3, 4));
    EXPECT_THAT(ids->Read(4)->fields[0].shape, ElementsAre(4));
    const auto pairs = Open(Of(name, {"pairs"}, {"float32[?,2]"}));
    EXPECT_THAT(Read<float>(*pairs, 4), ElementsAre(2, 1.5, 2.5, 3.5));
    EXPECT_THAT(pairs->Read(4)->fields[0].shape, ElementsAre(2, 2));
    const auto four = Open(Of(name, {"pairs"}, {"float32[4]"}));
    EXPECT_THAT(Read<float>(*four, 1), ElementsAre(0.5, 1.5, 2.5, 3.5));
    const auto three = Open(Of(name, {"pairs"}, {"float32[3]"}));
    EXPECT_THAT(Message(three->Read(1).status()), HasSubstr("4 elements"));
    const auto member =
        Open(Of(name, {"structs.list.element.b"}, {"int64[?]"}));
    EXPECT_THAT(Read<int64_t>(*member, 5), ElementsAre(-5, -5));
  }
}

TEST_F(ParquetTest, ANullIsABadSample) {
  const auto value = Open(Of("nulls", {"value"}, {"int32"}));
  EXPECT_THAT(Read<int32_t>(*value, 0), ElementsAre(1));
  EXPECT_THAT(Read<int32_t>(*value, 2), ElementsAre(3));
  const absl::Status status = value->Read(1).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(Message(status),
              AllOf(HasSubstr("nulls.parquet row 1"),
                    HasSubstr("column \"value\""), HasSubstr("null")));
  const auto text = Open(Of("nulls", {"text"}, {"bytes"}));
  EXPECT_EQ(Read<char>(*text, 0), (std::vector<char>{'a'}));
  EXPECT_THAT(Read<char>(*text, 2), IsEmpty());
  EXPECT_FALSE(text->Read(1).ok());
  const auto list = Open(Of("nulls", {"list"}, {"int32[?]"}));
  EXPECT_THAT(Read<int32_t>(*list, 0), ElementsAre(1));
  EXPECT_THAT(Message(list->Read(1).status()), HasSubstr("null, want a value"));
  EXPECT_THAT(Message(list->Read(2).status()), HasSubstr("an element is null"));
  const auto empty = Open(Of("nulls", {"empty"}, {"int32[?]"}));
  EXPECT_THAT(Read<int32_t>(*empty, 0), IsEmpty());
  EXPECT_FALSE(empty->Read(1).ok());
  EXPECT_THAT(Read<int32_t>(*empty, 2), ElementsAre(3));
}

TEST_F(ParquetTest, AColumnThatIsNotThereIsAnErrorThatNamesThoseThatAre) {
  const absl::Status status = IndexError(Of("lists", {"id"}, {"int32[?]"}));
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(Message(status),
              AllOf(HasSubstr("lists.parquet"), HasSubstr("no column \"id\""),
                    HasSubstr("ids, pairs, structs.list.element.a")));
}

TEST_F(ParquetTest, ATypeThatTheColumnIsNotIsRefused) {
  for (const auto& [column, type, wanted] :
       std::vector<std::tuple<std::string, std::string, std::string>>{
           {"label", "int32", "want \"int64\""},
           {"label", "float32", "INT64"},
           {"label", "int64[?]", "want \"int64\""},
           {"label", "encoded", "want \"int64\""},
           {"small", "float32", "\"uint8\" or \"int32\" or \"int64\""},
           {"kind", "int64", "want \"encoded\", \"bytes\""},
           {"kind", "bool[3]", "want \"encoded\", \"bytes\""}}) {
    const absl::Status status = IndexError(Of("flat", {column}, {type}));
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << column << type << status;
    EXPECT_THAT(Message(status), AllOf(HasSubstr("flat.parquet"),
                                       HasSubstr(column), HasSubstr(wanted)));
  }
  EXPECT_THAT(Message(IndexError(Of("lists", {"ids"}, {"int32"}))),
              HasSubstr("want \"int32[?]\" or \"int64[?]\""));
}

TEST_F(ParquetTest, OfHuggingFacesImagesTheBytesAreGuessedToBeTheFile) {
  const auto guess = GuessReader(Given("photos"), {}, limits_);
  ASSERT_TRUE(guess.ok()) << guess.status();
  EXPECT_THAT(guess->fields, ElementsAre("image.bytes", "image.path", "label"));
  ASSERT_EQ(guess->types.size(), 3);
  EXPECT_EQ(TypeText(guess->types[0]), "an encoded image");
  EXPECT_EQ(TypeText(guess->types[1]), "uint8 (?,)");
}

TEST_F(ParquetTest, WhatIsNotReadIsRefusedByName) {
  for (const auto& [column, wanted] : std::map<std::string, std::string>{
           {"nested.list.element.list.element", "lists of INT64 in 2 levels"},
           {"date", "INT32 (Date)"},
           {"nested", "column \"nested\" holds lists of lists, which are not"},
           {"texts", "lists of numbers only"},
           {"big", "bitWidth=64"},
           {"decimal", "Decimal"}}) {
    const absl::Status status =
        IndexError(Of("refused", {"plain", column}, {"int64", "int64[?]"}));
    EXPECT_TRUE(absl::IsUnimplemented(status)) << column << status;
    EXPECT_THAT(Message(status), HasSubstr(wanted));
  }
  EXPECT_TRUE(IndexError(Of("refused", {"plain"}, {"int64"})).ok());
}

TEST_F(ParquetTest, FilesOfOtherKindsAreRefused) {
  const std::string good = BytesOf("flat");
  const std::string locked = good.substr(0, good.size() - 1) + "E";
  for (const auto& [bytes, wanted] : std::map<std::string, std::string>{
           {"", "0 bytes"},
           {"PAR1PAR1", "8 bytes"},
           {"PK\x03\x04 and more than twelve bytes", "no Parquet file"},
           {good.substr(0, good.size() - 100), "not written to its end"},
           {good + std::string(1000, '\0'), "no Parquet file"},
           {"PAR1" + good.substr(good.size() - 8), "a footer of"},
           {locked, "encrypted"}}) {
    const std::string path = dir_.Write("x.parquet", bytes);
    const absl::Status status =
        IndexError(Reader({path}, {"label"}, {"int64"}));
    EXPECT_TRUE(absl::IsDataLoss(status) || absl::IsUnimplemented(status))
        << status;
    EXPECT_THAT(Message(status), AllOf(HasSubstr(path), HasSubstr(wanted)));
  }
  const absl::Status status = IndexError(Of("empty", {"label"}, {"int64"}));
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
}

TEST_F(ParquetTest, PagesThatUnpackToMoreThanTheLimitAreRefused) {
  const Node zeros = Of("huge", {"zeros"}, {"bytes"});
  EXPECT_EQ(Read<uint8_t>(*Open(zeros), 0).size(), 4 << 20);
  const Node flags = Of("many", {"flag"}, {"bool"});
  EXPECT_THAT(Read<uint8_t>(*Open(flags), 999'999), ElementsAre(1));
  limits_.max_file_bytes = 1 << 20;
  for (const Node& reader : {zeros, flags}) {
    const absl::Status status = Open(reader)->Read(0).status();
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    EXPECT_THAT(Message(status), HasSubstr("the limit is 1048576"));
  }
  limits_.max_footer_bytes = 20;
  const absl::Status status = IndexError(flags);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("the limit is 20"));
}

TEST_F(ParquetTest, ShardsLieInsideOfRowGroups) {
  Open(Reader({Given("flat"), Given("indexed")}, {"label"}, {"int64"}));
  ASSERT_EQ(shards_.num_samples(), 20);
  for (const uint64_t sample : {3, 7, 9, 13, 17})
    EXPECT_NE(shards_.ShardOf(sample), shards_.ShardOf(sample + 1)) << sample;
}

TEST_F(ParquetTest, AFolderIsItsFilesInOrder) {
  dir_.Write("set/b.parquet", BytesOf("lists"));
  dir_.Write("set/a/c.parquet", BytesOf("nulls"));
  dir_.Write("set/_SUCCESS", "");
  const absl::Status status =
      IndexError(Reader({dir_.path() + "/set/"}, {"empty"}, {"int32[?]"}));
  EXPECT_TRUE(absl::IsNotFound(status)) << status;  // not in b.parquet
  dir_.Write("set/b.parquet", BytesOf("nulls"));
  const auto both = Open(Reader({dir_.path() + "/set/"}, {"value"}, {"int32"}));
  ASSERT_EQ(both->num_samples(), 6);
  EXPECT_THAT(both->Describe(2), HasSubstr("a/c.parquet row 2"));
  EXPECT_THAT(both->Describe(3), HasSubstr("b.parquet row 0"));
  EXPECT_THAT(Read<int32_t>(*both, 5), ElementsAre(3));
}

TEST_F(ParquetTest, AFileThatChangedAfterIndexingIsAnError) {
  const std::string path = dir_.Write("x.parquet", BytesOf("flat"));
  const auto source = Open(Reader({path}, {"label"}, {"int64"}));
  std::string other = BytesOf("flat");
  other[100] ^= 1;
  dir_.Write("x.parquet", other);
  fs::last_write_time(
      path, fs::file_time_type::clock::now() - std::chrono::seconds(50));
  const absl::Status status = source->Read(0).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("changed"));
}

TEST_F(ParquetTest, AChecksumThatIsWrongIsAnError) {
  std::string bytes = BytesOf("flat");
  bytes[bytes.find("image-") + 2] ^= 1;
  const std::string path = dir_.Write("x.parquet", bytes);
  const auto source = Open(Reader({path}, {"image.bytes"}, {"encoded"}));
  ASSERT_NE(source, nullptr);
  int bad = 0;
  for (uint64_t i = 0; i < 10; ++i) {
    const absl::Status status = source->Read(i).status();
    if (status.ok()) continue;
    ++bad;
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  }
  EXPECT_GT(bad, 0);
}

TEST_F(ParquetTest, ThreadsReadTheSameRows) {
  limits_.max_unpacked_bytes = 1;  // so that every page is decoded again
  const auto source = Open(Of("flat", {"label", "kind"}, {"int64", "bytes"}));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&source, t] {
      for (uint64_t i = 0; i < 40; ++i) {
        const auto sample = source->Read((i * 7 + t) % 10);
        ASSERT_TRUE(sample.ok()) << sample.status();
        EXPECT_EQ(ValuesOf<int64_t>(sample->fields[0])[0],
                  static_cast<int64_t>((i * 7 + t) % 10) - 5);
      }
    });
  for (std::thread& each : threads) each.join();
}

TEST_F(ParquetTest, DamagedFilesNeverCrash) {
  limits_.max_file_bytes = 1 << 20;
  Damage(BytesOf("nulls"), 100, [&](const std::string& bytes) {
    const Node reader = Reader({dir_.Write("x.parquet", bytes)},
                               {"list", "text"}, {"int32[?]", "bytes"});
    const auto index = BuildIndex(reader, limits_);
    if (index.ok()) ReadDamaged(OpenSource(reader, index->blob, limits_));
  });
}

TEST_F(ParquetTest, DamagedIndexesNeverCrash) {
  const google::protobuf::LogSilencer silent;  // of text that is not UTF-8
  const Node reader = Of("nulls", {"value"}, {"int32"});
  const auto index = BuildIndex(reader, limits_);
  ASSERT_TRUE(index.ok()) << index.status();
  const auto judge = [](const absl::Status& status) {
    EXPECT_NE(FaultOf(Judged(status)), Fault::kTransient) << status;
  };
  Damage(index->blob, 500, [&](const std::string& blob) {
    const auto source = OpenSource(reader, blob, limits_);
    judge(source.status());
    if (!source.ok()) return;
    const uint64_t samples = std::min<uint64_t>(64, (*source)->num_samples());
    for (uint64_t i = 0; i < samples; ++i) {
      const absl::Status status = (*source)->Read(i).status();
      judge(status);
      EXPECT_FALSE(status.ok() && i >= 10) << i;
    }
  });
  EXPECT_TRUE(absl::IsDataLoss(
      OpenSource(Of("nulls", {"text"}, {"bytes"}), index->blob, limits_)
          .status()));
}

}  // namespace
}  // namespace leat::worker
