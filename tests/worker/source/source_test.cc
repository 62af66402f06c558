// SPDX-License-Identifier: Apache-2.0
#include "worker/source/source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "core/pipeline/operators.h"
#include "core/plan/job.h"
#include "core/status.h"
#include "gmock/gmock.h"
#include "google/protobuf/stubs/logging.h"
#include "gtest/gtest.h"
#include "leat/stored/v1/records.pb.h"
#include "tests/worker/image/base/stored_image.h"
#include "tests/worker/temp_dir.h"
#include "worker/source/storage/storage.h"

namespace leat::worker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
namespace fs = std::filesystem;

Node Reader(const std::string& path, int64_t repeat = 1) {
  return {.op = "readers.image_folder",
          .inputs = {},
          .args = {{"path", path}, {"repeat", repeat}}};
}

class SourceTest : public ::testing::Test {
 protected:
  BuiltIndex Index(int64_t repeat = 1) {
    absl::StatusOr<BuiltIndex> index =
        BuildIndex(Reader(dir_.path(), repeat), limits_);
    EXPECT_TRUE(index.ok()) << index.status();
    return *std::move(index);
  }
  std::unique_ptr<Source> Open(const BuiltIndex& index, int64_t repeat = 1) {
    auto source = OpenSource(Reader(dir_.path(), repeat), index.blob, limits_);
    EXPECT_TRUE(source.ok()) << source.status();
    return *std::move(source);
  }
  absl::Status IndexError() {
    return BuildIndex(Reader(dir_.path()), limits_).status();
  }
  static std::vector<std::string> Paths(const Source& source) {
    std::vector<std::string> paths;
    for (uint64_t i = 0; i < source.num_samples(); ++i)
      paths.push_back(source.Describe(i));
    return paths;
  }
  std::string At(const std::string& name) { return dir_.path() + "/" + name; }

  TempDir dir_;
  SourceLimits limits_;
};

