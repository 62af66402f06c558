// SPDX-License-Identifier: Apache-2.0
#include "worker/source/arrays/numpy.h"

#include <sys/stat.h>

#include <filesystem>
#include <numeric>

#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/job/records_alone.h"
#include "tests/worker/source/arrays/npy_maker.h"
#include "tests/worker/source/loader_support.h"
#include "tests/worker/temp_dir.h"

namespace leat::worker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
namespace fs = std::filesystem;

class NumpyTest : public ::testing::Test {
 protected:
  static Node Files(const std::vector<std::string>& files) {
    return {.op = "readers.numpy", .inputs = {}, .args = {{"files", files}}};
  }
  static Node One(const char* name, const std::string& value) {
    return {.op = "readers.numpy", .inputs = {}, .args = {{name, value}}};
  }
  BuiltIndex Index(const Node& reader) {
    absl::StatusOr<BuiltIndex> index = BuildIndex(reader, limits_);
    EXPECT_TRUE(index.ok()) << index.status();
    return index.ok() ? *std::move(index) : BuiltIndex();
  }
  std::unique_ptr<Source> Open(const Node& reader) {
    auto source = OpenSource(reader, Index(reader).blob, limits_);
    EXPECT_TRUE(source.ok()) << source.status();
    return *std::move(source);
  }
  absl::Status IndexError(const Node& reader) {
    return BuildIndex(reader, limits_).status();
  }
  // Returns the error of indexing a file of these bytes.
  absl::Status ErrorOf(const std::string& bytes) {
    return IndexError(Files({dir_.Write("bad.npy", bytes)}));
  }

  TempDir dir_;
  SourceLimits limits_;
};

