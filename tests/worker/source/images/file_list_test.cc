// SPDX-License-Identifier: Apache-2.0
#include "worker/source/images/file_list.h"

#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "core/pipeline/long_list.h"
#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "leat/stored/v1/records.pb.h"
#include "tests/worker/source/loader_support.h"
#include "tests/worker/temp_dir.h"
#include "worker/source/index_blob.h"

namespace leat::worker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

std::vector<std::string> Parsed(std::string_view text) {
  const auto files = ParseFileList(text, 100);
  EXPECT_TRUE(files.ok()) << files.status();
  std::vector<std::string> out;
  if (files.ok())
    for (const LabelledFile& file : *files)
      out.push_back(fmt::format("{}={}", file.name, file.label));
  return out;
}

std::string Refusal(std::string_view text) {
  return std::string(Message(ParseFileList(text, 3).status()));
}

TEST(FileList, LabelsThatFollowOneAnotherAreGroups) {
  const auto groups = [](const std::vector<int32_t>& labels) {
    return GroupsOfLabels(labels);
  };
  EXPECT_THAT(groups({7, 7, 0, 3, 3, 3}),
              ElementsAre(Group{"7", 2}, Group{"0", 1}, Group{"3", 3}));
  EXPECT_THAT(groups({1, 1}), ElementsAre(Group{"1", 2}));
  EXPECT_THAT(groups({0, 1, 0}), ElementsAre());  // in two runs
  EXPECT_THAT(groups({}), ElementsAre());
  std::vector<int32_t> many(kMaxGroups);
  std::iota(many.begin(), many.end(), 5);
  EXPECT_EQ(groups(many).size(), kMaxGroups);
  many.push_back(0);
  EXPECT_THAT(groups(many), ElementsAre());
}

TEST(FileList, LinesAreReadFromTheirEnd) {
  EXPECT_THAT(Parsed("a.jpg 0\nb c 7.jpg \t 12  \r\n\n \t\n  d 2147483647"),
              ElementsAre("a.jpg=0", "b c 7.jpg=12", "  d=2147483647"));
  EXPECT_THAT(Parsed("\xef\xbb\xbf"
                     "a.jpg 0\nb.jpg 1"),
              ElementsAre("a.jpg=0", "b.jpg=1"));
  EXPECT_THAT(Parsed(""), ElementsAre());
}

TEST(FileList, NamesTheLineThatIsWrong) {
  EXPECT_THAT(Refusal("a 1\n\nb.jpg"), HasSubstr("line 3: 5 bytes: want"));
  for (const char* line :
       {"a -1", "a 1.5", "a 2147483648", "a +1", "a 0x1", "a x", "a 1 b"})
    EXPECT_THAT(Refusal(line), HasSubstr("a whole number of 0 to 2147483647"))
        << line;
  EXPECT_THAT(Refusal("  17"), HasSubstr("line 1: 4 bytes: a label without"));
  EXPECT_THAT(Refusal(std::string("a\0b 1", 5)), HasSubstr("byte 0"));
  EXPECT_THAT(Refusal("a 1\nb 1\nc 1\nd 1"), HasSubstr("more than 3 files"));
  EXPECT_THAT(Refusal("root:$y$j9T$secret:19000::"), Not(HasSubstr("secret")));
}

