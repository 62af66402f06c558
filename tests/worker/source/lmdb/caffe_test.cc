// SPDX-License-Identifier: Apache-2.0
#include <lmdb.h>

#include <filesystem>
#include <random>
#include <span>

#include "gmock/gmock.h"
#include "tests/worker/job/records_alone.h"
#include "tests/worker/source/arrays/array_support.h"
#include "tests/worker/source/located.h"
#include "worker/source/lmdb/caffe_record.h"

namespace leat::worker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
namespace fs = std::filesystem;

std::string Varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}
std::string Int(int field, uint64_t value) {
  return Varint(static_cast<uint64_t>(field) << 3) + Varint(value);
}
std::string Bytes(int field, const std::string& value) {
  return Varint(static_cast<uint64_t>(field) << 3 | 2) + Varint(value.size()) +
         value;
}

// Messages as Caffe2's and Caffe's own tools write them.
std::string Encoded(const std::string& image, int label) {
  return Bytes(1, Int(2, 4) + Bytes(6, image)) +
         Bytes(1, Int(1, 1) + Int(2, 2) +
                      Int(4, static_cast<uint64_t>(int64_t{label})));
}
std::string Raw(const std::vector<int>& dims, const std::string& pixels,
                const std::string& label = Int(2, 2) + Bytes(4, Varint(7))) {
  std::string image;
  for (const int dim : dims) image += Int(1, static_cast<uint64_t>(dim));
  return Bytes(1, image + Int(2, 3) + Bytes(5, pixels)) + Bytes(1, label);
}
std::string Datum(int c, int h, int w, const std::string& data, int label,
                  const std::string& more = {}) {
  return Int(1, static_cast<uint64_t>(c)) + Int(2, static_cast<uint64_t>(h)) +
         Int(3, static_cast<uint64_t>(w)) + Bytes(4, data) +
         Int(5, static_cast<uint64_t>(int64_t{label})) + more;
}

std::span<const std::byte> AsBytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

class CaffeTest : public ReaderTest {
 protected:
  // Returns a folder with an LMDB file of these values, in order.
  std::string Database(const std::vector<std::string>& values,
                       const std::string& name = "db") {
    const std::string folder = dir_.path() + "/" + name;
    fs::remove_all(folder);
    fs::create_directories(folder);
    MDB_env* env = nullptr;
    MDB_txn* txn = nullptr;
    MDB_dbi dbi;
    mdb_env_create(&env);
    mdb_env_set_mapsize(env, 64 << 20);
    EXPECT_EQ(mdb_env_open(env, folder.c_str(), MDB_NOSYNC, 0600), 0);
    EXPECT_EQ(mdb_txn_begin(env, nullptr, 0, &txn), 0);
    EXPECT_EQ(mdb_dbi_open(txn, nullptr, 0, &dbi), 0);
    for (size_t i = 0; i < values.size(); ++i) {
      const std::string key = fmt::format("{:08}", i);
      MDB_val k{key.size(), const_cast<char*>(key.data())};
      MDB_val v{values[i].size(), const_cast<char*>(values[i].data())};
      EXPECT_EQ(mdb_put(txn, dbi, &k, &v, 0), 0);
    }
    EXPECT_EQ(mdb_txn_commit(txn), 0);
    mdb_env_close(env);
    return folder;
  }
  static Node Caffe2(const std::vector<std::string>& paths) {
    return {.op = "readers.caffe2", .inputs = {}, .args = {{"path", paths}}};
  }
  static Node Caffe(const std::vector<std::string>& paths) {
    return {.op = "readers.caffe", .inputs = {}, .args = {{"path", paths}}};
  }
};