TEST_F(NumpyTest, FilesAreSamplesInTheGivenOrder) {
  const std::string a = dir_.Write(
      "a.npy", Npy("<i4", "(2, 2)", BytesOfValues<int>({1, 2, 3, 4})));
  const std::string b = dir_.Write(
      "b.npy", Npy("<i4", "(2, 2)", BytesOfValues<int>({5, 6, 7, 8})));
  const Node reader = Files({b, a});
  const BuiltIndex index = Index(reader);
  EXPECT_EQ(index.shards.num_samples(), 2u);
  EXPECT_THAT(
      index.types,
      ElementsAre(ValueType{ValueType::Kind::kTensor, DType::kInt32, {2, 2}}));
  const auto source = Open(reader);
  EXPECT_EQ(source->fingerprint(), index.fingerprint);
  const auto sample = source->Read(0);
  ASSERT_TRUE(sample.ok()) << sample.status();
  ASSERT_EQ(sample->fields.size(), 1u);
  EXPECT_TRUE(sample->fields[0].shape.empty());
  EXPECT_THAT(ValuesOf<int>(sample->fields[0]), ElementsAre(5, 6, 7, 8));
  EXPECT_THAT(ValuesOf<int>(source->Read(1)->fields[0]),
              ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(source->Describe(1), a);
}

TEST_F(NumpyTest, AFolderIsListedInByteOrderByItsPattern) {
  for (const char* name : {"b.npy", "a/2.npy", "a/10.npy", "note.txt"})
    dir_.Write(name, Npy("|u1", "(1,)", std::string(1, name[0])));
  for (const char* name : {".x.npy", "a/._2.npy", ".a/1.npy"})
    dir_.Write(name, "no array");
  Node reader = One("path", dir_.path());
  EXPECT_EQ(Open(reader)->num_samples(), 3u);
  EXPECT_THAT(Open(reader)->Describe(0), testing::EndsWith("a/10.npy"));
  reader.args["pattern"] = std::string("?.npy");
  EXPECT_EQ(TextOf(Open(reader)->Read(0)->fields[0]), "b");
  reader.args["pattern"] = std::string("*.png");
  EXPECT_TRUE(absl::IsNotFound(IndexError(reader)));
  EXPECT_THAT(Message(IndexError(reader)), HasSubstr("none of 7 files"));
}

TEST_F(NumpyTest, ByFoldersAFolderIsListedAsDaliDoes) {
  for (const char* name : {"b.npy", "a.npy", ".h.npy", "a/2.npy", "a/10.npy",
                           "a-b/3.npy", ".d/x.npy", "a/b/1.npy", "a/x.txt"})
    dir_.Write(name, Npy("|u1", "(1,)", std::string(1, name[0])));
  Node reader = One("path", dir_.path());
  reader.args["order"] = std::string("folders");
  const auto names = [&] {
    const auto source = Open(reader);
    std::vector<std::string> found;
    for (uint64_t i = 0; i < source->num_samples(); ++i)
      found.push_back(source->Describe(i).substr(dir_.path().size() + 1));
    return found;
  };
  EXPECT_THAT(names(), ElementsAre(".h.npy", "a.npy", "b.npy", ".d/x.npy",
                                   "a/10.npy", "a/2.npy", "a-b/3.npy"));
  reader.args["pattern"] = std::string("?.npy");
  EXPECT_THAT(names(), ElementsAre("a.npy", "b.npy", ".d/x.npy", "a/2.npy",
                                   "a-b/3.npy"));
}

TEST_F(NumpyTest, RowsOfOneArrayAreSamples) {
  std::vector<float> values(3 * 2 * 2);
  std::iota(values.begin(), values.end(), 0.f);
  const Node reader =
      One("array",
          dir_.Write("x.npy", Npy("<f4", "(3, 2, 2)", BytesOfValues(values))));
  const BuiltIndex index = Index(reader);
  EXPECT_EQ(index.shards.num_samples(), 3u);
  EXPECT_EQ(index.types[0].shape, (Shape{2, 2}));
  const auto source = Open(reader);
  EXPECT_THAT(ValuesOf<float>(source->Read(2)->fields[0]),
              ElementsAre(8, 9, 10, 11));
  EXPECT_THAT(source->Describe(2), HasSubstr("x.npy row 2"));
}

TEST_F(NumpyTest, EachRecordIsReadAlone) {
  std::vector<std::string> files;
  std::string rows;
  for (int i = 0; i < 20; ++i) {
    const std::string row = BytesOfValues<int>({i, -i, i * i});
    files.push_back(
        dir_.Write(fmt::format("{}.npy", i), Npy("<i4", "(3,)", row)));
    rows += row;
  }
  const std::string array = dir_.Write("rows.npy", Npy("<i4", "(20, 3)", rows));
  for (const Node& reader : {Files(files), One("array", array)}) {
    const auto records = RecordsAlone(reader, limits_);
    ASSERT_EQ(records.size(), 20u);
    for (int i = 0; i < 20; ++i)
      EXPECT_THAT(records[i], ElementsAre(BytesOfValues<int>({i, -i, i * i})));
  }
}

TEST_F(NumpyTest, RowsMayBeScalars) {
  const Node reader = One(
      "array",
      dir_.Write("y.npy", Npy("<i8", "(2,)", BytesOfValues<int64_t>({-1, 1}))));
  EXPECT_EQ(Index(reader).types[0].shape, Shape());
  EXPECT_THAT(ValuesOf<int64_t>(Open(reader)->Read(0)->fields[0]),
              ElementsAre(-1));
}

TEST_F(NumpyTest, FilesOfOtherShapesGiveRaggedAxes) {
  const Node reader =
      Files({dir_.Write("a.npy", Npy("|u1", "(2, 3)", "abcdef")),
             dir_.Write("b.npy", Npy("|u1", "(1, 3)", "xyz")),
             dir_.Write("c.npy", Npy("|u1", "(0, 3)", ""))});
  EXPECT_EQ(Index(reader).types[0].shape, (Shape{-1, 3}));
  const auto source = Open(reader);
  EXPECT_EQ(source->Read(0)->fields[0].shape, (Shape{2, 3}));
  EXPECT_EQ(source->Read(1)->fields[0].shape, (Shape{1, 3}));
  EXPECT_EQ(TextOf(source->Read(1)->fields[0]), "xyz");
  EXPECT_EQ(source->Read(2)->fields[0].shape, (Shape{0, 3}));
}

TEST_F(NumpyTest, FilesOfOtherTypesAreNamed) {
  const std::string a = dir_.Write("a.npy", Npy("|u1", "(2,)", "ab"));
  const std::string b = dir_.Write("b.npy", Npy("|b1", "(2,)", "ab"));
  const std::string c = dir_.Write("c.npy", Npy("|u1", "(2, 1)", "ab"));
  for (const std::string& other : {b, c}) {
    const absl::Status status = IndexError(Files({a, other}));
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(Message(status), HasSubstr(other));
    EXPECT_THAT(Message(status), HasSubstr(a));
  }
}

TEST_F(NumpyTest, FortranOrderIsTransposed) {
  // Stored column by column: element (i, j, k) is 100 i + 10 j + k.
  std::vector<int64_t> stored;
  for (int k = 0; k < 4; ++k)
    for (int j = 0; j < 3; ++j)
      for (int i = 0; i < 2; ++i) stored.push_back(100 * i + 10 * j + k);
  std::vector<int64_t> wanted;
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 3; ++j)
      for (int k = 0; k < 4; ++k) wanted.push_back(100 * i + 10 * j + k);
  const std::string file =
      dir_.Write("a.npy", Npy("<i8", "(2, 3, 4)", BytesOfValues(stored), true));
  EXPECT_EQ(ValuesOf<int64_t>(Open(Files({file}))->Read(0)->fields[0]), wanted);
  const absl::Status status = IndexError(One("array", file));
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(Message(status), HasSubstr("ascontiguousarray"));
}

