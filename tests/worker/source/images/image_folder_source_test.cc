// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "core/cluster/fault.h"
#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/source/images/image_folder_fixture.h"
#include "worker/source/storage/storage.h"

namespace leat::worker {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

TEST_F(ImageFolderTest, AFileOfAFarFutureIsReadAndItsChangeNoticed) {
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

TEST_F(ImageFolderTest, AFileRemovedAfterIndexingIsNotFound) {
  const std::string file = dir_.Write("a/1.jpg", "x");
  const auto source = Open(Index());
  fs::remove(file);
  const absl::Status status = source->Read(0).status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(Message(status), HasSubstr("removed after indexing"));
  EXPECT_THAT(Message(status), HasSubstr(file));
}

TEST_F(ImageFolderTest, AFileOfAnotherSizeOrTimeHasChanged) {
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

TEST_F(ImageFolderTest, AFolderOfImagesIsReadOnlyBelowWhatIsAllowed) {
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

TEST_F(ImageFolderTest, ACopyThatIsNamedMayHaveTimesOfItsOwn) {
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

TEST_F(ImageFolderTest, ACopyElsewhereIsReadAndHasTheSameContent) {
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
  EXPECT_EQ(source->Locate(1)->file, At("b/2.jpg")) << "as the job names it";
  // A listing through the copy uses the job's names.
  const BuiltIndex listed = Index();
  EXPECT_EQ(listed.content, index.content);
  EXPECT_EQ(Text(*Open(listed)->Read(1)), "two");
}

TEST_F(ImageFolderTest, APipeInAFilesPlaceDoesNotHang) {
  const std::string file = dir_.Write("a/1.jpg", "x");
  const auto source = Open(Index());
  fs::remove(file);
  ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
  EXPECT_TRUE(absl::IsFailedPrecondition(source->Read(0).status()));
}

// A worker's fault is never final: the row would be asked for again for ever.
TEST_F(ImageFolderTest, ASocketInAFilesPlaceIsTheFilesFault) {
  const std::string file = dir_.Write("a/1.jpg", "x");
  const auto source = Open(Index());
  fs::remove(file);
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = {}};
  ASSERT_LT(file.size(), sizeof address.sun_path);
  file.copy(address.sun_path, file.size());
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  const absl::Status status = source->Read(0).status();
  close(fd);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_EQ(FaultOf(status), Fault::kObject) << status;
}

TEST_F(ImageFolderTest, AFileOverTheLimitIsRefused) {
  dir_.Write("a/1.jpg", "12345");
  limits_.max_file_bytes = 4;
  const absl::Status status = Open(Index())->Read(0).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_THAT(Message(status), HasSubstr("limit is 4"));
}

TEST_F(ImageFolderTest, AnEmptyFileIsReadAsSuch) {
  dir_.Write("a/1.jpg", "");
  EXPECT_EQ(Open(Index())->Read(0)->fields[0].bytes.size(), 0u);
}

}  // namespace
}  // namespace leat::worker
