// SPDX-License-Identifier: Apache-2.0
//
// readers.tokens reads documents.
#include "worker/source/source.h"

#include <filesystem>

#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/job/records_alone.h"
#include "tests/worker/source/arrays/npy_maker.h"
#include "tests/worker/source/tokens/megatron_maker.h"
#include "tests/worker/temp_dir.h"

namespace leat::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Texts = std::vector<std::string>;
using Tokens = std::vector<uint16_t>;

class TokensTest : public ::testing::Test {
 protected:
  static Node Reader(Texts files, const std::string& dtype = "",
                     int64_t end = -1, const std::string& unit = "document") {
    return {.op = "readers.tokens",
            .inputs = {},
            .args = {{"files", std::move(files)},
                     {"dtype", dtype},
                     {"end", end},
                     {"unit", unit}}};
  }
  std::unique_ptr<Source> Open(const Node& reader) {
    const auto index = BuildIndex(reader, limits_);
    EXPECT_TRUE(index.ok()) << index.status();
    if (!index.ok()) return nullptr;
    auto source = OpenSource(reader, index->blob, limits_);
    EXPECT_TRUE(source.ok()) << source.status();
    if (!source.ok()) return nullptr;
    EXPECT_EQ((*source)->fingerprint(), index->fingerprint);
    EXPECT_EQ((*source)->num_samples(), index->shards.num_samples());
    return *std::move(source);
  }
  // Returns all samples of a reader.
  std::vector<Tokens> ReadAllOf(const Node& reader) {
    const auto source = Open(reader);
    std::vector<Tokens> all;
    for (uint64_t i = 0; source != nullptr && i < source->num_samples(); ++i) {
      const auto sample = source->Read(i);
      EXPECT_TRUE(sample.ok()) << sample.status();
      if (!sample.ok()) break;
      all.push_back(ValuesOf<uint16_t>(sample->fields[0]));
      EXPECT_EQ(sample->fields[0].shape,
                Shape{static_cast<int64_t>(all.back().size())});
    }
    return all;
  }

  TempDir dir_;
  SourceLimits limits_;
};

TEST_F(TokensTest, DocumentsOfMegatronsFilesFollowEachOther) {
  dir_.Write("a.idx", MegatronIndex().Add({2, 1}).Add({}).Add({2}).Bytes());
  const std::string a = dir_.Write("a.bin", TokensFrom<uint16_t>(10, 5));
  dir_.Write("b.idx", MegatronIndex().Add({3}).Bytes());
  const std::string b = dir_.Write("b.bin", TokensFrom<uint16_t>(70, 3));
  EXPECT_THAT(ReadAllOf(Reader({a, b})),
              ElementsAre(Tokens{10, 11, 12}, Tokens{}, Tokens{13, 14},
                          Tokens{70, 71, 72}));
  EXPECT_THAT(ReadAllOf(Reader({b, a}, "", -1, "sequence")),
              ElementsAre(Tokens{70, 71, 72}, Tokens{10, 11}, Tokens{12},
                          Tokens{13, 14}));
  const auto source = Open(Reader({a, b}));
  EXPECT_THAT(source->Describe(2), HasSubstr("a.bin: document 2 at 6"));
  const auto place = source->Locate(3);
  ASSERT_TRUE(place.ok());
  EXPECT_EQ(place->file, b);
  EXPECT_EQ(place->offset, 0u);
  EXPECT_EQ(place->bytes, 6u);
  EXPECT_EQ(place->index, 0u);
}

TEST_F(TokensTest, FlatFilesAndArraysAreCutBehindTheirEnds) {
  const std::string data = BytesOfValues<uint16_t>({5, 6, 0, 7, 0, 8});
  const std::string flat = dir_.Write("x.tok", data);
  const std::string array = dir_.Write("x.npy", Npy("<u2", "(6,)", data));
  for (const Node& reader :
       {Reader({flat}, "uint16", 0), Reader({array}, "", 0)})
    EXPECT_THAT(ReadAllOf(reader),
                ElementsAre(Tokens{5, 6, 0}, Tokens{7, 0}, Tokens{8}));
  for (const Node& reader : {Reader({flat}, "uint16"), Reader({array})})
    EXPECT_THAT(ReadAllOf(reader), ElementsAre(Tokens{5, 6, 0, 7, 0, 8}));
  EXPECT_THAT(ReadAllOf(Reader({flat, array, flat}, "uint16")).size(), 3u);
}

TEST_F(TokensTest, PartsOfDocumentsAreReadAlone) {
  dir_.Write("a.idx", MegatronIndex().Add({5}).Add({3}).Bytes());
  const std::string a = dir_.Write("a.bin", TokensFrom<uint16_t>(10, 8));
  limits_.max_file_bytes = 6;  // less than the first document has
  const auto source = Open(Reader({a}));
  const std::vector<RecordPart> parts = {
      {1, 0, 3}, {0, 1, 3}, {0, 4, 1}, {0, 5, 0}, {0, 3, 3}};
  const auto stored = source->ReadParts(parts);
  ASSERT_EQ(stored.size(), parts.size());
  const std::vector<Tokens> want = {{15, 16, 17}, {11, 12, 13}, {14}, {}};
  for (size_t i = 0; i < want.size(); ++i) {
    ASSERT_TRUE(stored[i].ok()) << stored[i].status();
    EXPECT_EQ(ValuesOf<uint16_t>(stored[i]->stored.fields[0]), want[i]);
    EXPECT_EQ(stored[i]->elements, i == 0 ? 3u : 5u);
  }
  EXPECT_EQ(stored[4].status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(Message(stored[4].status())),
              HasSubstr("has 5 tokens, want 3 after the first 3"));
  EXPECT_EQ(source->IndexedColumn("length", 1).value(), 3);
}