TEST_F(NumpyTest, EveryTypeAndVersionIsRead) {
  const std::pair<const char*, DType> known[] = {
      {"|b1", DType::kBool},     {"|u1", DType::kUint8},
      {"<i4", DType::kInt32},    {"<i8", DType::kInt64},
      {"<f2", DType::kFloat16},  {"<f4", DType::kFloat32},
      {"|i1", DType::kInt8},     {"<i2", DType::kInt16},
      {"<u2", DType::kUint16},   {"<u4", DType::kUint32},
      {"<V2", DType::kBfloat16}, {"|V2", DType::kBfloat16}};
  for (const auto& [descr, dtype] : known) {
    for (const int version : {1, 2, 3}) {
      const std::string file = dir_.Write(
          "a.npy",
          Npy(fmt::format(
                  "{{\"shape\":(2L,),'fortran_order':False,'descr':'{}'}}",
                  descr),
              std::string(2 * SizeOf(dtype), '\1'), version));
      EXPECT_EQ(Index(Files({file})).types[0].dtype, dtype) << version;
      EXPECT_EQ(TextOf(Open(Files({file}))->Read(0)->fields[0]),
                std::string(2 * SizeOf(dtype), '\1'));
    }
  }
}

TEST_F(NumpyTest, TrueIsOneWhateverIsStored) {
  const Node reader =
      Files({dir_.Write("a.npy", Npy("|b1", "(3,)", "\xff\x02z"))});
  EXPECT_EQ(TextOf(Open(reader)->Read(0)->fields[0]), "\1\1\1");
}

TEST_F(NumpyTest, OtherTypesAreRefusedByName) {
  const std::string data(64, 'x');
  for (const char* descr : {"<f8", "<u8", "|V1", "<V4", "|i2", "<c8", "<U4",
                            "|S3", "|O", "<M8[ns]", "", "=f4", "<f44"}) {
    const absl::Status status = ErrorOf(Npy(descr, "(1,)", data));
    EXPECT_TRUE(absl::IsUnimplemented(status)) << descr << status;
    EXPECT_THAT(Message(status), HasSubstr(fmt::format("'{}'", descr)));
  }
  const absl::Status big = ErrorOf(Npy(">f4", "(1,)", data));
  EXPECT_TRUE(absl::IsUnimplemented(big));
  EXPECT_THAT(Message(big), HasSubstr("big-endian"));
  const absl::Status records = ErrorOf(
      Npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }",
          data));
  EXPECT_TRUE(absl::IsUnimplemented(records));
  EXPECT_THAT(Message(records), HasSubstr("fields"));
}

