// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/fd.h"
#include "core/status.h"
#include "tests/worker/temp_dir.h"
#include "worker/source/storage/storage.h"

namespace leat::worker {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LocalStorage : public ::testing::Test {
 protected:
  std::unique_ptr<Storage> With(const StorageConfig& config) {
    auto storage = Storage::Create(config);
    EXPECT_TRUE(storage.ok()) << storage.status();
    return *std::move(storage);
  }
  std::shared_ptr<const StorageFile> Opened(const std::string& uri) {
    auto file = storage_->Open(uri);
    EXPECT_TRUE(file.ok()) << file.status();
    return *std::move(file);
  }
  std::vector<std::string> Names(const std::string& uri) {
    const auto list = storage_->List(uri);
    EXPECT_TRUE(list.ok()) << list.status();
    std::vector<std::string> names;
    for (const StoredObject& each : *list) names.push_back(each.name);
    return names;
  }
  static absl::Status Read(const StorageFile& file, uint64_t offset,
                           uint64_t size, std::string* out = nullptr) {
    std::string bytes(size, '?');
    const absl::Status status = file.ReadAt(
        offset, std::as_writable_bytes(std::span(bytes.data(), size)));
    if (out != nullptr) *out = bytes;
    return status;
  }

  TempDir dir_;
  std::unique_ptr<Storage> storage_ = With({});
};

TEST_F(LocalStorage, AFileIsReadAtAnyPlace) {
  const std::string path = dir_.Write("a b", "0123456789");
  for (const std::string& uri : {path, "file://" + dir_.path() + "/a%20b"}) {
    const auto file = Opened(uri);
    EXPECT_EQ(file->size(), 10);
    EXPECT_EQ(file->name(), uri);
    std::string bytes;
    EXPECT_TRUE(Read(*file, 3, 4, &bytes).ok());
    EXPECT_EQ(bytes, "3456");
    EXPECT_TRUE(Read(*file, 10, 0).ok());
    EXPECT_EQ(ReadWhole(*file, 10).value(), "0123456789");
    EXPECT_EQ(ReadWhole(*file, 9).status().code(),
              absl::StatusCode::kResourceExhausted);
  }
}

TEST_F(LocalStorage, ReadsPastTheEndNameFileOffsetAndWish) {
  const auto file = Opened(dir_.Write("x", "0123456789"));
  for (const auto& [offset, size] :
       {std::pair<uint64_t, uint64_t>{8, 3}, {11, 0}, {~0ull, 2}, {0, 11}}) {
    const absl::Status status = Read(*file, offset, size);
    EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange) << offset;
    EXPECT_THAT(std::string(Message(status)), HasSubstr(file->name()));
    EXPECT_THAT(std::string(Message(status)),
                HasSubstr(fmt::format("{} bytes at {}", size, offset)));
  }
}

TEST_F(LocalStorage, SeveralRangesAreFilledInAnyOrder) {
  const auto file = Opened(dir_.Write("x", "0123456789"));
  std::string a(2, '?'), b(3, '?'), c;
  const auto span = [](std::string& s) {
    return std::as_writable_bytes(std::span(s.data(), s.size()));
  };
  EXPECT_TRUE(file->ReadRanges(std::vector<ReadRange>{
                                   {7, span(a)}, {0, span(b)}, {10, span(c)}})
                  .ok());
  EXPECT_EQ(a, "78");
  EXPECT_EQ(b, "012");
  EXPECT_TRUE(file->ReadRanges({}).ok());
}

TEST_F(LocalStorage, AChangeInPlaceIsAnErrorThatNamesBothIdentities) {
  const std::string path = dir_.Write("x", "0123456789");
  const auto file = Opened(path);
  const std::string before = file->identity();
  dir_.Write("x", "01234");
  for (const uint64_t size : {5, 10}) {
    const absl::Status status = Read(*file, 0, size);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(Message(status)), HasSubstr(path));
    EXPECT_THAT(std::string(Message(status)), HasSubstr(before));
    EXPECT_THAT(std::string(Message(status)), HasSubstr("is size=5 "));
  }
}

TEST_F(LocalStorage, ANewFileUnderTheNameChangesNothingForTheOpenedOne) {
  const std::string path = dir_.Write("x", "0123456789");
  const auto file = Opened(path);
  fs::rename(dir_.Write("new", "abc"), path);
  EXPECT_EQ(ReadWhole(*file, 100).value(), "0123456789");
  const auto again = storage_->Open(path, file->identity());
  EXPECT_EQ(again.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Message(again.status())),
              HasSubstr(file->identity()));
  EXPECT_TRUE(storage_->Open(path, storage_->Stat(path)->identity).ok());
}