class FileListTest : public ::testing::Test {
 protected:
  using Texts = std::vector<std::string>;
  using Ints = std::vector<int64_t>;
  static Node List(const std::string& path, const std::string& root = "") {
    return {.op = "readers.file_list",
            .inputs = {},
            .args = {{"path", path}, {"root", root}}};
  }
  static Node Files(const Texts& files, const Ints& labels = {},
                    const std::string& root = "") {
    return {.op = "readers.files",
            .inputs = {},
            .args = {{"files", files}, {"labels", labels}, {"root", root}}};
  }
  absl::StatusOr<std::unique_ptr<Source>> Open(const Node& reader) {
    ASSIGN_OR_RETURN(const BuiltIndex index, BuildIndex(reader, limits_));
    ASSIGN_OR_RETURN(auto source, OpenSource(reader, index.blob, limits_));
    EXPECT_EQ(source->fingerprint(), index.fingerprint);
    EXPECT_EQ(source->num_samples(), index.shards.num_samples());
    return source;
  }
  // Returns "bytes=label" of every sample.
  Texts Samples(const Node& reader) {
    const auto source = Open(reader);
    EXPECT_TRUE(source.ok()) << source.status();
    Texts out;
    for (uint64_t i = 0; source.ok() && i < (*source)->num_samples(); ++i) {
      const auto sample = (*source)->Read(i);
      EXPECT_TRUE(sample.ok()) << sample.status();
      if (sample.ok())
        out.push_back(fmt::format("{}={}", TextOf(sample->fields[0]),
                                  ValuesOf<int32_t>(sample->fields[1])[0]));
    }
    return out;
  }
  std::string Refused(const Node& reader) {
    return std::string(Message(Open(reader).status()));
  }

  TempDir dir_;
  SourceLimits limits_;
};

TEST_F(FileListTest, FilesComeInTheListsOrderWithItsLabels) {
  dir_.Write("photos/a b.jpg", "first");
  const std::string other = dir_.Write("other/c.jpg", "second");
  const std::string list = dir_.Write(
      "photos/list.txt", fmt::format("a b.jpg 5\n{} 0\na b.jpg 1\n", other));
  EXPECT_THAT(Samples(List(list)),
              ElementsAre("first=5", "second=0", "first=1"));
  EXPECT_THAT(Samples(List("file://" + list)),
              ElementsAre("first=5", "second=0", "first=1"));
  const std::string away = dir_.Write("list.txt", "a b.jpg 3");
  EXPECT_THAT(Samples(List(away, dir_.path() + "/photos")),
              ElementsAre("first=3"));
}

TEST_F(FileListTest, ExplicitFilesHaveTheirLabelsOrPositions) {
  const std::string a = dir_.Write("a", "first"), b = dir_.Write("b", "");
  EXPECT_THAT(Samples(Files({b, a})), ElementsAre("=0", "first=1"));
  EXPECT_THAT(Samples(Files({"a", "b"}, {9, 4}, dir_.path())),
              ElementsAre("first=9", "=4"));
  EXPECT_THAT(Refused(Files({a}, {1, 2})), HasSubstr("2 labels for 1 file"));
  EXPECT_THAT(Refused(Files({a}, {-1})), HasSubstr("labels: -1, want 0 to"));
  EXPECT_THAT(Refused(Files({})), HasSubstr("files: none"));
}

TEST_F(FileListTest, ALongListIsWhatTheSameShortOneIs) {
  const Texts files = {dir_.Write("a", "first"), dir_.Write("b", "second")};
  const Node brief = Files(files, {9, 4});
  Node whole = brief;
  whole.args["files"] = *LongListOf(files);
  whole.args["labels"] = *LongListOf(Ints{9, 4});
  EXPECT_THAT(Samples(whole), ElementsAre("first=9", "second=4"));
  const BuiltIndex index = *BuildIndex(whole, limits_);
  EXPECT_EQ(index.fingerprint, BuildIndex(brief, limits_)->fingerprint);
  EXPECT_EQ(index.content, BuildIndex(brief, limits_)->content);
  // A worker that serves rows has only the digests, and lists nothing.
  Node digests = whole;
  for (auto& [name, value] : digests.args)
    if (auto* list = std::get_if<LongList>(&value)) list->values = nullptr;
  const auto source = OpenSource(digests, index.blob, limits_);
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_EQ((*source)->fingerprint(), index.fingerprint);
  EXPECT_EQ(RootOf(digests), RootOf(brief));
  EXPECT_FALSE(ReadsWait(digests, **source));
  EXPECT_EQ(BuildIndex(digests, limits_).status().code(),
            absl::StatusCode::kInternal);
  Node other = digests;
  other.args["labels"] = *LongListOf(Ints{9, 5});
  EXPECT_TRUE(
      absl::IsDataLoss(OpenSource(other, index.blob, limits_).status()));
}