TEST_F(CaffeTest, EncodedImagesComeInTheOrderOfTheKeys) {
  std::vector<std::string> values;
  for (int i = 0; i < 300; ++i)
    values.push_back(Encoded(
        std::string(i % 7 == 0 ? 9000 : 30, 'j') + std::to_string(i), i % 10));
  const auto source = Open(Caffe2({Database(values)}));
  ASSERT_EQ(source->num_samples(), 300u);
  EXPECT_EQ(index_.types[0].kind, ValueType::Kind::kEncoded);
  EXPECT_EQ(index_.types[1].dtype, DType::kInt32);
  for (int i = 0; i < 300; ++i) {
    const StoredSample sample = Get(*source, static_cast<uint64_t>(i));
    ASSERT_EQ(TextOf(sample.fields[0]),
              std::string(i % 7 == 0 ? 9000 : 30, 'j') + std::to_string(i));
    ASSERT_EQ(IntOf(sample.fields[1]), i % 10);
  }
  EXPECT_THAT(source->Describe(5), HasSubstr("data.mdb: value 5"));
  EXPECT_EQ(source->Locate(7)->index, 7u);
  EXPECT_THAT(BytesAt(source->Locate(7)), HasSubstr("jjj7"));
}

TEST_F(CaffeTest, AFileMayBeNamedAndSeveralFollowEachOther) {
  const std::string a = Database({Encoded("a", 1)}, "a");
  const std::string b = Database({Encoded("b", 2), Encoded("c", -3)}, "b");
  const auto source = Open(Caffe2({a + "/data.mdb", b}));
  ASSERT_EQ(source->num_samples(), 3u);
  EXPECT_EQ(TextOf(Get(*source, 1).fields[0]), "b");
  EXPECT_EQ(IntOf(Get(*source, 2).fields[1]), -3);
}

TEST_F(CaffeTest, EachRecordIsReadAlone) {
  std::vector<std::string> encoded, raw, datums;
  for (int i = 0; i < 40; ++i) {
    const std::string pixels = fmt::format("{:06}", i * 7919);
    encoded.push_back(Encoded(std::string(i % 7 ? 30 : 9000, 'j') + pixels, i));
    raw.push_back(Raw({2, 3}, pixels));
    datums.push_back(Datum(1, 2, 3, pixels, -i));
  }
  const std::string a = Database(encoded, "a"), b = Database(raw, "b"),
                    c = Database(datums, "c");
  const auto of_a = RecordsAlone(Caffe2({a}), limits_);
  const auto of_b = RecordsAlone(Caffe2({b}), limits_);
  const auto of_c = RecordsAlone(Caffe({c}), limits_);
  ASSERT_TRUE(of_a.size() == 40 && of_b.size() == 40 && of_c.size() == 40);
  for (int i = 0; i < 40; ++i) {
    const std::string pixels = fmt::format("{:06}", i * 7919);
    EXPECT_THAT(of_a[i],
                ElementsAre(std::string(i % 7 ? 30 : 9000, 'j') + pixels,
                            BytesOfInt(i)));
    EXPECT_THAT(of_b[i], ElementsAre(pixels, BytesOfInt(7)));
    EXPECT_THAT(of_c[i], ElementsAre(pixels, BytesOfInt(-i)));
  }
}

TEST_F(CaffeTest, RawPixelsOfOneSizeHaveAFixedShape) {
  Open(Caffe2({Database({Raw({2, 3}, "abcdef"), Raw({2, 3}, "ghijkl")})}));
  EXPECT_THAT(index_.types[0].shape, ElementsAre(2, 3, 1));
  const auto source = Open(Caffe2({Database({Raw({1, 2, 3}, "abcdef")})}));
  EXPECT_THAT(index_.types[0].shape, ElementsAre(1, 2, 3));
  EXPECT_EQ(TextOf(Get(*source, 0).fields[0]), "abcdef");
  EXPECT_EQ(IntOf(Get(*source, 0).fields[1]), 7);
}

