// SPDX-License-Identifier: Apache-2.0
//
// The workers' readers read back the output of `leat convert`.
#include <lmdb.h>
#include <sys/fsuid.h>
#include <sys/resource.h>
#include <unistd.h>
#include <zlib.h>

#include <csignal>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "client/cli/base/exit_code.h"
#include "client/cli/convert/image_encoder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli/fake.h"
#include "tests/support/test_data.h"
#include "tests/worker/temp_dir.h"
#include "worker/image/codecs/codec.h"
#include "worker/source/source.h"

namespace leat::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Texts = std::vector<std::string>;

std::string BigEndian(uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) {
    bytes += static_cast<char>(value >> shift);
  }
  return bytes;
}

std::string IdxOf(uint8_t type, const std::vector<uint32_t>& sizes,
                  const std::string& elements) {
  std::string file = {0, 0, static_cast<char>(type),
                      static_cast<char>(sizes.size())};
  for (const uint32_t size : sizes) file += BigEndian(size);
  return file + elements;
}

// Makes 16 x 8 pixels with every value of a byte, shifted by the record.
std::string Pixels(uint32_t records) {
  std::string pixels;
  for (uint32_t i = 0; i < records * 128; ++i) {
    pixels += static_cast<char>(i * 37 + i / 128);
  }
  return pixels;
}

std::string Bytes(const worker::StoredField& field) {
  return {reinterpret_cast<const char*>(field.bytes.data()),
          field.bytes.size()};
}

int64_t Number(const worker::StoredField& field) {
  int64_t number = 0;
  std::memcpy(&number, field.bytes.data(), field.bytes.size());
  return number;
}

std::string Decoded(const std::string& png) {
  const auto file = std::as_bytes(std::span(png));
  const worker::Codec* codec = worker::FindCodec(file);
  if (codec == nullptr) return "no image";
  const auto header = codec->read_header(file, {});
  if (!header.ok()) return std::string(Message(header.status()));
  std::string pixels(header->bytes(), '\0');
  const absl::Status status = codec->decode(
      file, *header, {}, reinterpret_cast<uint8_t*>(pixels.data()));
  return status.ok() ? pixels : std::string(Message(status));
}

struct Sample {
  std::string image;
  int64_t label;
  friend bool operator==(const Sample&, const Sample&) = default;
};

