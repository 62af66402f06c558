// SPDX-License-Identifier: Apache-2.0
#include <zlib.h>

#include <filesystem>
#include <random>

#include "gmock/gmock.h"
#include "leat/stored/v1/records.pb.h"
#include "tests/support/test_data.h"
#include "tests/worker/job/records_alone.h"
#include "tests/worker/source/arrays/array_support.h"
#include "tests/worker/source/located.h"
#include "worker/source/storage/storage.h"

namespace leat::worker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
namespace fs = std::filesystem;

std::string Number(uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8)
    bytes += static_cast<char>(value >> shift);
  return bytes;
}

std::string Idx(uint8_t type, const std::vector<uint32_t>& sizes,
                std::string_view payload) {
  std::string file = {0, 0, static_cast<char>(type),
                      static_cast<char>(sizes.size())};
  for (const uint32_t size : sizes) file += Number(size);
  return file + std::string(payload);
}

std::string Gzip(std::string_view bytes) {
  z_stream zlib = {};
  deflateInit2(&zlib, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&zlib, bytes.size()), '\0');
  zlib.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  zlib.avail_in = static_cast<uInt>(bytes.size());
  zlib.next_out = reinterpret_cast<Bytef*>(packed.data());
  zlib.avail_out = static_cast<uInt>(packed.size());
  deflate(&zlib, Z_FINISH);
  packed.resize(zlib.total_out);
  deflateEnd(&zlib);
  return packed;
}

const std::string kImages = Idx(8, {3, 2, 2}, "abcdefghijkl");
const std::string kLabels = Idx(8, {3}, "\x05\x01\xff");

class IdxTest : public ReaderTest {
 protected:
  Node Reader(const std::string& images) {
    return {.op = "readers.idx",
            .inputs = {},
            .args = {{"images", dir_.Write("images", images)}}};
  }
  Node Reader(const std::string& images, const std::string& labels) {
    Node reader = Reader(images);
    reader.args["labels"] = dir_.Write("labels", labels);
    return reader;
  }
};

TEST_F(IdxTest, ImagesHaveOneChannelAndLabels) {
  for (const bool gzip : {false, true}) {
    const auto source = Open(gzip ? Reader(Gzip(kImages), Gzip(kLabels))
                                  : Reader(kImages, kLabels));
    ASSERT_EQ(source->num_samples(), 3u);
    EXPECT_THAT(index_.types[0].shape, ElementsAre(2, 2, 1));
    EXPECT_EQ(index_.types[0].dtype, DType::kUint8);
    EXPECT_EQ(index_.types[1],
              (ValueType{ValueType::Kind::kTensor, DType::kInt32, {}}));
    const StoredSample sample = Get(*source, 2);
    EXPECT_EQ(TextOf(sample.fields[0]), "ijkl");
    EXPECT_EQ(IntOf(sample.fields[1]), 255);
    EXPECT_EQ(IntOf(Get(*source, 0).fields[1]), 5);
    EXPECT_THAT(source->Describe(2), HasSubstr("images: record 2"));
    const auto place = source->Locate(2);
    EXPECT_EQ(place->index, 2u);
    if (gzip)
      EXPECT_FALSE(place->offset.has_value());
    else
      EXPECT_EQ(BytesAt(place), "ijkl");
  }
}

TEST_F(IdxTest, ARecordOfACopyIsWhereTheJobSaysThatItIs) {
  dir_.Write("copy/images", kImages);
  StorageConfig config;
  config.local_copies["/jobs/idx"] = dir_.path() + "/copy";
  const auto storage = *Storage::Create(config);
  limits_.storage = storage.get();
  const auto source = Open({.op = "readers.idx",
                            .inputs = {},
                            .args = {{"images", "/jobs/idx/images"}}});
  EXPECT_EQ(source->Locate(0)->file, "/jobs/idx/images");
}

// A cache keeps a record's bytes, not the unpacked file.
TEST_F(IdxTest, RecordsOfAGzipOwnTheirBytes) {
  const auto source = Open(Reader(Gzip(kImages), Gzip(kLabels)));
  const auto first = source->Read(0), again = source->Read(0);
  ASSERT_TRUE(first.ok() && again.ok());
  EXPECT_NE(first->fields[0].bytes.data(), again->fields[0].bytes.data());
}

TEST_F(IdxTest, EachRecordIsReadAlone) {
  for (const bool gzip : {false, true}) {
    const Node reader =
        gzip ? Reader(Gzip(kImages), Gzip(kLabels)) : Reader(kImages, kLabels);
    EXPECT_THAT(RecordsAlone(reader, limits_),
                ElementsAre(ElementsAre("abcd", BytesOfInt(5)),
                            ElementsAre("efgh", BytesOfInt(1)),
                            ElementsAre("ijkl", BytesOfInt(255))));
  }
}

TEST_F(IdxTest, WithoutLabelsTheyAreMinusOne) {
  const auto source = Open(Reader(kImages));
  EXPECT_EQ(IntOf(Get(*source, 1).fields[1]), -1);
}

