// SPDX-License-Identifier: Apache-2.0
#include "client/cli/convert/convert.h"

#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli/convert/converting.h"

namespace leat::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(Converting, AFolderHasTheSameSamplesInTheSameOrderInEveryForm) {
  const std::string photos = Photos();
  const std::vector<Sample> expected = ReadFolder(photos);
  ASSERT_EQ(expected.size(), 5u);
  EXPECT_EQ(expected.back().label, 3);  // the class without images counts
  ASSERT_EQ(Run({photos, Path("lmdb"), "--to", "caffe2"}), "");
  EXPECT_EQ(shell_.out, "");
  EXPECT_THAT(shell_.err, HasSubstr("lmdb: 5 records, 2 files, "));
  EXPECT_EQ(ReadCaffe2(Path("lmdb")), expected);
  ASSERT_EQ(Run({photos + "/", Path("tf/"), "--to", "tfrecord"}), "");
  EXPECT_EQ(ReadTfrecord(Path("tf")), expected);
  ASSERT_EQ(Run({photos, Path("some/where/tar"), "--to", "webdataset"}), "");
  EXPECT_EQ(ReadWebdataset(Path("some/where/tar")), expected);
  EXPECT_THAT(Names("some/where/tar"),
              ElementsAre("classes.txt", "part-00000.tar"));
  std::ifstream classes(Path("tf/classes.txt"));
  const std::string names{std::istreambuf_iterator<char>(classes), {}};
  EXPECT_EQ(names, "a\naa-empty\nb\nc\n");
}

TEST_F(Converting, AFolderOfImagesWithoutClassesIsOneClass) {
  dir_.Write("flat/b.jpg", "\xff\xd8\xff\xe0 b");
  dir_.Write("flat/a.jpg", "\xff\xd8\xff\xe0 a");
  fs::create_directories(Path("flat/empty"));
  ASSERT_EQ(Run({Path("flat"), Path("out"), "--to", "tfrecord"}), "");
  EXPECT_EQ(ReadTfrecord(Path("out")), ReadFolder(Path("flat")));
}

TEST_F(Converting, AFailureNamesFileAndRecordAndLeavesNothing) {
  const std::string labels = dir_.Write("l", IdxOf(8, {3}, "\1\2\3"));
  const auto error = [&](const std::string& images) {
    return Run({dir_.Write("i", images), Path("out"), "--to", "caffe2",
                "--labels", labels});
  };
  const std::string whole = IdxOf(8, {3, 8, 16}, Pixels(3));
  EXPECT_THAT(error(whole.substr(0, whole.size() - 1)),
              HasSubstr("/i: record 2: 127 of 128 bytes: the file ends"));
  EXPECT_THAT(error(whole + "x"),
              HasSubstr("/i: something follows the 3 records"));
  EXPECT_THAT(error("JFIF and so on"), HasSubstr("/i: no idx file"));
  EXPECT_THAT(error(""), HasSubstr("/i: its head"));
  EXPECT_THAT(error(IdxOf(8, {2, 8, 16}, Pixels(2))), HasSubstr("3 labels"));
  EXPECT_THAT(error(IdxOf(13, {3, 8, 16}, Pixels(12))),
              HasSubstr("of type 13; want images"));
  EXPECT_THAT(error(IdxOf(8, {3, 0x10000, 0x10000}, "")),
              HasSubstr("want images"));
  // A gzipped file that was cut off, or damaged.
  const std::string gz = Path("i.gz");
  gzFile file = gzopen(gz.c_str(), "wb");
  gzwrite(file, whole.data(), static_cast<unsigned>(whole.size()));
  gzclose(file);
  fs::resize_file(gz, fs::file_size(gz) - 9);
  EXPECT_THAT(Run({gz, Path("out"), "--to", "caffe2", "--labels", labels}),
              HasSubstr("/i.gz: its end: "));
  Photos();
  dir_.Write("photos/c/wrong.jpg", "<html>404</html>");
  EXPECT_THAT(Run({Path("photos"), Path("out"), "--to", "caffe2"}),
              HasSubstr("photos/c/wrong.jpg: 16 bytes that begin as no image"));
  fs::remove(Path("photos/c/wrong.jpg"));
  dir_.Write("photos/c/short.webp", "RIFF");
  EXPECT_THAT(Run({Path("photos"), Path("out"), "--to", "caffe2"}),
              HasSubstr("photos/c/short.webp: 4 bytes that begin as no image"));
  fs::remove(Path("photos/c/short.webp"));
  fs::create_symlink("nowhere", Path("photos/c/gone.jpg"));
  EXPECT_THAT(Run({Path("photos"), Path("out"), "--to", "tfrecord"}),
              HasSubstr("photos/c/gone.jpg: cannot be read: No such file"));
  EXPECT_THAT(Names(""), ElementsAre("i", "i.gz", "l", "photos"));
}