TEST_F(NumpyTest, ShapesThatOverflowAreRefused) {
  for (const char* shape :
       {"(18446744073709551615,)", "(4294967296, 4294967296)",
        "(99999999999999999999999999999999,)", "(281474976710656, 2)",
        "(1, 281474976710656, 0, 281474976710656)", "(-1,)", "(1.5,)", "(,)",
        "1", "(1", "(1 2)", "(1,,2)", "((1,),)", "[1]",
        "(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
        "1)"}) {
    const absl::Status status = ErrorOf(Npy("<f4", shape, "xxxxxxxx"));
    EXPECT_TRUE(absl::IsDataLoss(status)) << shape << status;
    EXPECT_THAT(Message(status), HasSubstr("bad.npy"));
  }
}

TEST_F(NumpyTest, MalformedHeadersAreRefused) {
  for (const char* header :
       {"", "{", "{}", "()", "{'descr': '|u1'}", "{'descr' '|u1'}",
        "{'descr': '|u1', 'descr': '|u1'}",
        "{'descr': '|u1', 'fortran_order': 0, 'shape': (1,)}",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (1,), 'x': 1}",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (1,)} x",
        "{'descr': '|u\\x31', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': __import__('os'), 'fortran_order': False, 'shape': (1,)}"})
    EXPECT_TRUE(absl::IsDataLoss(ErrorOf(Npy(header, "x")))) << header;
  EXPECT_TRUE(absl::IsDataLoss(ErrorOf("")));
  EXPECT_TRUE(absl::IsDataLoss(ErrorOf("PK\3\4 a .npz file")));
  EXPECT_TRUE(absl::IsUnimplemented(
      ErrorOf(std::string("\x93NUMPY\x04\0\x10\0\0\0{}      ", 20))));
  // A header of 4 GiB that the file does not have.
  EXPECT_TRUE(absl::IsDataLoss(
      ErrorOf(std::string("\x93NUMPY\x02\0\xff\xff\xff\xff{}", 14))));
}

TEST_F(NumpyTest, DataThatEndsEarlyIsSaidWhenIndexing) {
  const absl::Status status = ErrorOf(Npy("<f4", "(4,)", "123456789012345"));
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_THAT(Message(status), HasSubstr("has 15 bytes after its header"));
  EXPECT_THAT(Message(status), HasSubstr("claims 16"));
}

TEST_F(NumpyTest, ArraysWithoutSamplesOrElementsAreRefused) {
  const auto array = [&](const char* shape, std::string_view data) {
    return IndexError(
        One("array", dir_.Write("a.npy", Npy("|u1", shape, data))));
  };
  EXPECT_TRUE(absl::IsFailedPrecondition(array("()", "x")));
  EXPECT_TRUE(absl::IsNotFound(array("(0, 3)", "")));
  EXPECT_TRUE(absl::IsFailedPrecondition(array("(3, 0)", "")));
  EXPECT_TRUE(absl::IsFailedPrecondition(ErrorOf(Npy("|u1", "(0,)", ""))));
}

TEST_F(NumpyTest, ExactlyOneWayOfNamingFilesIsWanted) {
  EXPECT_TRUE(absl::IsInvalidArgument(IndexError(Files({}))));
  Node both = One("array", "x");
  both.args["path"] = std::string("y");
  EXPECT_TRUE(absl::IsInvalidArgument(IndexError(both)));
  EXPECT_TRUE(absl::IsNotFound(IndexError(Files({dir_.path() + "/no.npy"}))));
}

