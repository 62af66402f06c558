// SPDX-License-Identifier: Apache-2.0
#include "worker/source/webdataset/webdataset.h"

#include <filesystem>
#include <string>
#include <vector>

#include "core/pipeline/long_list.h"
#include "core/status.h"
#include "gmock/gmock.h"
#include "google/protobuf/stubs/logging.h"
#include "gtest/gtest.h"
#include "tests/worker/source/located.h"
#include "tests/worker/source/webdataset/tar_maker.h"
#include "tests/worker/temp_dir.h"

namespace leat::worker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Texts = std::vector<std::string>;
using Code = absl::StatusCode;

std::string PartText(const StoredField& field) {
  return {reinterpret_cast<const char*>(field.bytes.data()),
          field.bytes.size()};
}

template <class T>
T Number(const StoredField& field) {
  T number = -1;
  EXPECT_EQ(field.bytes.size(), sizeof number);
  if (field.bytes.size() == sizeof number)
    std::memcpy(&number, field.bytes.data(), sizeof number);
  return number;
}

class WebdatasetTest : public ::testing::Test {
 protected:
  Node Reader(Texts paths, Texts index = {}) const {
    return {.op = "readers.webdataset",
            .inputs = {},
            .args = {{"paths", std::move(paths)},
                     {"ext", ext_},
                     {"types", types_},
                     {"index", std::move(index)},
                     {"missing", missing_}}};
  }
  absl::Status IndexError(const Node& reader) const {
    return BuildIndex(reader, limits_).status();
  }
  std::unique_ptr<Source> Open(const Node& reader) const {
    const auto index = BuildIndex(reader, limits_);
    EXPECT_TRUE(index.ok()) << index.status();
    if (!index.ok()) return nullptr;
    auto source = OpenSource(reader, index->blob, limits_);
    EXPECT_TRUE(source.ok()) << source.status();
    if (!source.ok()) return nullptr;
    EXPECT_EQ((*source)->fingerprint(), index->fingerprint);
    EXPECT_EQ((*source)->num_samples(), index->shards.num_samples());
    return *std::move(source);
  }
  // Returns all samples of one archive, fields joined by "|".
  Texts Samples(const std::string& archive) {
    Texts found;
    const auto source = Open(Reader({dir_.Write("a.tar", archive)}));
    for (uint64_t i = 0; source != nullptr && i < source->num_samples(); ++i) {
      const auto sample = source->Read(i);
      EXPECT_TRUE(sample.ok()) << sample.status();
      if (!sample.ok()) continue;
      std::string text;
      for (const StoredField& field : sample->fields)
        text += (text.empty() ? "" : "|") + PartText(field);
      found.push_back(text);
    }
    return found;
  }
  std::string At(const std::string& name) { return dir_.path() + "/" + name; }

  TempDir dir_;
  SourceLimits limits_;
  Texts ext_ = {"jpg;jpeg", "cls"};
  Texts types_ = {"encoded", "bytes"};
  std::string missing_ = "error";
};

TEST_F(WebdatasetTest, NamesAreSplitAtTheFirstDotOfTheLastPart) {
  const auto split = [](const char* path) {
    const ComponentName name = ComponentNameOf(path);
    return fmt::format("{}|{}", name.sample, name.extension);
  };
  EXPECT_EQ(split("a.jpg"), "a|jpg");
  EXPECT_EQ(split("d.x/a.seg.png"), "d.x/a|seg.png");
  EXPECT_EQ(split("./a.jpg"), "./a|jpg");
  EXPECT_EQ(split("a."), "a|");
  EXPECT_EQ(split("a"), "|");
  EXPECT_EQ(split("d.x/a"), "|");
  EXPECT_EQ(split(".hidden.jpg"), "|");
  EXPECT_EQ(split("d/.hidden"), "|");
  EXPECT_EQ(split(""), "|");
}

