// SPDX-License-Identifier: Apache-2.0
#include "worker/source/tfrecord/tfrecord.h"

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "core/pipeline/long_list.h"
#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/source/located.h"
#include "tests/worker/source/tfrecord/tfrecord_fixture.h"

namespace leat::worker {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

TEST_F(TfrecordTest, SamplesAreFileByFileAndRecordByRecord) {
  dir_.Write("b.tfrecord", Labelled("b0", 10) + Labelled("b1", 11));
  dir_.Write("a.tfrecord", Labelled("a0", 0));
  const Node reader = Reader({At("b.tfrecord"), At("a.tfrecord")});
  const auto index = Index(reader);
  ASSERT_TRUE(index.ok()) << index.status();
  EXPECT_EQ(index->name, "b.tfrecord");
  EXPECT_EQ(index->shards.num_shards(), 2u);
  EXPECT_EQ(index->shards.range(0), (ShardTable::Range{0, 2}));
  const auto source = Open(reader);
  ASSERT_NE(source, nullptr);
  const Texts images = {"b0", "b1", "a0"};
  const std::vector<int64_t> labels = {10, 11, 0};
  for (uint64_t i = 0; i < 3; ++i) {
    const auto sample = source->Read(i);
    ASSERT_TRUE(sample.ok()) << sample.status();
    ASSERT_EQ(sample->fields.size(), 2u);
    EXPECT_EQ(Text(sample->fields[0]), images[i]);
    EXPECT_EQ(Numbers<int64_t>(sample->fields[1]), std::vector{labels[i]});
    EXPECT_TRUE(sample->fields[1].shape.empty());
  }
  EXPECT_EQ(source->Describe(1),
            fmt::format("{}: record 1 at {}", At("b.tfrecord"),
                        Labelled("b0", 10).size()));
  const auto place = source->Locate(1);
  EXPECT_EQ(place->index, 1u);
  EXPECT_THAT(BytesAt(place), HasSubstr("b1"));
  EXPECT_THAT(BytesAt(source->Locate(2)), HasSubstr("a0"));
  EXPECT_EQ(source->Locate(2)->file, At("a.tfrecord"));
}

TEST_F(TfrecordTest, FeaturesHaveTheirTypes) {
  features_ = {"none", "box", "pair", "raw", "matrix", "many", "one"};
  types_ = {"int64[?]",   "float32[?,4]", "int64[2]",  "bytes",
            "uint8[2,2]", "int64[?]",     "float32[1]"};
  std::vector<int64_t> many(100);
  for (size_t i = 0; i < many.size(); ++i)
    many[i] = static_cast<int64_t>(i * i) - 50;
  const std::string example =
      ExampleOf({{"box", FloatFeature({1, 2, 3, 4, 5, 6, 7, 8})},
                 {"one", FloatFeature({0.5f})},
                 {"raw", BytesFeature({""})},
                 {"matrix", BytesFeature({"wxyz"})},
                 {"pair", IntFeature({-1, 1})},
                 {"many", IntFeature(many)},
                 {"none", IntFeature({})}});
  const auto source = Open(Reader({dir_.Write("f", TfrecordOf(example))}));
  ASSERT_NE(source, nullptr);
  const auto sample = source->Read(0);
  ASSERT_TRUE(sample.ok()) << sample.status();
  EXPECT_EQ(sample->fields[0].shape, Shape({0}));
  EXPECT_TRUE(sample->fields[0].bytes.empty());
  EXPECT_EQ(sample->fields[1].shape, Shape({2, 4}));
  EXPECT_EQ(Numbers<float>(sample->fields[1]),
            (std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(Numbers<int64_t>(sample->fields[2]), (std::vector<int64_t>{-1, 1}));
  EXPECT_TRUE(sample->fields[2].shape.empty());
  EXPECT_EQ(sample->fields[3].shape, Shape({0}));
  EXPECT_EQ(Text(sample->fields[4]), "wxyz");
  EXPECT_EQ(sample->fields[5].shape, Shape({100}));
  EXPECT_EQ(Numbers<int64_t>(sample->fields[5]), many);
  EXPECT_EQ(Numbers<float>(sample->fields[6]), std::vector<float>{0.5f});
}

TEST_F(TfrecordTest, BytesAreElementsOfTypesThatAreOnlyCarried) {
  features_ = {"many", "two"};
  for (const char* type : {"int8", "int16", "uint16", "uint32", "bfloat16"}) {
    types_ = {std::string(type) + "[?]", std::string(type) + "[2]"};
    const size_t size = SizeOf(*ParseDType(type));
    const std::string many(3 * size, 'm'), two(2 * size, 't');
    const auto source = Open(Reader({dir_.Write(
        "f", TfrecordOf(ExampleOf({{"many", BytesFeature({many})},
                                   {"two", BytesFeature({two})}})))}));
    ASSERT_NE(source, nullptr);
    const auto sample = source->Read(0);
    ASSERT_TRUE(sample.ok()) << sample.status();
    EXPECT_EQ(sample->fields[0].shape, Shape({3})) << type;
    EXPECT_EQ(Text(sample->fields[0]), many);
    EXPECT_EQ(Text(sample->fields[1]), two);
  }
  const auto odd = Open(Reader({dir_.Write(
      "f", TfrecordOf(ExampleOf({{"many", BytesFeature({"abc"})},
                                 {"two", BytesFeature({"abcd"})}})))}));
  EXPECT_THAT(std::string(Message(odd->Read(0).status())),
              HasSubstr("feature \"many\" has 3 bytes, want bfloat16 (?,)"));
}

TEST_F(TfrecordTest, ALongListOfPathsIsWhatTheSameShortOneIs) {
  const Texts paths = {dir_.Write("a.tfrecord", Labelled("a", 1)),
                       dir_.Write("b.tfrecord", Labelled("b", 2))};
  Node whole = Reader(paths);
  whole.args["paths"] = *LongListOf(paths);
  const absl::StatusOr<BuiltIndex> index = BuildIndex(whole, limits_);
  ASSERT_TRUE(index.ok()) << index.status();
  const BuiltIndex brief = *BuildIndex(Reader(paths), limits_);
  EXPECT_EQ(index->fingerprint, brief.fingerprint);
  EXPECT_EQ(index->content, brief.content);
  // A worker that serves rows has only the digest.
  auto& list = std::get<LongList>(whole.args["paths"]);
  list.values = nullptr;
  EXPECT_TRUE(OpenSource(whole, index->blob, limits_).ok());
  list.digest[0] ^= 1;
  EXPECT_TRUE(
      absl::IsDataLoss(OpenSource(whole, index->blob, limits_).status()));
}

TEST_F(TfrecordTest, DirectoriesAndPatternsStandForFilesInOrder) {
  for (const char* name :
       {"d/x.tfrecord-00001-of-00002", "d/x.tfrecord-00000-of-00002",
        "d/sub/y.tfrecords", "d/.hidden.tfrecord"})
    dir_.Write(name, Labelled(name, 0));
  dir_.Write("d/x.tfrecord.idx", "no record file");
  dir_.Write("d/readme", "no record file");
  const auto images = [&](const Texts& paths) {
    Texts found;
    const auto source = Open(Reader(paths));
    for (uint64_t i = 0; source != nullptr && i < source->num_samples(); ++i)
      found.push_back(Text(source->Read(i)->fields[0]));
    return found;
  };
  const Texts all = {"d/sub/y.tfrecords", "d/x.tfrecord-00000-of-00002",
                     "d/x.tfrecord-00001-of-00002"};
  EXPECT_EQ(images({At("d")}), all);
  EXPECT_EQ(images({At("d/")}), all);
  EXPECT_EQ(images({"file://" + At("d/")}), all);
  EXPECT_EQ(images({At("d/x*-of-*")}), Texts({all[1], all[2]}));
  EXPECT_EQ(images({At("*/x.tfrecord-0000[1]*"), At("d/sub/y.tfrecords")}),
            Texts({all[2], all[0]}));
  EXPECT_THAT(std::string(Message(IndexError(Reader({At("d/z*")})))),
              HasSubstr("no file is named so"));
  EXPECT_EQ(IndexError(Reader({At("nowhere")})).code(), Code::kNotFound);
  dir_.Write("odd/[1].tfrecord", Labelled("odd", 0));
  EXPECT_EQ(images({At("odd/[1].tfrecord")}), Texts({"odd"}));
}

TEST_F(TfrecordTest, EmptyFilesAreNoShards) {
  dir_.Write("0.tfrecord", "");
  dir_.Write("1.tfrecord", Labelled("a", 1));
  dir_.Write("2.tfrecord", "");
  const auto index = Index(Reader({dir_.path()}));
  ASSERT_TRUE(index.ok()) << index.status();
  EXPECT_EQ(index->shards.num_shards(), 1u);
  const absl::Status none = IndexError(Reader({At("0.tfrecord")}));
  EXPECT_EQ(none.code(), Code::kNotFound);
  EXPECT_THAT(std::string(Message(none)), HasSubstr("no records in 1 file"));
}

TEST_F(TfrecordTest, AFileCutOffAnywhereIsAnError) {
  const std::string first = Labelled("a", 1);
  const std::string bytes = first + Labelled("bc", 2);
  for (size_t size = 1; size < bytes.size(); ++size) {
    if (size == first.size()) continue;  // a whole file of one record
    const absl::Status status =
        IndexError(Reader({dir_.Write("cut", bytes.substr(0, size))}));
    ASSERT_EQ(status.code(), Code::kDataLoss) << size << " " << status;
    EXPECT_THAT(std::string(Message(status)),
                HasSubstr(size < first.size()
                              ? fmt::format("{}: record 0 at 0", At("cut"))
                              : fmt::format("record 1 at {}", first.size())));
  }
}

TEST_F(TfrecordTest, EveryFlippedBitIsAnError) {
  const std::string good = Labelled("abc", 1);
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bytes = good;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    const Node reader = Reader({dir_.Write("flipped", bytes)});
    const auto index = Index(reader);
    if (bit < 12 * 8) {
      ASSERT_EQ(index.status().code(), Code::kDataLoss) << bit;
      continue;
    }
    ASSERT_TRUE(index.ok()) << bit;
    const auto source = OpenSource(reader, index->blob, limits_);
    ASSERT_TRUE(source.ok());
    const absl::Status status = (*source)->Read(0).status();
    ASSERT_EQ(status.code(), Code::kDataLoss) << bit;
    EXPECT_THAT(std::string(Message(status)),
                HasSubstr(At("flipped") + ": record 0 at 0: the checksum"));
  }
}

TEST_F(TfrecordTest, LengthsThatLieAreErrors) {
  for (const uint64_t length :
       {uint64_t{1}, uint64_t{1} << 32, uint64_t{1} << 63, ~uint64_t{0},
        ~uint64_t{0} - 15}) {
    const std::string header = LittleEndian(length);
    const std::string bytes = header + MaskedSumOf(header) + "1234";
    const absl::Status status =
        IndexError(Reader({dir_.Write("lying", bytes)}));
    EXPECT_EQ(status.code(), Code::kDataLoss) << length;
    EXPECT_THAT(std::string(Message(status)), HasSubstr("cut off"));
  }
}

TEST_F(TfrecordTest, OtherFormatsAreErrors) {
  EXPECT_EQ(IndexError(Reader({dir_.Write("x", "?")})).code(), Code::kDataLoss);
  const absl::Status text =
      IndexError(Reader({dir_.Write("x", std::string(1000, 'x'))}));
  EXPECT_THAT(std::string(Message(text)), HasSubstr("not a TFRecord file"));
  const absl::Status zipped =
      IndexError(Reader({dir_.Write("x", "\x1f\x8b" + std::string(100, 'z'))}));
  EXPECT_THAT(std::string(Message(zipped)), HasSubstr("gzip"));
  // An empty record is a record, and an Example without features.
  EXPECT_EQ(ReadError(TfrecordOf("")).code(), Code::kInvalidArgument);
  const absl::Status garbage = ReadError(TfrecordOf("\xff\xff\xff"));
  EXPECT_EQ(garbage.code(), Code::kDataLoss);
  EXPECT_THAT(std::string(Message(garbage)), HasSubstr("malformed"));
}

TEST_F(TfrecordTest, FeaturesThatAreNotAsWantedNameRecordFileAndFeature) {
  const auto error = [&](const NamedFeatures& features) {
    const absl::Status status = ReadError(TfrecordOf(ExampleOf(features)));
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << status;
    EXPECT_THAT(std::string(Message(status)),
                HasSubstr(At("one.tfrecord") + ": record 0 at 0: "));
    return std::string(Message(status));
  };
  const std::pair<std::string, std::string> image = {"image",
                                                     BytesFeature({"x"})};
  const std::pair<std::string, std::string> label = {"label", IntFeature({1})};
  EXPECT_THAT(error({image}), HasSubstr("no feature \"label\""));
  EXPECT_THAT(error({label}), HasSubstr("no feature \"image\""));
  EXPECT_THAT(error({image, {"label", ""}}),
              HasSubstr("\"label\" holds nothing, want int64 scalar"));
  EXPECT_THAT(error({image, {"label", BytesFeature({"1"})}}),
              HasSubstr("\"label\" holds bytes"));
  EXPECT_THAT(error({image, {"label", FloatFeature({1})}}),
              HasSubstr("\"label\" holds float32"));
  EXPECT_THAT(error({image, {"label", IntFeature({1, 2})}}),
              HasSubstr("\"label\" has 2 elements"));
  EXPECT_THAT(error({image, {"label", IntFeature({})}}),
              HasSubstr("\"label\" has 0 elements"));
  EXPECT_THAT(error({label, {"image", BytesFeature({"x", "y"})}}),
              HasSubstr("\"image\" has 2 values"));
  EXPECT_THAT(error({label, {"image", BytesFeature({})}}),
              HasSubstr("\"image\" has 0 values"));
  features_ = {"label"};
  types_ = {"int64[?,2]"};
  EXPECT_THAT(error({{"label", IntFeature({1, 2, 3})}}),
              HasSubstr("has 3 elements, want int64 (?, 2)"));
  types_ = {"uint8[2,2]"};
  EXPECT_THAT(error({{"label", BytesFeature({"abc"})}}),
              HasSubstr("has 3 elements, want uint8 (2, 2)"));
}

TEST_F(TfrecordTest, AFileThatChangedAfterIndexingIsAnError) {
  const std::string path = dir_.Write("x", Labelled("a", 1) + Labelled("b", 2));
  const auto source = Open(Reader({path}));
  ASSERT_NE(source, nullptr);
  dir_.Write("x", Labelled("a", 1));
  const absl::Status status = source->Read(0).status();
  EXPECT_EQ(status.code(), Code::kFailedPrecondition);
  EXPECT_THAT(std::string(Message(status)), HasSubstr(path + ": changed"));
  fs::remove(path);
  EXPECT_EQ(source->Read(1).status().code(), Code::kNotFound);
}

TEST_F(TfrecordTest, LimitsAreKept) {
  const std::string path = dir_.Write("x", Labelled("a", 1) + Labelled("b", 2));
  const auto source = Open(Reader({path}));
  limits_.max_files = 1;
  EXPECT_EQ(IndexError(Reader({path})).code(), Code::kResourceExhausted);
  limits_.max_files = 2;
  limits_.max_file_bytes = 10;
  EXPECT_EQ(Open(Reader({path}))->Read(0).status().code(),
            Code::kResourceExhausted);
  limits_.max_index_bytes = 10;
  EXPECT_EQ(IndexError(Reader({path})).code(), Code::kResourceExhausted);
  limits_ = {};
  std::atomic<bool> cancelled{true};
  limits_.cancelled = &cancelled;
  EXPECT_EQ(IndexError(Reader({path})).code(), Code::kCancelled);
}

TEST_F(TfrecordTest, WrongArgumentsAreRefused) {
  Node reader = Reader({At("x")});
  reader.args["types"] = Texts{"encoded"};
  EXPECT_EQ(IndexError(reader).code(), Code::kInvalidArgument);
  reader.args["types"] = Texts{"encoded", "int32"};
  EXPECT_EQ(IndexError(reader).code(), Code::kInvalidArgument);
  reader.args["types"] = std::string("encoded");
  EXPECT_EQ(IndexError(reader).code(), Code::kInvalidArgument);
  EXPECT_EQ(IndexError(Reader({})).code(), Code::kInvalidArgument);
  EXPECT_FALSE(IndexError(Reader({""})).ok());
}

// Small records in order are served from blocks, others by themselves: the same
// bytes, from many threads, in any order.
TEST_F(TfrecordTest, AnyOrderFromManyThreadsGivesTheSameBytes) {
  constexpr uint64_t kRecords = 3000;
  const auto image = [](uint64_t i) {
    return std::string(i % 7 == 0 ? 20'000 : i % 500,
                       static_cast<char>('a' + i % 26));
  };
  std::string bytes;
  for (uint64_t i = 0; i < kRecords; ++i)
    bytes += Labelled(image(i), static_cast<int64_t>(i));
  const auto source = Open(Reader({dir_.Write("x", bytes)}));
  ASSERT_NE(source, nullptr);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (uint64_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < kRecords; ++i) {
        const uint64_t sample = t == 0 ? i : i * (2 * t + 1) * 7 % kRecords;
        const auto read = source->Read(sample);
        if (!read.ok() || Text(read->fields[0]) != image(sample) ||
            Numbers<int64_t>(read->fields[1])[0] !=
                static_cast<int64_t>(sample))
          ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace leat::worker