TEST_F(TokensTest, EachRecordIsReadAlone) {
  const std::string flat =
      dir_.Write("x.tok", BytesOfValues<uint16_t>({5, 6, 0, 7, 0, 8}));
  const auto records = RecordsAlone(Reader({flat}, "uint16", 0), limits_);
  ASSERT_EQ(records.size(), 3u);
  EXPECT_THAT(records[1], ElementsAre(BytesOfValues<uint16_t>({7, 0})));
}

TEST_F(TokensTest, ManyDocumentsAreReadInAnyOrderAlsoAtOnce) {
  MegatronIndex index;
  std::vector<Tokens> wanted;
  std::string data;
  uint16_t next = 0;
  for (int i = 0; i < 3000; ++i) {
    const int32_t length = i % 37;
    index.Add({length});
    Tokens document;
    for (int32_t k = 0; k < length; ++k) document.push_back(next++);
    data += BytesOfValues(document);
    wanted.push_back(std::move(document));
  }
  dir_.Write("m.idx", index.Bytes());
  const auto source = Open(Reader({dir_.Write("m.bin", data)}));
  ASSERT_NE(source, nullptr);
  std::vector<uint64_t> samples;
  for (uint64_t i = 0; i < 3000; ++i) samples.push_back(i * 1999 % 3000);
  for (const uint64_t i : samples)
    ASSERT_EQ(ValuesOf<uint16_t>(source->Read(i)->fields[0]), wanted[i]) << i;
  const auto at_once = source->ReadMany(samples);
  for (size_t i = 0; i < samples.size(); ++i)
    ASSERT_EQ(ValuesOf<uint16_t>(at_once[i]->fields[0]), wanted[samples[i]]);
}

TEST_F(TokensTest, AnIndexInBlocksGivesTheSameDocuments) {
  MegatronIndex index;
  for (int i = 0; i < 500; ++i) index.Add({i % 5});
  dir_.Write("m.idx", index.Bytes());
  const Node reader =
      Reader({dir_.Write("m.bin", TokensFrom<uint16_t>(0, 1000))});
  struct Sink final : IndexSink {
    absl::Status Add(std::string bytes, uint64_t samples) override {
      blocks.emplace_back(std::move(bytes), samples);
      return absl::OkStatus();
    }
    std::vector<std::pair<std::string, uint64_t>> blocks;
  } sink;
  const std::vector<Tokens> wanted = ReadAllOf(reader);
  limits_.block_bytes = 256;
  const auto built = BuildIndexInto(reader, limits_, &sink);
  ASSERT_TRUE(built.ok()) << built.status();
  ASSERT_GT(sink.blocks.size(), 4u);
  SourceLimits limits = limits_;
  limits.one_of_many = true;
  uint64_t first = 0;
  for (size_t b = 1; b < sink.blocks.size(); ++b) {
    const auto part =
        OpenSource(reader, sink.blocks[0].first + sink.blocks[b].first, limits);
    ASSERT_TRUE(part.ok()) << part.status();
    ASSERT_EQ((*part)->num_samples(), sink.blocks[b].second);
    for (uint64_t i = 0; i < (*part)->num_samples(); ++i)
      ASSERT_EQ(ValuesOf<uint16_t>((*part)->Read(i)->fields[0]),
                wanted[first + i]);
    first += (*part)->num_samples();
  }
  EXPECT_EQ(first, 500u);
}

TEST_F(TokensTest, ADocumentOverTheLimitIsABadSampleAlone) {
  limits_.max_file_bytes = 10;
  dir_.Write("a.idx", MegatronIndex().Add({5}).Add({6}).Bytes());
  const auto source =
      Open(Reader({dir_.Write("a.bin", TokensFrom<uint16_t>(0, 11))}));
  EXPECT_TRUE(source->Read(0).ok());
  const absl::Status status = source->Read(1).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_THAT(Message(status),
              HasSubstr("a.bin: document 1 at 10 has 12 bytes"));
}

TEST_F(TokensTest, AFileThatChangedAfterIndexingIsAnError) {
  dir_.Write("a.idx", MegatronIndex().Add({5}).Bytes());
  const std::string bin = dir_.Write("a.bin", TokensFrom<uint16_t>(0, 5));
  const auto source = Open(Reader({bin}));
  dir_.Write("a.bin", TokensFrom<uint16_t>(0, 6));
  EXPECT_TRUE(absl::IsFailedPrecondition(source->Read(0).status()));
}

}  // namespace
}  // namespace leat::worker