TEST_F(CaffeTest, RawPixelsOfSeveralSizesCarryTheirShapes) {
  const auto source =
      Open(Caffe2({Database({Raw({2, 3}, "abcdef"), Raw({1, 2}, "gh")})}));
  EXPECT_THAT(index_.types[0].shape, ElementsAre(-1, -1, 1));
  EXPECT_THAT(Get(*source, 1).fields[0].shape, ElementsAre(1, 2, 1));
}

TEST_F(CaffeTest, LabelsMayBeFloats) {
  const auto source = Open(Caffe2({Database({Raw(
      {1, 1}, "a", Int(2, 1) + Bytes(3, std::string("\0\0\x80\x3f", 4)))})}));
  EXPECT_EQ(index_.types[1].dtype, DType::kFloat32);
  EXPECT_THAT(ValuesOf<float>(Get(*source, 0).fields[1]), ElementsAre(1.0f));
}

TEST_F(CaffeTest, PlanesOfADatumAreInterleaved) {
  const auto source = Open(Caffe({Database({Datum(3, 1, 2, "rRgGbB", 4)})}));
  EXPECT_THAT(index_.types[0].shape, ElementsAre(1, 2, 3));
  EXPECT_EQ(TextOf(Get(*source, 0).fields[0]), "rgbRGB");
  EXPECT_EQ(IntOf(Get(*source, 0).fields[1]), 4);
  const auto gray = Open(Caffe({Database({Datum(1, 2, 2, "abcd", 5)})}));
  EXPECT_EQ(TextOf(Get(*gray, 0).fields[0]), "abcd");
}

TEST_F(CaffeTest, ADatumSaysWhetherItIsEncodedOrItsSizesDo) {
  const auto record = [](const std::string& bytes) {
    return ParseDatum(AsBytes(bytes));
  };
  EXPECT_TRUE(record(Datum(3, 1, 2, "jpegjpeg", 4, Int(7, 1)))->encoded);
  EXPECT_TRUE(record(Datum(3, 1, 2, "rRgGbB", 4, Int(7, 1)))->encoded);
  EXPECT_FALSE(record(Datum(3, 1, 2, "rRgGbB", 4, Int(7, 0)))->encoded);
  EXPECT_FALSE(record(Datum(3, 1, 2, "rRgGbB", 4))->encoded);
  EXPECT_TRUE(record(Datum(3, 1, 2, "jpegjpeg", 4))->encoded);
  EXPECT_TRUE(absl::IsDataLoss(
      record(Datum(3, 1, 2, "toolong", 4, Int(7, 0))).status()));
  EXPECT_TRUE(absl::IsDataLoss(record(Int(5, 1)).status()));
  EXPECT_TRUE(
      absl::IsUnimplemented(record(Int(5, 1) + Bytes(6, "1234")).status()));
}

TEST_F(CaffeTest, TensorsOfOtherKindsAreRefused) {
  const auto error = [](const std::string& bytes) {
    return ParseTensorProtos(AsBytes(bytes)).status();
  };
  EXPECT_TRUE(error(Encoded("x", 1)).ok());
  EXPECT_TRUE(absl::IsDataLoss(error("")));
  EXPECT_TRUE(absl::IsDataLoss(error(Bytes(1, Int(2, 4) + Bytes(6, "x")))));
  EXPECT_TRUE(absl::IsDataLoss(error(Raw({2, 2}, "abc"))));
  EXPECT_TRUE(absl::IsDataLoss(error(Raw({0, 2}, ""))));
  EXPECT_TRUE(absl::IsDataLoss(error(Raw({4}, "abcd"))));
  EXPECT_TRUE(absl::IsDataLoss(error(Raw({1, 1, 1, 1}, "a"))));
  EXPECT_TRUE(absl::IsDataLoss(error(Raw({1 << 30, 1 << 30, 16}, "a"))));
  EXPECT_TRUE(absl::IsDataLoss(error(Raw({1, 1}, "a", Int(2, 2)))));
  EXPECT_TRUE(absl::IsDataLoss(
      error(Raw({1, 1}, "a", Int(2, 2) + Int(4, 1) + Int(4, 2)))));
  EXPECT_TRUE(
      absl::IsUnimplemented(error(Raw({1, 1}, "a", Int(2, 10) + Int(10, 1)))));
  EXPECT_TRUE(absl::IsUnimplemented(
      error(Bytes(1, Int(2, 1)) + Bytes(1, Int(2, 2) + Int(4, 1)))));
}

