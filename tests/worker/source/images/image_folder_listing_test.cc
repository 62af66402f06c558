// SPDX-License-Identifier: Apache-2.0
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <vector>

#include "core/plan/passed_over.h"
#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/image/base/stored_image.h"
#include "tests/worker/source/images/image_folder_fixture.h"

namespace leat::worker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
namespace fs = std::filesystem;

TEST_F(ImageFolderTest, ImagesOfEveryFormatAreListedByTheirEndings) {
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

TEST_F(ImageFolderTest, ClassesAndFilesAreInByteOrder) {
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

TEST_F(ImageFolderTest, ImagesDirectlyInTheRootAreOneClass) {
  dir_.Write("1.jpg", "x");
  dir_.Write("empty/readme", "y");
  const BuiltIndex index = Index();
  EXPECT_THAT(index.classes, ElementsAre(""));
  EXPECT_THAT(Paths(*Open(index)), ElementsAre(At("1.jpg")));
}

TEST_F(ImageFolderTest, AClassWithoutImagesKeepsItsNumber) {
  dir_.Write("a/readme", "");
  dir_.Write("b/1.jpg", "x");
  EXPECT_EQ(LabelOf(Open(Index())->Read(0)->fields), 1);
}

TEST_F(ImageFolderTest, HiddenNamesArePassedOver) {
  dir_.Write("a/.hidden.jpg", "");
  dir_.Write("a/.ipynb_checkpoints/x.jpg", "");
  dir_.Write(".git/x.jpg", "");
  dir_.Write("a/1.jpg", "x");
  EXPECT_EQ(Index().shards.num_samples(), 1u);
}

TEST_F(ImageFolderTest, NoSuchPathNamesIt) {
  const auto status = BuildIndex(Reader("/no/such/leat"), limits_).status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("/no/such/leat"));
}

TEST_F(ImageFolderTest, AFileIsNotAFolder) {
  const std::string file = dir_.Write("x", "y");
  const std::string pipe = dir_.path() + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);  // without a writer
  for (const auto& [path, kind] :
       {std::pair(file, "a file"), std::pair(pipe, "a named pipe")}) {
    const auto status = BuildIndex(Reader(path), limits_).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_EQ(Message(status),
              fmt::format("{} is {}: want a directory of images", path, kind));
  }
}

TEST_F(ImageFolderTest, NoImagesSaysWhatWasLookedFor) {
  dir_.Write("a/readme.txt", "");
  const absl::Status status = IndexError();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(Message(status), HasSubstr("*.jpg"));
  EXPECT_THAT(Message(status), HasSubstr(dir_.path()));
}

TEST_F(ImageFolderTest, WhatIsPassedOverIsCountedByKind) {
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

TEST_F(ImageFolderTest, LoopsOfLinksEnd) {
  dir_.Write("a/1.jpg", "x");
  fs::create_directory_symlink(dir_.path(), At("a/up"));
  fs::create_directory_symlink(At("a"), At("a/self"));
  fs::create_directory_symlink("round", At("a/round"));
  EXPECT_THAT(Paths(*Open(Index())), ElementsAre(At("a/1.jpg")));
}

// Thirty directories with two links each to the next are 2^30 ways to a file.
TEST_F(ImageFolderTest, LinksThatFanOutEndAtTheLimit) {
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

TEST_F(ImageFolderTest, LinksToFilesAndDirectoriesAreFollowed) {
  TempDir other;
  other.Write("k/1.jpg", "linked");
  fs::create_directory_symlink(other.path() + "/k", At("k"));
  dir_.Write("m/x", "");
  fs::create_symlink(other.path() + "/k/1.jpg", At("m/2.jpg"));
  const auto source = Open(Index());
  EXPECT_EQ(source->num_samples(), 2u);
  EXPECT_EQ(Text(*source->Read(1)), "linked");
}

TEST_F(ImageFolderTest, ALinkToNothingIsAnErrorThatNamesIt) {
  dir_.Write("a/1.jpg", "x");
  fs::create_symlink("/no/such/file", At("a/2.jpg"));
  const absl::Status status = IndexError();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("a/2.jpg"));
}

TEST_F(ImageFolderTest, AnUnreadableDirectoryIsNamed) {
  if (geteuid() == 0) GTEST_SKIP() << "root may read everything";
  dir_.Write("a/1.jpg", "x");
  chmod(At("a").c_str(), 0);
  const absl::Status status = IndexError();
  chmod(At("a").c_str(), 0700);
  EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr(At("a")));
}

// A class that was left out would change the labels of all after it.
TEST_F(ImageFolderTest, ALinkThatCannotBeExaminedIsAnErrorThatNamesIt) {
  TempDir other;
  other.Write("closed/b/1.jpg", "y");
  dir_.Write("a/1.jpg", "x");
  dir_.Write("c/1.jpg", "z");
  fs::create_symlink("b", At("b"));
  fs::create_symlink(dir_.path() + "/none", At("d"));
  fs::create_symlink(dir_.path() + "/a/1.jpg/none", At("e"));
  EXPECT_THAT(Index().classes, ElementsAre("a", "c"));  // they lead nowhere
  fs::remove(At("b"));
  const std::string closed = other.path() + "/closed";
  fs::create_directory_symlink(closed + "/b", At("b"));
  EXPECT_THAT(Index().classes, ElementsAre("a", "b", "c"));
  const bool root = geteuid() == 0;  // which may read everything
  for (const std::string& path : {dir_.path(), other.path()})
    chmod(path.c_str(), 0755);
  chmod(closed.c_str(), 0);
  limits_.listing_threads = 1;
  if (root) setfsuid(65534);
  const absl::Status status = IndexError();
  if (root) setfsuid(0);
  chmod(closed.c_str(), 0700);
  EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr(At("b")));
}

TEST_F(ImageFolderTest, ANameThatIsNotUtf8IsAnErrorThatShowsIt) {
  dir_.Write("a/caf\xe9.jpg", "x");
  const absl::Status status = IndexError();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("caf\\xe9.jpg"));
}

TEST_F(ImageFolderTest, NamesInUtf8AreKept) {
  dir_.Write("caf\xc3\xa9/\xe5\xb1\xb1.jpg", "x");
  EXPECT_EQ(Text(*Open(Index())->Read(0)), "x");
}

TEST_F(ImageFolderTest, TooManyFilesIsAnError) {
  for (int i = 0; i < 4; ++i)
    dir_.Write("a/" + std::to_string(i) + ".jpg", "x");
  limits_.max_files = 3;
  EXPECT_TRUE(absl::IsResourceExhausted(IndexError()));
  limits_.max_files = 4;
  EXPECT_TRUE(IndexError().ok());
  limits_.max_index_bytes = 30;
  EXPECT_TRUE(absl::IsResourceExhausted(IndexError()));
}

TEST_F(ImageFolderTest, ACancelledListingEnds) {
  dir_.Write("a/1.jpg", "x");
  const std::atomic<bool> cancelled{true};
  limits_.cancelled = &cancelled;
  EXPECT_TRUE(absl::IsCancelled(IndexError()));
}

}  // namespace
}  // namespace leat::worker
