// SPDX-License-Identifier: Apache-2.0
//
// Runs the program leat_make_photos as users do.
#include <stdio.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/temp_dir.h"

namespace leat::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using worker::TempDir;

struct Done {
  int code;
  std::string output;
};

Done Shell(const std::string& command) {
  FILE* pipe = popen(fmt::format("exec 2>&1; {}", command).c_str(), "r");
  Done done = {};
  char text[4096];
  while (const size_t size = fread(text, 1, sizeof text, pipe))
    done.output.append(text, size);
  const int status = pclose(pipe);
  done.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return done;
}

Done Make(const std::string& words) {
  return Shell(fmt::format("'{}' {}", LEAT_MAKE_PHOTOS, words));
}

// Returns the files' bytes, by their paths in the folder.
std::map<std::string, std::string> Files(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    files[std::filesystem::relative(entry.path(), folder)] =
        std::string(std::istreambuf_iterator<char>(file), {});
  }
  return files;
}

TEST(MakePhotosTest, ThreadsAndTheCountChangeNoPhoto) {
  const TempDir dir;
  const std::string one = dir.path() + "/with a space", two = dir.path() + "/2";
  ASSERT_EQ(Make(fmt::format("'{}' 30 --max-side 64 --threads 1", one)).code,
            0);
  ASSERT_EQ(Make(fmt::format("'{}' 45 --max-side 64 --threads 7", two)).code,
            0);
  const auto fewer = Files(one), more = Files(two);
  EXPECT_THAT(fewer, SizeIs(30));
  EXPECT_THAT(more, SizeIs(45));
  for (const auto& [path, bytes] : fewer) {
    ASSERT_TRUE(more.contains(path)) << path;
    EXPECT_TRUE(more.at(path) == bytes) << path;
  }
}

TEST(MakePhotosTest, ClassesAreFoldersOfEquallyManyPhotos) {
  const TempDir dir;
  ASSERT_EQ(Make(dir.path() + " 375 --classes 125 --max-side 16").code, 0);
  std::map<std::string, int> classes;
  for (const auto& [path, bytes] : Files(dir.path()))
    ++classes[std::filesystem::path(path).parent_path()];
  EXPECT_THAT(classes, SizeIs(125));
  for (const auto& [name, count] : classes) EXPECT_EQ(count, 3) << name;
}

TEST(MakePhotosTest, WrongWordsAreNamed) {
  const TempDir dir;
  const std::string folder = dir.path() + "/photos";
  const std::pair<std::string, std::string> kWrong[] = {
      {"", "want FOLDER and COUNT"},
      {folder, "want FOLDER and COUNT"},
      {"'' 3", "unexpected ''"},
      {folder + " 0", "COUNT 0: want 1 to 1000000"},
      {folder + " 12x", "COUNT 12x: want 1 to 1000000"},
      {folder + " 99999999999999999999", "want 1 to 1000000"},
      {folder + " 3 640", "unexpected '640'"},
      {folder + " 3 --max-side 15", "--max-side 15: want 16 to 8192"},
      {folder + " 3 --classes 1001", "--classes 1001: want 1 to 1000"},
      {folder + " 3 --seed -1", "--seed -1: want 0 to 4294967295"},
      {folder + " 3 --seed", "--seed: want a value"},
      {folder + " 3 --quality 9", "unknown option --quality"},
  };
  for (const auto& [words, message] : kWrong) {
    const Done done = Make(words);
    EXPECT_EQ(done.code, 2) << words;
    EXPECT_THAT(done.output, HasSubstr(message)) << words;
  }
  EXPECT_FALSE(std::filesystem::exists(folder));
}

TEST(MakePhotosTest, AFolderThatCannotBeMadeIsNamed) {
  const TempDir dir;
  const std::string inside = dir.Write("file", "") + "/photos";
  const Done done = Make(inside + " 3");
  EXPECT_EQ(done.code, 1);
  EXPECT_THAT(done.output, HasSubstr(inside));
}

// A limit on the size of files simulates a full disk.
TEST(MakePhotosTest, WithoutRoomNoHalfPhotoIsLeft) {
  const TempDir dir;
  const Done done = Shell(
      fmt::format("trap '' XFSZ; ulimit -f 4; exec '{}' {} 20 --threads 2",
                  LEAT_MAKE_PHOTOS, dir.path()));
  EXPECT_EQ(done.code, 1);
  EXPECT_THAT(done.output, HasSubstr(dir.path()));
  EXPECT_THAT(done.output,
              HasSubstr(".jpg: cannot be written: File too large"));
  EXPECT_THAT(Files(dir.path()), IsEmpty());
}

}  // namespace
}  // namespace leat::testing