TEST_F(Converting, WhatCannotBeWrittenSaysWhy) {
  const std::string photos = Photos(), out = Path("out");
  dir_.Write("photos/c/big.jpg",
             "\xff\xd8\xff\xe0" + std::string(400'000, 'x'));
  const std::pair<const char*, const char*> files[] = {
      {"tfrecord", "/part-00000.tfrecord: cannot write it: File too large"},
      {"webdataset", "/part-00000.tar: cannot write it: File too large"},
      {"caffe2", "/data.mdb: record 6: File too large"}};
  for (const auto& [to, error] : files) {
    EXPECT_THAT(RunBounded(100'000, {photos, out, "--to", to}),
                HasSubstr(error));
    EXPECT_EQ(exit_code_, kFailed);
  }
  EXPECT_THAT(RunBounded(0, {photos, out, "--to", "caffe2"}),
              HasSubstr("/classes.txt: cannot be written: File too large"));
  EXPECT_THAT(Names(""), ElementsAre("photos"));  // nothing is left over

  const std::string file = dir_.Write("file", "");
  EXPECT_THAT(Run({photos, file + "/out", "--to", "tfrecord"}),
              HasSubstr("/file: Not a directory"));
  const std::string mine = Path("mine");
  fs::create_directories(mine + "/part-00000.tar/deep");
  EXPECT_THAT(Run({photos, mine, "--to", "tfrecord", "--force"}),
              HasSubstr("/mine: holds part-00000.tar, which leat convert did "
                        "not write"));
  EXPECT_THAT(Run({photos, Path(std::string(300, 'x')), "--to", "tfrecord"}),
              HasSubstr("x: File name too long"));
  // The current folder is not replaced, since this would go unnoticed.
  const fs::path before = fs::current_path();
  fs::create_directories(Path("here"));
  fs::current_path(Path("here"));
  for (const char* here : {".", "./", "../here", "x/.."})
    EXPECT_THAT(Run({photos, here, "--to", "tfrecord"}),
                HasSubstr("is the folder that you are in"));
  EXPECT_THAT(Names("here"), IsEmpty());
  fs::remove(Path("here"));
  EXPECT_THAT(Run({photos, "out", "--to", "tfrecord"}),
              HasSubstr("out: No such file or directory"));
  fs::current_path(before);
}

TEST_F(Converting, WrongUseIsSaid) {
  const std::string photos = Photos(), out = Path("out");
  EXPECT_THAT(Run({photos, out}), HasSubstr("--to is required"));
  EXPECT_THAT(Run({photos, out, "--to", "zarr"}), HasSubstr("zarr"));
  EXPECT_EQ(exit_code_, kWrongUse);
  EXPECT_THAT(Run({photos, out, "--to", "caffe2", "--shard-size", "1GiB"}),
              HasSubstr("an LMDB is one file"));
  EXPECT_EQ(exit_code_, kWrongUse);
  EXPECT_THAT(Run({photos, out, "--to", "tfrecord", "--shard-size", "0"}),
              HasSubstr("--shard-size"));
  EXPECT_THAT(Run({photos, out, "--to", "tfrecord", "--encoding", "jpeg"}),
              HasSubstr("taken as they are"));
  EXPECT_THAT(Run({photos, photos + "/new/out", "--to", "tfrecord"}),
              HasSubstr("photos/new/out: is inside the input folder "));
  EXPECT_EQ(exit_code_, kWrongUse);
  EXPECT_THAT(Run({photos, "", "--to", "tfrecord"}),
              HasSubstr("OUTPUT is empty"));
  EXPECT_THAT(Run({Path("gone"), out, "--to", "tfrecord"}),
              HasSubstr("gone: no such file"));
  EXPECT_EQ(exit_code_, kNotFound);
  fs::create_symlink("round", Path("round"));
  EXPECT_THAT(Run({Path("round"), out, "--to", "tfrecord"}),
              HasSubstr("round: Too many levels of symbolic links"));
  EXPECT_THAT(Run({"/dev/null", out, "--to", "tfrecord"}),
              HasSubstr("/dev/null: a character device, want a folder of "
                        "images or an idx file"));
  EXPECT_EQ(exit_code_, kWrongUse);
  fs::create_directories(Path("none"));
  EXPECT_THAT(Run({Path("none"), out, "--to", "tfrecord"}),
              HasSubstr("none: no images"));
  const std::string idx = dir_.Write("t10k-images-idx3-ubyte", "");
  EXPECT_THAT(Run({idx, out, "--to", "tfrecord"}),
              HasSubstr("t10k-labels-idx1-ubyte"));
  const std::string other = dir_.Write("images", "");
  EXPECT_THAT(Run({other, out, "--to", "tfrecord"}), HasSubstr("--labels"));
  EXPECT_THAT(Run({idx, out, "--to", "tfrecord", "--quality", "90"}),
              HasSubstr("t10k-labels"));
  EXPECT_FALSE(fs::exists(out));
}

}  // namespace
}  // namespace leat::cli