TEST_F(LocalStorage, WhatIsNoIdentityIsRefused) {
  const std::string path = dir_.Write("x", "0");
  EXPECT_EQ(storage_->Open(path, "garbage").status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(LocalStorage, WhatIsNoFileIsRefused) {
  const std::string missing = dir_.path() + "/none";
  EXPECT_EQ(storage_->Open(missing).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(storage_->Stat(missing).status().code(),
            absl::StatusCode::kNotFound);
  const std::string pipe = dir_.path() + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {dir_.path(), pipe}) {
    EXPECT_EQ(storage_->Open(path).status().code(),
              absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(storage_->Stat(path).status().code(),
              absl::StatusCode::kFailedPrecondition);
  }
  EXPECT_EQ(Message(storage_->Open(pipe).status()),
            pipe + ": a named pipe, want a file");
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  const std::string socket_path = dir_.path() + "/s";
  ASSERT_LT(socket_path.size(), sizeof address.sun_path);
  socket_path.copy(address.sun_path, socket_path.size());
  const Fd listener(socket(AF_UNIX, SOCK_STREAM, 0));
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&address),
                 sizeof address),
            0);
  const absl::Status no_file = storage_->Open(socket_path).status();
  EXPECT_EQ(Message(no_file), socket_path + ": a socket, want a file");
  EXPECT_EQ(no_file.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Message(storage_->Stat(dir_.path()).status()),
            dir_.path() + ": a directory, want a file");
  EXPECT_EQ(Message(storage_->StatFolder(pipe).status()),
            pipe + ": a named pipe, want a file or a directory");
  EXPECT_EQ(Message(storage_->List(pipe).status()),
            pipe + ": a named pipe, want a file or a directory");
  EXPECT_EQ(storage_->List(pipe).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(LocalStorage, AListingIsDeepAndInByteOrder) {
  dir_.Write("b/z", "1");
  dir_.Write("b.txt", "22");
  dir_.Write("a/1/deep", "333");
  dir_.Write(".hidden", "");
  fs::create_directory(dir_.path() + "/empty");
  EXPECT_THAT(Names(dir_.path()),
              ElementsAre(".hidden", "a/1/deep", "b.txt", "b/z"));
  EXPECT_THAT(Names(dir_.path() + "/"),
              ElementsAre(".hidden", "a/1/deep", "b.txt", "b/z"));
  const auto list = storage_->List(dir_.path());
  ASSERT_TRUE(list.ok()) << list.status();
  for (const StoredObject& each : *list) {
    const auto file =
        storage_->Open(JoinUri(dir_.path(), each.name), each.identity);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ((*file)->size(), each.size);
  }
}

TEST_F(LocalStorage, LinksAreFollowedButNotInCircles) {
  dir_.Write("real/x", "1");
  fs::create_directory_symlink(dir_.path() + "/real", dir_.path() + "/link");
  fs::create_directory_symlink(dir_.path(), dir_.path() + "/real/up");
  fs::create_symlink("nowhere", dir_.path() + "/broken");
  EXPECT_THAT(Names(dir_.path()), ElementsAre("link/x", "real/x"));
}

TEST_F(LocalStorage, AListingEndsAtItsBounds) {
  for (int i = 0; i < 5; ++i) dir_.Write(fmt::format("d/{}", i), "");
  dir_.Write("e/f/g/h", "");
  storage_ = With({.max_list_entries = 5});
  const auto many = storage_->List(dir_.path());
  EXPECT_EQ(many.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(Message(many.status())),
              HasSubstr("max_list_entries"));
  EXPECT_EQ(Names(dir_.path() + "/d").size(), 5);
  storage_ = With({.max_list_depth = 3});
  EXPECT_EQ(storage_->List(dir_.path()).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Names(dir_.path() + "/e").size(), 1);
}

TEST_F(LocalStorage, AListingCanBeCancelled) {
  dir_.Write("x", "");
  const std::atomic<bool> cancelled = true;
  EXPECT_EQ(storage_->List(dir_.path(), &cancelled).status().code(),
            absl::StatusCode::kCancelled);
}

TEST_F(LocalStorage, WhatIsNoDirectoryCannotBeListed) {
  EXPECT_EQ(storage_->List(dir_.path() + "/none").status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(storage_->List(dir_.Write("x", "")).status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(LocalStorage, BoundsOutOfRangeAreNamed) {
  const auto storage = Storage::Create({.max_tries = 0});
  EXPECT_EQ(storage.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(storage.status())), HasSubstr("max_tries"));
}

}  // namespace
}  // namespace leat::worker