TEST_F(FileListTest, FingerprintTellsLabelsOrderAndVersions) {
  const std::string a = dir_.Write("a", "first"), b = dir_.Write("b", "second");
  const auto of = [&](const Node& reader) {
    return (*Open(reader))->fingerprint();
  };
  const Digest digest = of(Files({a, b}, {1, 2}));
  EXPECT_EQ(of(Files({a, b}, {1, 2})), digest);
  EXPECT_NE(of(Files({a, b}, {1, 3})), digest);
  EXPECT_NE(of(Files({b, a}, {1, 2})), digest);
  fs::last_write_time(a, fs::last_write_time(a) + std::chrono::seconds(1));
  EXPECT_NE(of(Files({a, b}, {1, 2})), digest);
}

TEST_F(FileListTest, TheContentIsThatOfACopyElsewhere) {
  const auto write = [](TempDir& dir) {
    dir.Write("a", "first");
    dir.Write("sub/b", "second");
    dir.Write("l.txt", "a 1\nsub/b 2");
  };
  TempDir other;
  write(dir_);
  write(other);
  const auto of = [&](const Node& reader) {
    return BuildIndex(reader, limits_)->content;
  };
  const std::string here = dir_.path(), there = other.path();
  const Digest content = of(List(here + "/l.txt"));
  EXPECT_NE(content, Digest{});
  EXPECT_EQ(of(List(there + "/l.txt")), content);
  const Digest files = of(Files({here + "/a", here + "/sub/b"}, {1, 2}));
  EXPECT_EQ(of(Files({there + "/a", there + "/sub/b"}, {1, 2})), files);
  EXPECT_NE(of(Files({there + "/a", there + "/sub/b"}, {1, 3})), files);
  EXPECT_NE(of(Files({there + "/sub/b", there + "/a"}, {1, 2})), files);
  other.Write("sub/b", "longer than it was");
  EXPECT_NE(of(List(there + "/l.txt")), content);
}

TEST_F(FileListTest, AFileOfACopyThatChangesUnderWayIsAnError) {
  const std::string a = dir_.Write("a", "first");
  BuiltIndex index = *BuildIndex(Files({a}, {1}), limits_);
  const auto touch = [&] {
    fs::last_write_time(a, fs::last_write_time(a) + std::chrono::seconds(1));
  };
  touch();
  EXPECT_TRUE(absl::IsFailedPrecondition(
      (*OpenSource(Files({a}, {1}), index.blob, limits_))->Read(0).status()));
  StorageConfig config;
  config.local_copies[dir_.path()] = dir_.path();
  const auto storage = *Storage::Create(config);
  limits_.storage = storage.get();
  const auto source = *OpenSource(Files({a}, {1}), index.blob, limits_);
  EXPECT_TRUE(source->Read(0).ok());
  touch();
  const absl::Status status = source->Read(0).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("changed since it was read first"));
}

// There are 17 files, and 16 of them are looked at: not the last.
TEST_F(FileListTest, AFileBesideACopyMustBeTheOneThatWasListed) {
  StorageConfig config;
  config.local_copies[dir_.path() + "/copied"] = dir_.path() + "/copied";
  const auto storage = *Storage::Create(config);
  SourceLimits limits = limits_;
  limits.storage = storage.get();
  for (const size_t other : {0, 16}) {
    Texts files;
    for (size_t i = 0; i < 17; ++i)
      files.push_back(dir_.Write(
          fmt::format("{}/{}", i == other ? "other" : "copied", i), "first"));
    const std::string index = BuildIndex(Files(files), limits_)->blob;
    for (const std::string& file : files)
      fs::last_write_time(file,
                          fs::last_write_time(file) + std::chrono::seconds(1));
    const auto source = *OpenSource(Files(files), index, limits);
    for (size_t i = 0; i < files.size(); ++i)
      EXPECT_EQ(source->Read(i).ok(), i != other) << other << " " << i;
  }
}