TEST_F(NumpyTest, AFileThatChangedAfterIndexingIsAnError) {
  const std::string good = Npy("|u1", "(2, 1)", "ab");
  const std::string file = dir_.Write("a.npy", good);
  const auto rows = Open(One("array", file));
  const auto files = Open(Files({file}));
  EXPECT_EQ(TextOf(rows->Read(1)->fields[0]), "b");
  dir_.Write("a.npy", good + "more");
  for (const auto& source : {rows.get(), files.get()}) {
    const absl::Status status =
        source->Read(source->num_samples() - 1).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(Message(status), HasSubstr("changed"));
    EXPECT_THAT(Message(status), HasSubstr(file));
  }
  fs::remove(file);
  EXPECT_TRUE(absl::IsNotFound(files->Read(0).status()));
}

TEST_F(NumpyTest, LimitsHold) {
  const std::string file = dir_.Write("a.npy", Npy("|u1", "(4,)", "abcd"));
  limits_.max_file_bytes = 3;
  EXPECT_TRUE(absl::IsResourceExhausted(Open(Files({file}))->Read(0).status()));
  EXPECT_TRUE(Open(One("array", file))->Read(0).ok());
  limits_.max_files = 1;
  EXPECT_TRUE(absl::IsResourceExhausted(IndexError(Files({file, file}))));
  limits_.max_index_bytes = 10;
  EXPECT_TRUE(absl::IsResourceExhausted(IndexError(Files({file}))));
}

TEST_F(NumpyTest, ACancelledListingEnds) {
  const std::atomic<bool> cancelled{true};
  limits_.cancelled = &cancelled;
  const std::string file = dir_.Write("a.npy", Npy("|u1", "(1,)", "a"));
  EXPECT_TRUE(absl::IsCancelled(IndexError(Files({file}))));
}

TEST_F(NumpyTest, TheFingerprintIsOfNamesTypesAndContents) {
  const std::string file = dir_.Write("a.npy", Npy("|u1", "(2,)", "ab"));
  const Digest first = Index(Files({file})).fingerprint;
  EXPECT_EQ(first, Index(Files({file})).fingerprint);
  EXPECT_NE(first, Index(Files({file, file})).fingerprint);
  EXPECT_NE(first, Index(One("array", file)).fingerprint);
  fs::last_write_time(file,
                      fs::last_write_time(file) - std::chrono::seconds(5));
  EXPECT_NE(first, Index(Files({file})).fingerprint);
}

TEST_F(NumpyTest, ManyFilesTakeSeveralPartsOfTheIndex) {
  std::vector<std::string> files(3000,
                                 dir_.Write("a.npy", Npy("|u1", "(1,)", "a")));
  files.back() = dir_.Write("z.npy", Npy("|u1", "(2,)", "yz"));
  const auto source = Open(Files(files));
  EXPECT_EQ(source->num_samples(), 3000u);
  EXPECT_EQ(TextOf(source->Read(1024)->fields[0]), "a");
  EXPECT_EQ(TextOf(source->Read(2999)->fields[0]), "yz");
  EXPECT_EQ(source->Read(2999)->fields[0].shape, Shape{2});
}

TEST_F(NumpyTest, DamagedFilesNeverCrash) {
  const std::string good = Npy("<f4", "(2, 3)", std::string(24, 'x'), true);
  Damage(good, 400, [&](const std::string& bytes) {
    const std::string file = dir_.Write("a.npy", bytes);
    for (const Node& reader : {Files({file}), One("array", file)}) {
      const auto index = BuildIndex(reader, limits_);
      if (index.ok()) ReadDamaged(OpenSource(reader, index->blob, limits_));
    }
  });
}

TEST_F(NumpyTest, TheIndexOfAnotherReaderIsRefused) {
  const std::string a = dir_.Write("a.npy", Npy("|u1", "(2, 2)", "abcd", true));
  const std::string b = dir_.Write("b.npy", Npy("|u1", "(1, 2)", "ab"));
  EXPECT_TRUE(absl::IsDataLoss(
      OpenSource(Files({b}), Index(Files({a})).blob, limits_).status()));
}

}  // namespace
}  // namespace leat::worker