TEST_F(IdxTest, RecordsOfOtherAxesKeepTheirShape) {
  const std::string payload(24, 'x');
  Open(Reader(Idx(8, {2, 2, 2, 3}, payload)));
  EXPECT_THAT(index_.types[0].shape, ElementsAre(2, 2, 3));
  Open(Reader(Idx(8, {2, 12}, payload)));
  EXPECT_THAT(index_.types[0].shape, ElementsAre(12));
  Open(Reader(Idx(8, {24}, payload)));
  EXPECT_THAT(index_.types[0].shape, ElementsAre());
}

TEST_F(IdxTest, NumbersAreTurnedAround) {
  const std::string ints =
      Idx(12, {2, 2}, Number(1) + Number(2) + Number(0xfffffffd) + Number(4));
  const std::string float_one("\x3f\x80\0\0", 4);
  for (const bool gzip : {false, true}) {
    const auto source = Open(
        gzip ? Reader(Gzip(ints), Gzip(Idx(12, {2}, Number(7) + Number(8))))
             : Reader(ints, Idx(12, {2}, Number(7) + Number(8))));
    EXPECT_EQ(index_.types[0].dtype, DType::kInt32);
    EXPECT_THAT(ValuesOf<int32_t>(Get(*source, 1).fields[0]),
                ElementsAre(-3, 4));
    EXPECT_EQ(IntOf(Get(*source, 1).fields[1]), 8);
    const auto floats = Open(Reader(Idx(13, {1, 1}, float_one)));
    EXPECT_EQ(index_.types[0].dtype, DType::kFloat32);
    EXPECT_THAT(ValuesOf<float>(Get(*floats, 0).fields[0]), ElementsAre(1.0f));
  }
}

TEST_F(IdxTest, OtherTypesAreRefusedByName) {
  for (const auto& [type, name] :
       {std::pair(0x09, "signed bytes"), std::pair(0x0b, "16-bit"),
        std::pair(0x0e, "float64"), std::pair(0x77, "0x77")}) {
    const auto status =
        ErrorOf(Reader(Idx(static_cast<uint8_t>(type), {1}, "12345678")));
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(Message(status), HasSubstr(name));
    EXPECT_THAT(Message(status), HasSubstr(dir_.path()));
  }
}

TEST_F(IdxTest, AFileOfAnotherLengthIsRefused) {
  for (const bool gzip : {false, true})
    for (const std::string& bad :
         {kImages + "x", kImages.substr(0, kImages.size() - 1),
          kImages.substr(0, 16), kImages.substr(0, 10), kImages.substr(0, 3),
          std::string()}) {
      const auto status = ErrorOf(Reader(gzip ? Gzip(bad) : bad));
      EXPECT_TRUE(absl::IsDataLoss(status)) << bad.size() << status;
      EXPECT_THAT(Message(status), HasSubstr(dir_.path()));
    }
}

TEST_F(IdxTest, AnotherFormatIsRefused) {
  for (const char* bytes : {"\x89PNG\r\n\x1a\n", "PK\3\4aaaaaaaaaaaaaa"})
    EXPECT_TRUE(absl::IsDataLoss(ErrorOf(Reader(bytes))));
}

TEST_F(IdxTest, SizesThatHoldNothingOrTooMuchAreRefused) {
  EXPECT_TRUE(absl::IsDataLoss(ErrorOf(Reader(Idx(8, {2, 0, 5}, "")))));
  EXPECT_TRUE(absl::IsDataLoss(
      ErrorOf(Reader(Idx(8, {1, 0xffffffff, 0xffffffff}, "x")))));
  EXPECT_TRUE(absl::IsInvalidArgument(
      ErrorOf(Reader(Idx(8, {1, 1, 1, 1, 1, 1}, "x")))));
  EXPECT_TRUE(absl::IsInvalidArgument(ErrorOf(Reader(Idx(8, {}, "")))));
  EXPECT_TRUE(absl::IsNotFound(ErrorOf(Reader(Idx(8, {0, 2, 2}, "")))));
}

TEST_F(IdxTest, LabelsMustFitTheImages) {
  for (const std::string& labels : {Idx(8, {4}, "1234"), Idx(8, {3, 1}, "123"),
                                    Idx(13, {3}, "123412341234")}) {
    const auto status = ErrorOf(Reader(kImages, labels));
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(Message(status), HasSubstr("labels"));
  }
}

TEST_F(IdxTest, DamagedGzipIsRefused) {
  const std::string packed = Gzip(kImages);
  for (size_t length = 2; length < packed.size(); ++length)
    EXPECT_TRUE(absl::IsDataLoss(ErrorOf(Reader(packed.substr(0, length)))))
        << length;
  EXPECT_TRUE(absl::IsDataLoss(ErrorOf(Reader(packed + "junk"))));
  for (size_t i = 10; i < packed.size(); ++i) {
    std::string bad = packed;
    bad[i] = static_cast<char>(bad[i] ^ 4);
    // The last byte of the stream has bits without a meaning.
    const auto source = TryOpen(Reader(bad));
    if (source.ok()) {
      EXPECT_EQ(i, packed.size() - 9);
    }
  }
}