TEST_F(CaffeTest, ABadRecordAmongGoodOnesIsABadSample) {
  std::vector<std::string> values(600, Raw({1, 2}, "ab"));
  values[1] = "junk";                             // not read for the index
  values[6] = Raw({2, 2}, "abcd");                // unlike the others
  values[300] = Encoded("jpeg", 3).substr(0, 9);  // read
  const auto source = Open(Caffe2({Database(values)}));
  EXPECT_THAT(index_.types[0].shape, ElementsAre(1, 2, 1));
  for (const uint64_t bad : {1, 6, 300}) {
    const absl::Status status = source->Read(bad).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << bad;
    EXPECT_THAT(Message(status), HasSubstr(source->Describe(bad) + ": "));
  }
  EXPECT_THAT(Message(source->Read(6).status()),
              HasSubstr("pixels of 2 x 2 x 1"));
  EXPECT_TRUE(source->Read(2).ok());
}

TEST_F(CaffeTest, WhereNothingIsARecordTheFirstErrorIsTold) {
  const auto status = ErrorOf(Caffe2({Database({"junk", "more"})}));
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("value 0"));
  EXPECT_THAT(Message(status), HasSubstr(dir_.path()));
}

TEST_F(CaffeTest, MixedKindsAreRefused) {
  const auto status =
      ErrorOf(Caffe2({Database({Encoded("j", 1), Raw({1, 1}, "a")})}));
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
}

TEST_F(CaffeTest, AValueOverTheLimitIsRefused) {
  limits_.max_file_bytes = 100;
  const auto source = Open(
      Caffe2({Database({Encoded("a", 1), Encoded(std::string(99, 'b'), 1)})}));
  EXPECT_TRUE(source->Read(0).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(source->Read(1).status()));
}

TEST_F(CaffeTest, AFileThatChangesIsNotReadOn) {
  const Node reader = Caffe2({Database({Encoded("a", 1)})});
  const auto source = Open(reader);
  fs::resize_file(dir_.path() + "/db/data.mdb", 1 << 20);
  EXPECT_TRUE(absl::IsFailedPrecondition(source->Read(0).status()));
  const auto status = OpenSource(reader, index_.blob, limits_).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
}

TEST_F(CaffeTest, MissingPathsAreNamed) {
  const auto status = ErrorOf(Caffe({"/no/such/db"}));
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("/no/such/db"));
  EXPECT_TRUE(absl::IsNotFound(ErrorOf(Caffe({dir_.path()}))));
  EXPECT_TRUE(absl::IsInvalidArgument(ErrorOf(Caffe({}))));
}

TEST_F(CaffeTest, RandomMessagesDoNotCrash) {
  std::minstd_rand random(1);
  const std::vector<std::string> seeds = {
      Encoded("image", 5), Raw({2, 2, 3}, "abcdefghijkl"),
      Datum(3, 1, 2, "rRgGbB", 4, Int(7, 0))};
  for (int i = 0; i < 100'000; ++i) {
    std::string bytes = seeds[random() % seeds.size()];
    for (int j = 0; j <= i % 3; ++j)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    if (i % 5 == 0) bytes.resize(random() % bytes.size());
    for (const auto parse : {ParseDatum, ParseTensorProtos}) {
      const auto record = parse(AsBytes(bytes));
      if (!record.ok() || record->encoded) continue;
      ASSERT_EQ(record->image.size(),
                static_cast<uint64_t>(record->height * record->width *
                                      record->channels));
    }
  }
}

}  // namespace
}  // namespace leat::worker