TEST_F(FileListTest, WhatIsWrongIsNamed) {
  const std::string a = dir_.Write("a", "first");
  EXPECT_THAT(Refused(List(dir_.path() + "/none.txt")), HasSubstr("none.txt"));
  EXPECT_THAT(Refused(List("")), HasSubstr("path is empty"));
  EXPECT_THAT(Refused(List(dir_.Write("e.txt", " \n"))), HasSubstr("e.txt"));
  EXPECT_THAT(Refused(List(dir_.Write("l.txt", "a 1\ngone.jpg 2"))),
              HasSubstr(dir_.path() + "/gone.jpg"));
  EXPECT_THAT(Refused(List(dir_.Write("m.txt", "a 1\na"))),
              HasSubstr("m.txt: line 2"));
  EXPECT_THAT(Refused(Files({dir_.path()})), HasSubstr(dir_.path()));
  limits_.max_index_bytes = 10;
  EXPECT_TRUE(absl::IsResourceExhausted(
      Open(List(dir_.Write("n.txt", "a 1\na 1\na 1\n"))).status()));
}

TEST_F(FileListTest, AFileThatChangedIsAnErrorThatNamesIt) {
  const std::string a = dir_.Write("a", "first");
  const auto source = Open(Files({a}));
  ASSERT_TRUE(source.ok()) << source.status();
  dir_.Write("a", "longer than it was");
  const absl::Status changed = (*source)->Read(0).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(changed)) << changed;
  EXPECT_THAT(std::string(Message(changed)), HasSubstr(a));
  fs::remove(a);
  EXPECT_TRUE(absl::IsNotFound((*source)->Read(0).status()));
  limits_.max_file_bytes = 3;
  dir_.Write("a", "first");
  EXPECT_TRUE(absl::IsResourceExhausted((*Open(Files({a})))->Read(0).status()));
}

// A size of the index alone would make a part of a file pass for the whole.
TEST_F(FileListTest, AnIndexWhoseSizesContradictItsIdentitiesIsRefused) {
  const Node reader = Files({dir_.Write("a", "first")});
  const auto index = BuildIndex(reader, limits_);
  ASSERT_TRUE(index.ok()) << index.status();
  BlobReader in(index->blob);
  stored::v1::ListedHead head;
  stored::v1::ListedFiles part;
  ASSERT_TRUE(in.Next(&head).ok() && in.Next(&part).ok());
  const auto opened = [&](uint64_t bytes, const std::string& identity) {
    part.mutable_files(0)->set_bytes(bytes);
    part.mutable_files(0)->set_identity(identity);
    BlobWriter out(limits_);
    EXPECT_TRUE(out.Add(head).ok() && out.Add(part, 1).ok());
    return OpenSource(reader, *out.Finish(), limits_).status();
  };
  const std::string identity = part.files(0).identity();
  EXPECT_TRUE(opened(5, identity).ok());
  for (const uint64_t bytes :
       {uint64_t{0}, uint64_t{4}, uint64_t{6}, UINT64_MAX})
    EXPECT_TRUE(absl::IsDataLoss(opened(bytes, identity))) << bytes;
  EXPECT_TRUE(absl::IsDataLoss(opened(5, "")));
  EXPECT_TRUE(absl::IsDataLoss(opened(5, "nonsense")));
}

TEST_F(FileListTest, TheIndexOfAnotherReaderIsRefused) {
  const std::string a = dir_.Write("a", "first"), b = dir_.Write("b", "second");
  const auto index = BuildIndex(Files({a, b, a}), limits_);
  ASSERT_TRUE(index.ok()) << index.status();
  EXPECT_TRUE(absl::IsDataLoss(
      OpenSource(Files({a, b}), index->blob, limits_).status()));
}

}  // namespace
}  // namespace leat::worker