std::string Text(const StoredSample& sample) {
  const std::span<const std::byte> bytes = sample.fields[0].bytes;
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Datasets that have nothing in common must not have one root.
TEST(RootOf, IsTheFirstPathOfEachReader) {
  const std::set<std::string> places = {
      "annotations", "array", "files", "images", "path", "paths", "root"};
  for (const OperatorInfo& info : AllOperators()) {
    if (!info.name.starts_with("readers.") || info.name == kExternalReader)
      continue;
    size_t found = 0;
    for (const ArgInfo& arg : info.args) {
      if (!places.contains(arg.name)) continue;
      ++found;
      const auto root_of = [&](const std::string& path) {
        const Value value =
            arg.type == ArgType::kStrings
                ? Value(std::vector<std::string>{path, "/other"})
                : Value(path);
        return RootOf({.op = info.name, .args = {{arg.name, value}}});
      };
      EXPECT_EQ(root_of("/data/a b"), "/data/a b") << info.name << arg.name;
      EXPECT_EQ(root_of("file:///data/a%20b/"), "/data/a b") << info.name;
      EXPECT_EQ(root_of("s3://bucket/x"), "s3://bucket") << info.name;
    }
    EXPECT_GT(found, 0u) << info.name;
  }
}

TEST_F(SourceTest, ImagesOfEveryFormatAreListedByTheirEndings) {
  const std::vector<std::string> images = {"a.JP2",  "b.TIF", "c.bmp",  "d.j2k",
                                           "e.jpe",  "f.Png", "g.tiff", "h.jpg",
                                           "i.jpeg", "j.WEBP"};
  for (const std::string& name : images) dir_.Write("k/" + name, name);
  for (const char* other : {"k/a.gif", "k/b.txt", "k/png", "k/c.png.txt"})
    dir_.Write(other, "x");
  std::vector<std::string> want;
  for (const std::string& name : images) want.push_back(At("k/" + name));
  EXPECT_EQ(Paths(*Open(Index())), want);
}

TEST_F(SourceTest, ClassesAndFilesAreInByteOrder) {
  for (const char* name : {"b/2.jpg", "b/10.JPG", "a/z.jpeg", "B/q.Jpe",
                           "a/deep/er/x.jpg", "a/deep.jpg", "a/note.txt"})
    dir_.Write(name, name);
  const BuiltIndex index = Index();
  EXPECT_THAT(index.classes, ElementsAre("B", "a", "b"));
  EXPECT_EQ(index.name, fs::path(dir_.path()).filename());
  EXPECT_EQ(index.shards.num_samples(), 6u);
  const auto source = Open(index);
  EXPECT_THAT(Paths(*source), ElementsAre(At("B/q.Jpe"), At("a/deep.jpg"),
                                          At("a/deep/er/x.jpg"), At("a/z.jpeg"),
                                          At("b/10.JPG"), At("b/2.jpg")));
  const auto sample = source->Read(4);
  ASSERT_TRUE(sample.ok()) << sample.status();
  EXPECT_EQ(Text(*sample), "b/10.JPG");
  EXPECT_EQ(LabelOf(sample->fields), 2);
}

TEST_F(SourceTest, ImagesDirectlyInTheRootAreOneClass) {
  dir_.Write("1.jpg", "x");
  dir_.Write("empty/readme", "y");
  const BuiltIndex index = Index();
  EXPECT_THAT(index.classes, ElementsAre(""));
  EXPECT_THAT(Paths(*Open(index)), ElementsAre(At("1.jpg")));
}

TEST_F(SourceTest, AClassWithoutImagesKeepsItsNumber) {
  dir_.Write("a/readme", "");
  dir_.Write("b/1.jpg", "x");
  EXPECT_EQ(LabelOf(Open(Index())->Read(0)->fields), 1);
}

TEST_F(SourceTest, HiddenNamesArePassedOver) {
  dir_.Write("a/.hidden.jpg", "");
  dir_.Write("a/.ipynb_checkpoints/x.jpg", "");
  dir_.Write(".git/x.jpg", "");
  dir_.Write("a/1.jpg", "x");
  EXPECT_EQ(Index().shards.num_samples(), 1u);
}

TEST_F(SourceTest, RepeatCostsNothingAndSharesRecords) {
  dir_.Write("a/1.jpg", "one");
  dir_.Write("a/2.jpg", "two");
  const int64_t repeat = 500'000'000;
  const BuiltIndex index = Index(repeat);
  EXPECT_LT(index.blob.size(), 1000u);
  EXPECT_EQ(index.shards.num_samples(), 1'000'000'000u);
  const auto source = Open(index, repeat);
  EXPECT_EQ(source->num_samples(), 1'000'000'000u);
  EXPECT_EQ(source->RecordOf(999'999'999), 1u);
  EXPECT_EQ(Text(*source->Read(999'999'999)), "two");
}

TEST_F(SourceTest, TheFingerprintChangesWithAnyFile) {
  dir_.Write("a/1.jpg", "one");
  const BuiltIndex first = Index();
  EXPECT_EQ(first.fingerprint, Index().fingerprint);
  EXPECT_EQ(Open(first)->fingerprint(), first.fingerprint);
  EXPECT_NE(first.fingerprint, Index(2).fingerprint);
  fs::last_write_time(At("a/1.jpg"), fs::last_write_time(At("a/1.jpg")) -
                                         std::chrono::seconds(5));
  const BuiltIndex touched = Index();
  EXPECT_NE(first.fingerprint, touched.fingerprint);
  dir_.Write("b/1.jpg", "two");
  EXPECT_NE(Index().fingerprint, touched.fingerprint);
}

TEST_F(SourceTest, NoSuchPathNamesIt) {
  const auto status = BuildIndex(Reader("/no/such/leat"), limits_).status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("/no/such/leat"));
}

TEST_F(SourceTest, AFileIsNotAFolder) {
  const std::string file = dir_.Write("x", "y");
  EXPECT_TRUE(
      absl::IsFailedPrecondition(BuildIndex(Reader(file), limits_).status()));
}

TEST_F(SourceTest, NoImagesSaysWhatWasLookedFor) {
  dir_.Write("a/readme.txt", "");
  const absl::Status status = IndexError();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(Message(status), HasSubstr("*.jpg"));
  EXPECT_THAT(Message(status), HasSubstr(dir_.path()));
}

TEST_F(SourceTest, WhatIsPassedOverIsCountedByKind) {
  for (const char* name :
       {"a/1.jpg", "a/2.HEIC", "a/b/1.heic", "c/1.gif", "d/LICENSE", ".x/1.gif",
        "a/.2.gif", "a/x.TXT", "0.png"})
    dir_.Write(name, "x");
  fs::create_directory(At("e"));
  fs::create_symlink(At("c/1.gif"), At("a/3.gif"));
  EXPECT_THAT(
      Index().passed_over,
      ElementsAre(
          PassedOver{"classes without an image", 3, "c"},
          PassedOver{"GIF images (.gif)", 2, "a/3.gif"},
          PassedOver{"HEIC images (.heic)", 2, "a/2.HEIC"},
          PassedOver{"files .txt", 1, "a/x.TXT"},
          PassedOver{"files without an extension", 1, "d/LICENSE"},
          PassedOver{"images beside the directories of classes", 1, "0.png"}));
  fs::remove(At("a/1.jpg"));
  fs::remove(At("0.png"));
  EXPECT_THAT(Message(IndexError()),
              HasSubstr("; there are 2 GIF images (.gif), 2 HEIC images"));
}

TEST_F(SourceTest, LoopsOfLinksEnd) {
  dir_.Write("a/1.jpg", "x");
  fs::create_directory_symlink(dir_.path(), At("a/up"));
  fs::create_directory_symlink(At("a"), At("a/self"));
  fs::create_directory_symlink("round", At("a/round"));
  EXPECT_THAT(Paths(*Open(Index())), ElementsAre(At("a/1.jpg")));
}

// Thirty directories with two links each to the next are 2^30 ways to a file.
TEST_F(SourceTest, LinksThatFanOutEndAtTheLimit) {
  for (int i = 0; i < 30; ++i) {
    fs::create_directories(At("a/" + std::to_string(i)));
    for (const char* name : {"x", "y"})
      fs::create_directory_symlink(At("a/" + std::to_string(i + 1)),
                                   At("a/" + std::to_string(i) + "/" + name));
  }
  dir_.Write("a/30/1.jpg", "x");
  limits_.max_files = 1000;
  const absl::Status status = IndexError();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("1000 directories"));
}

TEST_F(SourceTest, AFileOfAFarFutureIsReadAndItsChangeNoticed) {
  dir_.Write("a/1.jpg", "x");
  const auto touch = [&](int64_t seconds) {
    const timespec times[] = {{seconds, 0}, {seconds, 0}};
    return utimensat(AT_FDCWD, At("a/1.jpg").c_str(), times, 0) == 0;
  };
  ASSERT_TRUE(touch(12'000'000'000));  // the year 2350: 2^63 ns are 292 years
  const auto source = Open(Index());
  EXPECT_EQ(Text(*source->Read(0)), "x");
  ASSERT_TRUE(touch(12'000'000'001));
  EXPECT_TRUE(absl::IsFailedPrecondition(source->Read(0).status()));
}

TEST_F(SourceTest, LinksToFilesAndDirectoriesAreFollowed) {
  TempDir other;
  other.Write("k/1.jpg", "linked");
  fs::create_directory_symlink(other.path() + "/k", At("k"));
  dir_.Write("m/x", "");
  fs::create_symlink(other.path() + "/k/1.jpg", At("m/2.jpg"));
  const auto source = Open(Index());
  EXPECT_EQ(source->num_samples(), 2u);
  EXPECT_EQ(Text(*source->Read(1)), "linked");
}

TEST_F(SourceTest, ALinkToNothingIsAnErrorThatNamesIt) {
  dir_.Write("a/1.jpg", "x");
  fs::create_symlink("/no/such/file", At("a/2.jpg"));
  const absl::Status status = IndexError();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("a/2.jpg"));
}

TEST_F(SourceTest, AnUnreadableDirectoryIsNamed) {
  if (geteuid() == 0) GTEST_SKIP() << "root may read everything";
  dir_.Write("a/1.jpg", "x");
  chmod(At("a").c_str(), 0);
  const absl::Status status = IndexError();
  chmod(At("a").c_str(), 0700);
  EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr(At("a")));
}

TEST_F(SourceTest, ANameThatIsNotUtf8IsAnErrorThatShowsIt) {
  dir_.Write("a/caf\xe9.jpg", "x");
  const absl::Status status = IndexError();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("caf\\xe9.jpg"));
}

TEST_F(SourceTest, NamesInUtf8AreKept) {
  dir_.Write("caf\xc3\xa9/\xe5\xb1\xb1.jpg", "x");
  EXPECT_EQ(Text(*Open(Index())->Read(0)), "x");
}

TEST_F(SourceTest, TooManyFilesIsAnError) {
  for (int i = 0; i < 4; ++i)
    dir_.Write("a/" + std::to_string(i) + ".jpg", "x");
  limits_.max_files = 3;
  EXPECT_TRUE(absl::IsResourceExhausted(IndexError()));
  limits_.max_files = 4;
  EXPECT_TRUE(IndexError().ok());
  limits_.max_index_bytes = 30;
  EXPECT_TRUE(absl::IsResourceExhausted(IndexError()));
}

TEST_F(SourceTest, ACancelledListingEnds) {
  dir_.Write("a/1.jpg", "x");
  const std::atomic<bool> cancelled{true};
  limits_.cancelled = &cancelled;
  EXPECT_TRUE(absl::IsCancelled(IndexError()));
}

TEST_F(SourceTest, AFileRemovedAfterIndexingIsNotFound) {
  const std::string file = dir_.Write("a/1.jpg", "x");
  const auto source = Open(Index());
  fs::remove(file);
  const absl::Status status = source->Read(0).status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(Message(status), HasSubstr("removed after indexing"));
  EXPECT_THAT(Message(status), HasSubstr(file));
}

TEST_F(SourceTest, AFileOfAnotherSizeOrTimeHasChanged) {
  const std::string file = dir_.Write("a/1.jpg", "x");
  const auto source = Open(Index());
  const auto time = fs::last_write_time(file);
  dir_.Write("a/1.jpg", "longer");
  absl::Status status = source->Read(0).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(Message(status), HasSubstr("has 6 bytes, the index says 1"));
  dir_.Write("a/1.jpg", "y");
  fs::last_write_time(file, time + std::chrono::seconds(1));
  status = source->Read(0).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(Message(status), HasSubstr("changed after indexing"));
}

TEST_F(SourceTest, AFolderOfImagesIsReadOnlyBelowWhatIsAllowed) {
  dir_.Write("a/1.jpg", "pixels");
  TempDir secret;
  secret.Write("c/1.jpg", "secret");
  StorageConfig config;
  config.allow = std::vector<std::string>{dir_.path()};
  const auto storage = *Storage::Create(config);
  limits_.storage = storage.get();
  const BuiltIndex index = Index();
  const auto source = Open(index);
  EXPECT_TRUE(source->Read(0).ok());
  fs::remove(At("a/1.jpg"));
  fs::create_symlink(secret.path() + "/c/1.jpg", At("a/1.jpg"));
  EXPECT_TRUE(absl::IsPermissionDenied(source->Read(0).status()));
  for (const std::string& path : {secret.path(), At("../none")})
    EXPECT_TRUE(
        absl::IsPermissionDenied(BuildIndex(Reader(path), limits_).status()));
  fs::create_symlink(secret.path(), At("b"));
  EXPECT_TRUE(absl::IsPermissionDenied(IndexError()));
}

TEST_F(SourceTest, ACopyThatIsNamedMayHaveTimesOfItsOwn) {
  dir_.Write("a/1.jpg", "x");
  dir_.Write("a/2.jpg", "y");
  const BuiltIndex index = Index();
  StorageConfig config;
  config.local_copies[dir_.path()] = dir_.path();
  const auto storage = *Storage::Create(config);
  limits_.storage = storage.get();
  const auto touch = [&](const char* name, int seconds) {
    fs::last_write_time(At(name), fs::last_write_time(At(name)) +
                                      std::chrono::seconds(seconds));
  };
  touch("a/1.jpg", 7);
  touch("a/2.jpg", 9);
  const auto source = Open(index);
  EXPECT_EQ(Text(*source->Read(0)), "x");
  EXPECT_EQ(Text(*source->Read(1)), "y");
  touch("a/1.jpg", 1);
  const absl::Status status = source->Read(0).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("changed after indexing"));
  EXPECT_TRUE(source->Read(1).ok());
}

TEST_F(SourceTest, ACopyElsewhereIsReadAndHasTheSameContent) {
  dir_.Write("a/1.jpg", "one");
  dir_.Write("b/2.jpg", "two");
  const BuiltIndex index = Index();
  TempDir other;
  other.Write("a/1.jpg", "one");
  other.Write("b/2.jpg", "two");
  const BuiltIndex copied = *BuildIndex(Reader(other.path()), limits_);
  EXPECT_EQ(copied.content, index.content);
  EXPECT_NE(copied.fingerprint, index.fingerprint);
  fs::remove_all(At("a"));
  fs::remove_all(At("b"));
  StorageConfig config;
  config.local_copies[dir_.path()] = other.path();
  const auto storage = *Storage::Create(config);
  limits_.storage = storage.get();
  const auto source = Open(index);
  EXPECT_EQ(Text(*source->Read(0)), "one");
  EXPECT_EQ(Text(*source->Read(1)), "two");
  // A listing through the copy uses the job's names.
  const BuiltIndex listed = Index();
  EXPECT_EQ(listed.content, index.content);
  EXPECT_EQ(Text(*Open(listed)->Read(1)), "two");
}

TEST_F(SourceTest, TheContentIsOfNamesSizesAndClasses) {
  const std::string file = dir_.Write("a/1.jpg", "one");
  dir_.Write("b/2.jpg", "two");
  const Digest content = Index().content;
  EXPECT_NE(content, Digest{});
  fs::last_write_time(file,
                      fs::last_write_time(file) + std::chrono::seconds(3));
  EXPECT_EQ(Index().content, content);
  std::set<Digest> others = {content};
  dir_.Write("a/1.jpg", "larger");
  EXPECT_TRUE(others.insert(Index().content).second);
  dir_.Write("a/1.jpg", "one");
  fs::rename(file, At("a/0.jpg"));
  EXPECT_TRUE(others.insert(Index().content).second);
  fs::rename(At("a/0.jpg"), file);
  fs::rename(At("b"), At("c"));
  EXPECT_TRUE(others.insert(Index().content).second);
  fs::rename(At("c"), At("b"));
  EXPECT_EQ(Index().content, content);
}

TEST_F(SourceTest, APipeInAFilesPlaceDoesNotHang) {
  const std::string file = dir_.Write("a/1.jpg", "x");
  const auto source = Open(Index());
  fs::remove(file);
  ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
  EXPECT_TRUE(absl::IsFailedPrecondition(source->Read(0).status()));
}

TEST_F(SourceTest, AFileOverTheLimitIsRefused) {
  dir_.Write("a/1.jpg", "12345");
  limits_.max_file_bytes = 4;
  const absl::Status status = Open(Index())->Read(0).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_THAT(Message(status), HasSubstr("limit is 4"));
}

TEST_F(SourceTest, AnEmptyFileIsReadAsSuch) {
  dir_.Write("a/1.jpg", "");
  EXPECT_EQ(Open(Index())->Read(0)->fields[0].bytes.size(), 0u);
}

TEST_F(SourceTest, RandomBytesAreNotAnIndex) {
  dir_.Write("a/1.jpg", "x");
  const std::string good = Index().blob;
  const google::protobuf::LogSilencer silent;  // of text that is not UTF-8
  std::minstd_rand random(1);
  for (int i = 0; i < 2000; ++i) {
    std::string blob = good;
    for (int j = 0; j <= i % 4; ++j)
      blob[random() % blob.size()] = static_cast<char>(random());
    if (i % 3 == 0) blob.resize(random() % blob.size());
    // Whatever the bytes, it must not crash, nor reach outside its root.
    const auto source = OpenSource(Reader(dir_.path()), blob, limits_);
    const uint64_t samples =
        source.ok() ? std::min<uint64_t>(9, (*source)->num_samples()) : 0;
    for (uint64_t s = 0; s < samples; ++s)
      EXPECT_THAT((*source)->Describe(s),
                  testing::StartsWith(dir_.path() + "/"));
  }
}

TEST_F(SourceTest, AnIndexThatClimbsOutIsRefused) {
  stored::v1::ImageFolderIndex index;
  index.set_root(dir_.path());
  index.set_repeat(1);
  auto& each = *index.add_classes();
  each.set_directory("a");
  auto& file = *each.add_files();
  for (const char* name : {"../../etc/passwd", "/etc/passwd", "x/..", ""}) {
    file.set_name(name);
    EXPECT_TRUE(absl::IsDataLoss(
        OpenSource(Reader(dir_.path()), index.SerializeAsString(), limits_)
            .status()))
        << name;
  }
  file.set_name("1.jpg");
  index.set_root("/etc");
  EXPECT_TRUE(absl::IsDataLoss(
      OpenSource(Reader(dir_.path()), index.SerializeAsString(), limits_)
          .status()));
}

TEST_F(SourceTest, AnUnknownReaderIsNamed) {
  const auto status = BuildIndex({.op = "readers.tape"}, limits_).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(Message(status), HasSubstr("readers.tape"));
}

}  // namespace
}  // namespace leat::worker