TEST_F(WebdatasetTest, ALongListOfPathsIsWhatTheSameShortOneIs) {
  const Texts paths = {dir_.Write("a.tar", TarMemberOf("0.jpg", "zero") +
                                               TarMemberOf("0.cls", "7")),
                       dir_.Write("b.tar", TarMemberOf("1.jpg", "one") +
                                               TarMemberOf("1.cls", "8"))};
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

TEST_F(WebdatasetTest, NeighboursWithOnePathAreASample) {
  EXPECT_THAT(
      Samples(TarMemberOf("README", "text") + TarMemberOf("d/0.cls", "7") +
              TarMemberOf("d/", "", {.type = '5'}) +
              TarMemberOf("d/0.jpg", "zero") +
              TarMemberOf("d/0.json", "unused") +
              TarMemberOf("d/1.jpeg", "one") + TarMemberOf("d/1.cls", "8") +
              TarMemberOf("e/1.cls", "9") +
              TarMemberOf("e/1.jpg", std::string(30'000, 'x')) +
              TarMemberOf("e/.1.jpg", "hidden") + TarEnd()),
      ElementsAre("zero|7", "one|8", std::string(30'000, 'x') + "|9"));
}

TEST_F(WebdatasetTest, TheFirstThatFitsCountsAndMayServeTwoOutputs) {
  ext_ = {"jpg;png", "png;jpg", "jpg"};
  types_ = {"bytes", "bytes", "bytes"};
  EXPECT_THAT(Samples(TarMemberOf("0.jpg", "a") + TarMemberOf("0.png", "b") +
                      TarMemberOf("1.jpg", "d")),
              ElementsAre("a|a|a", "d|d|d"));
}

TEST_F(WebdatasetTest, AKeyTwiceIsAnErrorOrCounted) {
  const std::string archive =
      TarMemberOf("0.jpg", "a") + TarMemberOf("0.cls", "1") +
      TarMemberOf("0.txt", "") + TarMemberOf("0.jpg", "b") +
      TarMemberOf("0.txt", "") + TarMemberOf("0.cls", "2") +
      TarMemberOf("1.jpg", "c") + TarMemberOf("2.jpg", "d") +
      TarMemberOf("2.cls", "3") + TarMemberOf("0.jpg", "e") +
      TarMemberOf("0.cls", "4") + TarMemberOf("README", "text") + TarEnd();
  const Node strict = Reader({dir_.Write("a.tar", archive)});
  const absl::Status status = IndexError(strict);
  EXPECT_EQ(status.code(), Code::kFailedPrecondition);
  EXPECT_THAT(
      std::string(Message(status)),
      AllOf(HasSubstr(At("a.tar") + ": sample \"0\" has the component \"jpg\" "
                                    "twice, at 512 and at 3072"),
            HasSubstr("missing = \"skip\"")));
  missing_ = "skip";
  EXPECT_THAT(Samples(archive), ElementsAre("a|1", "d|3", "e|4"));
  const auto index = BuildIndex(Reader({At("a.tar")}), limits_);
  ASSERT_TRUE(index.ok());
  EXPECT_THAT(
      index->passed_over,
      ElementsAre(
          PassedOver{"components that their sample has already", 2, "0.cls"},
          PassedOver{"files without an extension", 1, "README"},
          PassedOver{"samples without a component \"cls\"", 1, "1"}));
}

TEST_F(WebdatasetTest, ExtensionsAreWholeAndTheirCaseCounts) {
  ext_ = {"seg.png", "png"};
  types_ = {"bytes", "bytes"};
  EXPECT_THAT(Samples(TarMemberOf("0.seg.png", "s") +
                      TarMemberOf("0.png", "i") + TarMemberOf("0.PNG", "I")),
              ElementsAre("s|i"));
}

TEST_F(WebdatasetTest, MissingComponentsAreErrorsSkippedOrEmpty) {
  const std::string archive =
      TarMemberOf("0.jpg", "a") + TarMemberOf("0.cls", "1") +
      TarMemberOf("1.jpg", "b") + TarMemberOf("2.txt", "c") +
      TarMemberOf("3.cls", "2") + TarMemberOf("3.jpg", "d");
  const absl::Status status =
      IndexError(Reader({dir_.Write("a.tar", archive)}));
  EXPECT_EQ(status.code(), Code::kFailedPrecondition);
  EXPECT_THAT(std::string(Message(status)),
              HasSubstr(At("a.tar") +
                        ": sample \"1\" at 2560 has no component \"cls\""));
  missing_ = "skip";
  EXPECT_THAT(Samples(archive), ElementsAre("a|1", "d|2"));
  missing_ = "empty";
  EXPECT_THAT(Samples(archive), ElementsAre("a|1", "b|", "", "d|2"));
  const auto source = Open(Reader({At("a.tar")}));
  EXPECT_EQ(source->Read(1)->fields[1].shape, Shape({0}));
  EXPECT_EQ(source->Describe(2), At("a.tar") + ": sample 2");
  EXPECT_EQ(source->Describe(1), At("a.tar") + ": sample 1 at 2560");
  EXPECT_EQ(BytesAt(source->Locate(1)), "b");
  EXPECT_EQ(source->Locate(3)->index, 3u);
  EXPECT_FALSE(source->Locate(2)->offset.has_value()) << "nothing of it";
  missing_ = "skip";
  const absl::Status none =
      IndexError(Reader({dir_.Write("a.tar", TarMemberOf("1.jpg", "b"))}));
  EXPECT_EQ(none.code(), Code::kNotFound);
}

TEST_F(WebdatasetTest, ComponentsHaveTheirTypes) {
  ext_ = {"a", "b", "c", "d"};
  types_ = {"int32", "int64", "float32[?,2]", "uint8[2,2]"};
  const float floats[] = {1, 2, 3, 4};
  const std::string raw(reinterpret_cast<const char*>(floats), sizeof floats);
  dir_.Write("a.tar", TarMemberOf("0.a", " -12\n") +
                          TarMemberOf("0.b", "9000000000") +
                          TarMemberOf("0.c", raw) + TarMemberOf("0.d", "wxyz"));
  const auto source = Open(Reader({At("a.tar")}));
  ASSERT_NE(source, nullptr);
  const auto sample = source->Read(0);
  ASSERT_TRUE(sample.ok()) << sample.status();
  EXPECT_EQ(Number<int32_t>(sample->fields[0]), -12);
  EXPECT_EQ(Number<int64_t>(sample->fields[1]), 9'000'000'000);
  EXPECT_EQ(PartText(sample->fields[2]), raw);
  EXPECT_EQ(sample->fields[2].shape, Shape({2, 2}));
  EXPECT_EQ(PartText(sample->fields[3]), "wxyz");
}

TEST_F(WebdatasetTest, ComponentsThatAreNotAsWantedNameSampleAndComponent) {
  const auto error = [&](const std::string& type, const std::string& bytes) {
    ext_ = {"x"};
    types_ = {type};
    const auto source =
        Open(Reader({dir_.Write("a.tar", TarMemberOf("0.x", bytes))}));
    const absl::Status status = source->Read(0).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << type << " " << bytes;
    EXPECT_THAT(std::string(Message(status)),
                HasSubstr(At("a.tar") + ": sample 0 at 512: component \"x\""));
  };
  for (const char* text :
       {"", " ", "x", "1x", "1 2", "1.5", "+1", "9223372036854775808"})
    error("int64", text);
  error("int32", "2147483648");
  error("uint8[3]", "ab");
  error("uint8[3]", "abcd");
  error("float32[?]", "abc");
  error("float32[?,2]", "abcd");
}

TEST_F(WebdatasetTest, ArchivesAreShardsInOrder) {
  ext_ = {"t"};
  types_ = {"bytes"};
  dir_.Write("d/1.tar", TarMemberOf("a.t", "1a") + TarMemberOf("b.t", "1b"));
  dir_.Write("d/0.tar", TarMemberOf("a.t", "0a"));
  dir_.Write("d/2.tar", TarEnd());
  dir_.Write("d/0.idx", "no archive");
  const auto index = BuildIndex(Reader({At("d")}), limits_);
  ASSERT_TRUE(index.ok()) << index.status();
  EXPECT_EQ(index->shards.num_shards(), 2u);
  EXPECT_EQ(index->name, "d");
  const auto source = Open(Reader({At("d/[01].tar")}));
  ASSERT_EQ(source->num_samples(), 3u);
  EXPECT_EQ(PartText(source->Read(0)->fields[0]), "0a");
  EXPECT_EQ(PartText(source->Read(2)->fields[0]), "1b");
}

TEST_F(WebdatasetTest, BracesStandForArchivesInTheirOrder) {
  ext_ = {"x"};
  types_ = {"bytes"};
  for (const char* name : {"t-09.tar", "t-10.tar", "t-11.tar", "v{1..2}.tar"})
    dir_.Write(name, TarMemberOf("0.x", name) + TarEnd());
  const auto archives = [&](const std::string& path) {
    Texts found;
    const auto source = Open(Reader({At(path)}));
    for (uint64_t i = 0; source != nullptr && i < source->num_samples(); ++i)
      found.push_back(source->Locate(i)->file.substr(dir_.path().size() + 1));
    return found;
  };
  EXPECT_THAT(archives("t-{09..11}.tar"),
              ElementsAre("t-09.tar", "t-10.tar", "t-11.tar"));
  EXPECT_THAT(archives("{t-11,t-0?}.tar"), ElementsAre("t-11.tar", "t-09.tar"));
  EXPECT_THAT(archives("v{1..2}.tar"), ElementsAre("v{1..2}.tar"));
  const absl::Status missing = IndexError(Reader({At("t-{10..12}.tar")}));
  EXPECT_EQ(missing.code(), Code::kNotFound);
  EXPECT_THAT(std::string(Message(missing)), HasSubstr(At("t-12.tar")));
  // The same archives have the same content, whatever paths name them.
  const auto content = [&](const Texts& paths) {
    return BuildIndex(Reader(paths), limits_)->content;
  };
  EXPECT_EQ(content({At("t-{09..11}.tar")}), content({At("t-*.tar")}));
}

TEST_F(WebdatasetTest, DalisIndexGivesTheSameAsWalking) {
  const std::string path = dir_.Write(
      "a.tar", TarMemberOf("0.jpg", "abc") + TarMemberOf("0.cls", "1") +
                   TarMemberOf("1.jpg", "defgh") + TarMemberOf("1.cls", "23") +
                   TarEnd());
  const auto ours = BuildIndex(Reader({path}), limits_);
  ASSERT_TRUE(ours.ok()) << ours.status();
  for (const char* text :
       {"v1.1 2\njpg 512 3 cls 1536 1\njpg 2560 5 cls 3584 2\n",
        "v1.2 2\njpg 512 3 0.jpg cls 1536 1 0.cls\n"
        "jpg 2560 5 1.jpg cls 3584 2 1.cls"}) {
    const auto dalis =
        BuildIndex(Reader({path}, {dir_.Write("a.idx", text)}), limits_);
    ASSERT_TRUE(dalis.ok()) << dalis.status();
    EXPECT_EQ(ours->blob, dalis->blob);
    EXPECT_EQ(ours->fingerprint, dalis->fingerprint);
  }
}

TEST_F(WebdatasetTest, AnIndexThatIsNotOfItsArchiveIsAnError) {
  const std::string path = dir_.Write(
      "a.tar", TarMemberOf("0.jpg", "abc") + TarMemberOf("0.cls", "1"));
  const auto error = [&](const std::string& text) {
    const absl::Status status =
        IndexError(Reader({path}, {dir_.Write("a.idx", text)}));
    EXPECT_FALSE(status.ok()) << text;
    EXPECT_THAT(
        std::string(Message(status)),
        HasSubstr(fmt::format("the index {} of {}", At("a.idx"), path)));
    return status.code();
  };
  const std::string good = "v1.1 1\njpg 512 3 cls 1536 1";
  for (size_t size = 0; size < good.size(); ++size) {
    const Code code = error(good.substr(0, size));
    EXPECT_TRUE(code == Code::kInvalidArgument ||
                code == Code::kFailedPrecondition);
  }
  for (const std::string& text :
       {std::string("v1.0 1\njpg 512 3"), std::string("v1.1\njpg 512 3"),
        std::string("v1.1 -1\n"), std::string("v1.1 1 1\n"),
        std::string("v1.1 2\njpg 512 3 cls 1536 1\n"),
        std::string("v1.1 99999999999999\njpg 512 3 cls 1536 1\n"),
        std::string("v1.1 1\n\n"), std::string("v1.1 1\njpg x 3\n"),
        std::string("v1.1 1\njpg 512 -3\n"), good + "\njpg 512 3\n",
        std::string("v1.2 1\njpg 512 3 0.jpg cls 1536 1\n")})
    EXPECT_EQ(error(text), Code::kInvalidArgument) << text;
  for (const char* text :
       {"v1.1 1\njpg 0 3 cls 1536 1\n", "v1.1 1\njpg 513 3 cls 1536 1\n",
        "v1.1 1\njpg 512 4 cls 1536 1\n", "v1.1 1\njpg 1024 3 cls 1536 1\n",
        "v1.1 1\njpg 512 3 cls 1536 4000\n",
        "v1.1 1\njpg 512 18446744073709551615 cls 1536 1\n",
        "v1.1 1\njpg 18446744073709551104 3 cls 1536 1\n",
        "v1.1 1\njpg 512 3\n"})
    EXPECT_EQ(error(text), Code::kFailedPrecondition) << text;
}

// An upload left one of several archives without bytes.
TEST_F(WebdatasetTest, AnArchiveWithoutBytesIsAnErrorThatNamesIt) {
  ext_ = {"t"};
  types_ = {"bytes"};
  dir_.Write("1.tar", TarMemberOf("a.t", "1"));
  dir_.Write("2.tar", "");
  const auto index = BuildIndex(Reader({At("*.tar")}), limits_);
  EXPECT_TRUE(absl::IsDataLoss(index.status())) << index.status();
  EXPECT_THAT(std::string(Message(index.status())),
              HasSubstr("2.tar: 0 bytes"));
}

TEST_F(WebdatasetTest, AnArchiveThatChangedAfterIndexingIsAnError) {
  ext_ = {"t"};
  types_ = {"bytes"};
  const std::string path = dir_.Write("a.tar", TarMemberOf("a.t", "1"));
  const auto source = Open(Reader({path}));
  dir_.Write("a.tar", TarMemberOf("a.t", "1") + TarEnd());
  const absl::Status status = source->Read(0).status();
  EXPECT_EQ(status.code(), Code::kFailedPrecondition);
  EXPECT_THAT(std::string(Message(status)), HasSubstr(path + ": changed"));
}

TEST_F(WebdatasetTest, AMalformedIndexBlobIsRefused) {
  const google::protobuf::LogSilencer silence;
  ext_ = {"t", "u"};
  types_ = {"bytes", "int32"};
  const Node reader = Reader(
      {dir_.Write("a.tar", TarMemberOf("a.t", "1") + TarMemberOf("a.u", "2"))});
  const std::string blob = BuildIndex(reader, limits_)->blob;
  for (size_t size = 0; size < blob.size(); ++size)
    EXPECT_EQ(OpenSource(reader, blob.substr(0, size), limits_).status().code(),
              Code::kDataLoss)
        << size;
  missing_ = "skip";
  EXPECT_EQ(OpenSource(Reader({At("a.tar")}), blob, limits_).status().code(),
            Code::kDataLoss);
  for (size_t bit = 0; bit < blob.size() * 8; ++bit) {
    std::string bytes = blob;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    const auto source = OpenSource(reader, bytes, limits_);
    if (!source.ok()) continue;
    for (uint64_t i = 0; i < (*source)->num_samples(); ++i)
      (void)(*source)->Read(i);
  }
}

TEST_F(WebdatasetTest, LimitsAreKept) {
  ext_ = {"t"};
  types_ = {"bytes"};
  const Node reader = Reader({dir_.Write(
      "a.tar", TarMemberOf("a.t", "123") + TarMemberOf("b.t", "456"))});
  limits_.max_files = 1;
  EXPECT_EQ(IndexError(reader).code(), Code::kResourceExhausted);
  limits_ = {};
  limits_.max_file_bytes = 2;
  EXPECT_EQ(Open(reader)->Read(0).status().code(), Code::kResourceExhausted);
  limits_ = {};
  limits_.max_index_bytes = 10;
  EXPECT_EQ(IndexError(reader).code(), Code::kResourceExhausted);
  limits_ = {};
  std::atomic<bool> cancelled{true};
  limits_.cancelled = &cancelled;
  EXPECT_EQ(IndexError(reader).code(), Code::kCancelled);
}

}  // namespace
}  // namespace leat::worker