TEST_F(IdxTest, GzipOfSeveralMembersIsOneFile) {
  const auto source =
      Open(Reader(Gzip(kImages.substr(0, 18)) + Gzip(kImages.substr(18))));
  EXPECT_EQ(TextOf(Get(*source, 2).fields[0]), "ijkl");
}

// A cache may keep a record after its source has gone: nothing but the record.
TEST_F(IdxTest, ARecordOfAnUnpackedFileKeepsNoOther) {
  const auto source = Open(Reader(Gzip(kImages)));
  const StoredSample one = Get(*source, 2), same = Get(*source, 2);
  EXPECT_EQ(TextOf(one.fields[0]), "ijkl");
  EXPECT_NE(one.fields[0].bytes.data(), same.fields[0].bytes.data());
}

TEST_F(IdxTest, WhatIsUnpackedIsBounded) {
  limits_.max_unpacked_bytes = 23;
  EXPECT_TRUE(
      absl::IsResourceExhausted(ErrorOf(Reader(Gzip(kImages), Gzip(kLabels)))));
  limits_.max_unpacked_bytes = 24;
  EXPECT_TRUE(ErrorOf(Reader(Gzip(kImages), Gzip(kLabels))).ok());
  // A header that declares much ends before anything is unpacked.
  limits_.max_unpacked_bytes = 1 << 20;
  EXPECT_TRUE(absl::IsResourceExhausted(
      ErrorOf(Reader(Gzip(Idx(8, {0xffffffff, 100, 100}, "x"))))));
}

TEST_F(IdxTest, AFileThatChangesIsNotReadOn) {
  for (const bool gzip : {false, true}) {
    const Node reader = Reader(gzip ? Gzip(kImages) : kImages);
    const auto source = Open(reader);
    dir_.Write("images", kImages + "more");
    if (!gzip) {
      EXPECT_TRUE(absl::IsFailedPrecondition(source->Read(0).status()));
    }
    const auto status = OpenSource(reader, index_.blob, limits_).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(Message(status), HasSubstr("size="));
  }
}

TEST_F(IdxTest, TheFingerprintKnowsItsFiles) {
  Open(Reader(kImages, kLabels));
  const Digest first = index_.fingerprint;
  Open(Reader(kImages));
  EXPECT_NE(first, index_.fingerprint);
}

TEST_F(IdxTest, AnErrorAboutAnIndexHasNoSecrets) {
  const std::string uri = "https://user:secret@host/images?sig=secret";
  Node reader = Reader(kImages);
  reader.args["images"] = uri;
  stored::v1::IdxIndex index;
  index.mutable_images()->set_uri(uri);
  index.set_image_type(9);
  const absl::Status status =
      OpenSource(reader, index.SerializeAsString(), limits_).status();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(Message(status), HasSubstr("https://host/images: idx of"));
  EXPECT_THAT(Message(status), testing::Not(HasSubstr("secret")));
}

TEST_F(IdxTest, MissingFilesAreNamed) {
  const auto status =
      ErrorOf({.op = "readers.idx", .args = {{"images", "/no/such/file"}}});
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("/no/such/file"));
  EXPECT_TRUE(absl::IsInvalidArgument(ErrorOf({.op = "readers.idx"})));
}

TEST_F(IdxTest, ACancelledListingEnds) {
  const std::atomic<bool> cancelled{true};
  limits_.cancelled = &cancelled;
  EXPECT_TRUE(absl::IsCancelled(ErrorOf(Reader(Gzip(kImages)))));
}

TEST_F(IdxTest, FlippedBytesDoNotCrash) {
  std::minstd_rand random(2);
  for (int i = 0; i < 200; ++i) {
    std::string images = kImages, labels = kLabels;
    std::string& bad = i % 2 == 0 ? images : labels;
    bad[random() % bad.size()] = static_cast<char>(random());
    Survive(Reader(images, labels));
  }
}

class IdxOf : public IdxTest, public ::testing::WithParamInterface<TestData> {};
INSTANTIATE_TEST_SUITE_P(Data, IdxOf, AllTestData(), TestDataName);

TEST_P(IdxOf, MnistIsRead) {
  const std::string root = TestDataFolder(GetParam(), "mnist");
  if (root.empty()) GTEST_SKIP() << NoTestData(GetParam(), "mnist");
  const auto source =
      Open({.op = "readers.idx",
            .args = {{"images", root + "/t10k-images-idx3-ubyte.gz"},
                     {"labels", root + "/t10k-labels-idx1-ubyte.gz"}}});
  ASSERT_EQ(source->num_samples(), 10'000u);
  EXPECT_THAT(index_.types[0].shape, ElementsAre(28, 28, 1));
  std::vector<int32_t> labels;
  for (int i = 0; i < 5; ++i)
    labels.push_back(IntOf(Get(*source, i).fields[1]));
  if (GetParam() == TestData::kReal) {
    EXPECT_THAT(labels, ElementsAre(7, 2, 1, 0, 4));
  } else {
    EXPECT_THAT(labels, ElementsAre(0, 7, 4, 9, 5));
  }
}

}  // namespace
}  // namespace leat::worker