class Converting : public ::testing::Test {
 protected:
  // Returns "" for success, or the error.
  std::string Run(Texts args) {
    args.insert(args.begin(), "convert");
    exit_code_ = shell_.Run(args);
    return exit_code_ == kGood ? "" : shell_.err;
  }
  // The same if no file may grow beyond `bytes`.
  std::string RunBounded(rlim_t bytes, const Texts& args) {
    rlimit was{};
    getrlimit(RLIMIT_FSIZE, &was);
    const rlimit bound = {bytes, was.rlim_max};
    const auto before = std::signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &bound);
    const std::string said = Run(args);
    setrlimit(RLIMIT_FSIZE, &was);
    std::signal(SIGXFSZ, before);
    return said;
  }
  std::string Path(const std::string& name) const {
    return dir_.path() + "/" + name;
  }
  // Returns samples as the reader gives them.
  static std::vector<Sample> Read(const Node& reader) {
    std::vector<Sample> samples;
    const auto index = worker::BuildIndex(reader, {});
    EXPECT_TRUE(index.ok()) << index.status();
    if (!index.ok()) return samples;
    const auto source = worker::OpenSource(reader, index->blob, {});
    EXPECT_TRUE(source.ok()) << source.status();
    for (uint64_t i = 0; source.ok() && i < (*source)->num_samples(); ++i) {
      const auto stored = (*source)->Read(i);
      EXPECT_TRUE(stored.ok()) << stored.status();
      if (!stored.ok()) break;
      samples.push_back({Bytes(stored->fields[0]), Number(stored->fields[1])});
    }
    return samples;
  }
  static std::vector<Sample> ReadCaffe2(const std::string& path) {
    return Read({"readers.caffe2", {}, {{"path", Texts{path}}}});
  }
  static std::vector<Sample> ReadTfrecord(const std::string& path) {
    return Read({"readers.tfrecord",
                 {},
                 {{"paths", Texts{path}},
                  {"features", Texts{"image/encoded", "image/class/label"}},
                  {"types", Texts{"encoded", "int64"}},
                  {"index", Texts{}}}});
  }
  static std::vector<Sample> ReadWebdataset(const std::string& path) {
    return Read({"readers.webdataset",
                 {},
                 {{"paths", Texts{path}},
                  {"ext", Texts{"jpg;png", "cls"}},
                  {"types", Texts{"encoded", "int64"}},
                  {"index", Texts{}},
                  {"missing", std::string("error")}}});
  }
  // Makes a folder of images that only have their first bytes.
  std::string Photos() {
    const std::string jpeg = "\xff\xd8\xff\xe0", png = "\x89PNG\r\n\x1a\n";
    dir_.Write("photos/b/2.jpg", jpeg + "two");
    dir_.Write("photos/b/10.JPEG", jpeg + std::string(700, 'x'));
    dir_.Write("photos/b/deep/er/1.png", png + "one");
    dir_.Write("photos/b/notes.txt", "no image");
    dir_.Write("photos/b/.hidden.jpg", "passed over");
    dir_.Write("photos/a/z.jpg", jpeg + std::string(5000, 'z'));
    fs::create_directories(Path("photos/aa-empty"));
    dir_.Write("photos/c/only.jpg", jpeg);
    return Path("photos");
  }
  static std::vector<Sample> ReadFolder(const std::string& path) {
    return Read({"readers.image_folder", {}, {{"path", path}}});
  }
  Texts Names(const std::string& folder) const {
    Texts names;
    for (const auto& entry : fs::directory_iterator(Path(folder))) {
      names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  worker::TempDir dir_;
  Shell shell_;
  int exit_code_ = 0;
};

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

TEST_F(Converting, AnExampleHasTheNamesThatOthersUse) {
  ASSERT_EQ(Run({Photos(), Path("out"), "--to", "tfrecord"}), "");
  const auto texts = [&](const std::string& feature) {
    Texts found;
    for (const Sample& sample :
         Read({"readers.tfrecord",
               {},
               {{"paths", Texts{Path("out")}},
                {"features", Texts{feature, "image/class/label"}},
                {"types", Texts{"bytes", "int64"}},
                {"index", Texts{}}}})) {
      found.push_back(sample.image);
    }
    return found;
  };
  EXPECT_THAT(texts("image/class/text"), ElementsAre("a", "b", "b", "b", "c"));
  EXPECT_THAT(texts("image/format"),
              ElementsAre("JPEG", "JPEG", "JPEG", "PNG", "JPEG"));
  EXPECT_THAT(texts("image/filename"),
              ElementsAre("a/z.jpg", "b/10.JPEG", "b/2.jpg", "b/deep/er/1.png",
                          "c/only.jpg"));
}

TEST_F(Converting, NoFileIsLargerThanTheShardSizeUnlessOneRecordIs) {
  const std::string photos = Photos();
  const std::vector<Sample> expected = ReadFolder(photos);
  for (const char* form : {"tfrecord", "webdataset"}) {
    const std::string out = Path(form);
    ASSERT_EQ(Run({photos, out, "--to", form, "--shard-size", "4KiB"}), "");
    Texts large;
    for (const auto& entry : fs::directory_iterator(out)) {
      if (entry.file_size() > 4096) large.push_back(entry.path().filename());
    }
    ASSERT_EQ(large.size(), 1u) << form;  // a/z.jpg's
    EXPECT_THAT(large[0], HasSubstr("part-00000."));
    EXPECT_GE(Names(form).size(), 3u) << form;
    EXPECT_EQ(form == std::string("tfrecord") ? ReadTfrecord(out)
                                              : ReadWebdataset(out),
              expected);
  }
}

TEST_F(Converting, IdxImagesKeepEveryPixel) {
  const std::string pixels = Pixels(20);
  std::string labels;
  for (int i = 0; i < 20; ++i) labels += static_cast<char>(i * 13);
  const std::string images =
      dir_.Write("train-images-idx3-ubyte", IdxOf(8, {20, 8, 16}, pixels));
  dir_.Write("train-labels-idx1-ubyte", IdxOf(8, {20}, labels));
  for (const char* form : {"caffe2", "tfrecord", "webdataset"}) {
    ASSERT_EQ(Run({images, Path(form), "--to", form}), "");
    const auto samples = form == std::string("caffe2") ? ReadCaffe2(Path(form))
                         : form == std::string("tfrecord")
                             ? ReadTfrecord(Path(form))
                             : ReadWebdataset(Path(form));
    ASSERT_EQ(samples.size(), 20u) << form;
    for (size_t i = 0; i < samples.size(); ++i) {
      EXPECT_EQ(Decoded(samples[i].image), pixels.substr(i * 128, 128));
      EXPECT_EQ(samples[i].label, static_cast<uint8_t>(labels[i]));
    }
  }
}

TEST_F(Converting, Int32LabelsAndJpegImagesCanBeHad) {
  const std::string images = dir_.Write("i", IdxOf(8, {2, 8, 16}, Pixels(2)));
  const std::string labels =
      dir_.Write("l", IdxOf(12, {2}, BigEndian(70'000) + BigEndian(-5u)));
  ASSERT_EQ(Run({images, Path("out"), "--to", "caffe2", "--labels", labels,
                 "--encoding", "jpeg", "--quality", "50"}),
            "");
  const auto samples = ReadCaffe2(Path("out"));
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_EQ(ImageExtension(samples[0].image), "jpg");
  EXPECT_EQ(samples[0].label, 70'000);
  EXPECT_EQ(static_cast<int32_t>(samples[1].label), -5);
}

TEST_F(Converting, KeysAreThoseOfCaffe2sTools) {
  ASSERT_EQ(Run({Photos(), Path("out"), "--to", "caffe2"}), "");
  MDB_env* env = nullptr;
  MDB_txn* txn = nullptr;
  MDB_dbi dbi;
  MDB_cursor* cursor = nullptr;
  ASSERT_EQ(mdb_env_create(&env), 0);
  ASSERT_EQ(mdb_env_open(env, Path("out").c_str(), MDB_RDONLY, 0600), 0);
  ASSERT_EQ(mdb_txn_begin(env, nullptr, MDB_RDONLY, &txn), 0);
  ASSERT_EQ(mdb_dbi_open(txn, nullptr, 0, &dbi), 0);
  ASSERT_EQ(mdb_cursor_open(txn, dbi, &cursor), 0);
  Texts keys;
  MDB_val key, value;
  while (mdb_cursor_get(cursor, &key, &value, MDB_NEXT) == 0) {
    keys.emplace_back(static_cast<const char*>(key.mv_data), key.mv_size);
  }
  mdb_cursor_close(cursor);
  mdb_txn_abort(txn);
  mdb_env_close(env);
  EXPECT_THAT(keys, ElementsAre("00000000", "00000001", "00000002", "00000003",
                                "00000004"));
}

TEST_F(Converting, ALargeLmdbGrowsOverManyTransactions) {
  const std::string jpeg = "\xff\xd8\xff\xe0";
  for (int i = 0; i < 60; ++i) {
    dir_.Write(fmt::format("big/{:02}.jpg", i),
               jpeg + std::string(static_cast<size_t>(900'000 + i), 'a'));
  }
  dir_.Write("big/whole.jpg", jpeg + std::string(40 << 20, 'b'));
  ASSERT_EQ(Run({Path("big"), Path("out"), "--to", "caffe2"}), "");
  const auto samples = ReadCaffe2(Path("out"));
  ASSERT_EQ(samples.size(), 61u);
  EXPECT_EQ(samples[59].image.size(), 900'063u);
  EXPECT_EQ(samples[60].image.size(), 4u + (40 << 20));
}

TEST_F(Converting, WhatExistsIsReplacedOnlyByForceAndOnlyIfItIsOurs) {
  const std::string photos = Photos(), out = Path("out");
  fs::create_directories(out);  // an empty folder may exist
  ASSERT_EQ(Run({photos, out, "--to", "tfrecord"}), "");
  EXPECT_THAT(Run({photos, out, "--to", "webdataset"}),
              HasSubstr("out: exists; --force replaces it"));
  EXPECT_EQ(exit_code_, kFailed);
  EXPECT_EQ(ReadTfrecord(out).size(), 5u);
  ASSERT_EQ(Run({photos, out, "--to", "webdataset", "--force"}), "");
  EXPECT_THAT(Names("out"), ElementsAre("classes.txt", "part-00000.tar"));
  dir_.Write("out/thesis.tex", "years of work");
  EXPECT_THAT(Run({photos, out, "--to", "webdataset", "--force"}),
              HasSubstr("holds thesis.tex, which leat convert did not write"));
  EXPECT_EQ(Names("out").size(), 3u);
  const std::string file = dir_.Write("file", "");
  EXPECT_THAT(Run({photos, file, "--to", "caffe2", "--force"}),
              HasSubstr("is no folder"));
  EXPECT_THAT(Names(""), ElementsAre("file", "out", "photos"));
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
  fs::create_symlink("nowhere", Path("photos/c/gone.jpg"));
  EXPECT_THAT(Run({Path("photos"), Path("out"), "--to", "tfrecord"}),
              HasSubstr("photos/c/gone.jpg: No such file"));
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
  fs::current_path(before);
  EXPECT_THAT(Names("here"), IsEmpty());
}

TEST_F(Converting, WhereNobodyMayWriteTheFolderIsNamed) {
  const std::string photos = Photos();
  fs::create_directories(Path("closed/out"));
  fs::permissions(Path("closed"), fs::perms(0555));
  // Root may write everywhere.
  fs::permissions(dir_.path(), fs::perms(0755));
  const bool root = geteuid() == 0;
  if (root) setfsuid(65534);
  const std::string made = Run({photos, Path("closed/new"), "--to", "caffe2"});
  const std::string empty = Run({photos, Path("closed/out"), "--to", "caffe2"});
  const std::string deep = Run({photos, Path("closed/a/b"), "--to", "caffe2"});
  if (root) setfsuid(0);
  fs::permissions(Path("closed"), fs::perms(0755));
  EXPECT_THAT(made, HasSubstr("/closed/new: new.partial-"));
  EXPECT_THAT(made, HasSubstr("cannot be made beside it, where it is written: "
                              "Permission denied"));
  EXPECT_THAT(empty, HasSubstr("/closed/out: out.partial-"));
  EXPECT_THAT(deep, HasSubstr("/closed/a: Permission denied"));
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

class ConvertingOf : public Converting,
                     public ::testing::WithParamInterface<TestData> {};
INSTANTIATE_TEST_SUITE_P(Data, ConvertingOf, AllTestData(), TestDataName);

// tests/e2e/readers_test.py takes the training part.
TEST_P(ConvertingOf, MnistKeepsThePixelsOfItsIdxFiles) {
  const fs::path mnist = TestDataFolder(GetParam(), "mnist");
  if (mnist.empty()) GTEST_SKIP() << NoTestData(GetParam(), "mnist");
  for (const char* part : {"images-idx3", "labels-idx1"}) {
    const std::string name = fmt::format("t10k-{}-ubyte.gz", part);
    fs::create_directories(Path("mnist"));
    fs::create_symlink(fs::absolute(mnist / name), Path("mnist/" + name));
  }
  ASSERT_EQ(Run({Path("mnist"), Path("db"), "--to", "caffe2"}), "");
  EXPECT_THAT(Names("db"), ElementsAre("testing"));
  const auto samples = ReadCaffe2(Path("db/testing"));
  const auto expected =
      Read({"readers.idx",
            {},
            {{"images", Path("mnist/t10k-images-idx3-ubyte.gz")},
             {"labels", Path("mnist/t10k-labels-idx1-ubyte.gz")}}});
  ASSERT_EQ(samples.size(), 10'000u);
  ASSERT_EQ(expected.size(), 10'000u);
  size_t different = 0;
  for (size_t i = 0; i < samples.size(); ++i) {
    different += Decoded(samples[i].image) != expected[i].image ||
                 samples[i].label != expected[i].label;
  }
  EXPECT_EQ(different, 0u);
}

}  // namespace
}  // namespace leat::cli
