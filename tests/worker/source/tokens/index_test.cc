// SPDX-License-Identifier: Apache-2.0
//
// readers.tokens lists files, and refuses those that do not fit.
#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/source/arrays/npy_maker.h"
#include "tests/worker/source/tokens/megatron_maker.h"
#include "tests/worker/temp_dir.h"
#include "worker/source/source.h"

namespace leat::worker {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Texts = std::vector<std::string>;

class TokensIndexTest : public ::testing::Test {
 protected:
  Node Reader(Texts files, const std::string& dtype = "", int64_t end = -1,
              const std::string& unit = "document") {
    return {.op = "readers.tokens",
            .inputs = {},
            .args = {{"files", std::move(files)},
                     {"dtype", dtype},
                     {"end", end},
                     {"unit", unit}}};
  }
  absl::Status Error(const Node& reader) {
    const auto index = BuildIndex(reader, limits_);
    EXPECT_FALSE(index.ok());
    return index.status();
  }
  // Writes NAME.bin and NAME.idx with a document of each of these lengths.
  std::string WriteMegatron(const std::string& name,
                            const std::vector<int32_t>& lengths) {
    MegatronIndex index;
    size_t tokens = 0;
    for (const int32_t length : lengths) {
      index.Add({length});
      tokens += static_cast<size_t>(length);
    }
    dir_.Write(name + ".idx", index.Bytes());
    return dir_.Write(name + ".bin", TokensFrom<uint16_t>(0, tokens));
  }

  TempDir dir_;
  SourceLimits limits_;
};

TEST_F(TokensIndexTest, TheTypeIsThatOfTheFiles) {
  const auto index = BuildIndex(Reader({WriteMegatron("a", {3, 4})}), limits_);
  ASSERT_TRUE(index.ok()) << index.status();
  EXPECT_THAT(
      index->types,
      ElementsAre(ValueType{ValueType::Kind::kTensor, DType::kUint16, {-1}}));
  EXPECT_EQ(index->shards.num_samples(), 2u);
  EXPECT_EQ(index->bytes, 14u);
}

TEST_F(TokensIndexTest, ShardsAreRunsOfDocumentsWhateverTheFiles) {
  const auto index =
      BuildIndex(Reader({WriteMegatron("a", std::vector<int32_t>(3000, 1)),
                         WriteMegatron("b", std::vector<int32_t>(3000, 1))}),
                 limits_);
  ASSERT_TRUE(index.ok()) << index.status();
  EXPECT_TRUE(index->shards.uniform());
  EXPECT_GT(index->shards.num_shards(), 100u);
}

TEST_F(TokensIndexTest, FoldersAndPatternsStandForTheirFiles) {
  WriteMegatron("d/b", {1});
  WriteMegatron("d/a", {2, 3});
  dir_.Write("d/note.txt", "no tokens");
  for (const std::string& path :
       {dir_.path() + "/d", dir_.path() + "/d/*.bin"}) {
    const auto index = BuildIndex(Reader({path}), limits_);
    ASSERT_TRUE(index.ok()) << index.status();
    EXPECT_EQ(index->shards.num_samples(), 3u);
  }
}

// The contents are the same; what was listed is another.
TEST_F(TokensIndexTest, AnotherIndexIsAnotherDataset) {
  const std::string bin = WriteMegatron("a", {3, 4});
  const auto before = BuildIndex(Reader({bin}), limits_);
  dir_.Write("a.idx", MegatronIndex().Add({4}).Add({3}).Bytes());
  const auto after = BuildIndex(Reader({bin}), limits_);
  ASSERT_TRUE(before.ok() && after.ok());
  EXPECT_NE(before->fingerprint, after->fingerprint);
  EXPECT_NE(before->content, after->content);
}

TEST_F(TokensIndexTest, ArgumentsAreOfTheFingerprint) {
  const std::string bin = WriteMegatron("a", {3, 4});
  std::vector<Digest> seen;
  for (const Node& reader :
       {Reader({bin}), Reader({bin}, "", -1, "sequence"),
        Reader({bin}, "uint16"), Reader({bin}, "int16"),
        Reader({bin}, "uint16", 3), Reader({bin}, "uint16", 9)}) {
    const auto index = BuildIndex(reader, limits_);
    ASSERT_TRUE(index.ok()) << index.status();
    EXPECT_THAT(seen, ::testing::Not(::testing::Contains(index->fingerprint)));
    seen.push_back(index->fingerprint);
  }
}

TEST_F(TokensIndexTest, AMissingOrWrongIndexIsNamed) {
  const std::string bin = dir_.Write("lone.bin", TokensFrom<uint16_t>(0, 4));
  absl::Status status = Error(Reader({bin}));
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(Message(status),
              AllOf(HasSubstr("lone.bin"), HasSubstr("lone.idx"),
                    HasSubstr("or dtype= for a file of elements only")));
  MegatronIndex index;
  index.Add({3}).lengths[0] = -1;
  dir_.Write("lone.idx", index.Bytes());
  status = Error(Reader({bin}));
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(Message(status),
              AllOf(HasSubstr("lone.bin"), HasSubstr("lone.idx"),
                    HasSubstr("sequence 0 has -1 tokens")));
}

TEST_F(TokensIndexTest, FilesThatAreNotAsTheArgumentsSayAreRefused) {
  const std::string bin = WriteMegatron("a", {3, 4});
  const std::string odd = dir_.Write("odd.tok", "12345");
  const std::string floats =
      dir_.Write("f.npy", Npy("<f4", "(2,)", std::string(8, 'x')));
  const std::string matrix =
      dir_.Write("m.npy", Npy("<i4", "(2, 2)", std::string(16, 'x')));
  const std::string bools = dir_.Write("b.npy", Npy("|b1", "(2,)", "\1\1"));
  const struct {
    Node reader;
    const char* words;
  } cases[] = {
      {Reader({odd}), "want dtype= for a file of elements only"},
      {Reader({odd}, "uint16"), "5 bytes, want a multiple of 2"},
      {Reader({bin}, "", 7), "argument \"end\" is 7: its .idx says"},
      {Reader({bin}, "uint16", 70'000), "\"end\" is 70000, want 0 to 65535"},
      {Reader({bin}, "uint16", -1, "sequence"), "only a .bin with an .idx"},
      {Reader({floats}, "", 7), "want whole numbers"},
      {Reader({floats}, "int32"), "its elements are float32"},
      {Reader({floats}, "", -1, "sequence"), "only a .bin with an .idx"},
      {Reader({matrix}), "an array of 2 axes of int32, want one axis"},
      {Reader({bools}), "want one axis of numbers"},
      {Reader({bin, floats}), "want one type"},
      {Reader({}), "files: want at least one"},
      {Reader({bin}, "complex"), "dtype is \"complex\""},
      {Reader({bin}, "", -1, "page"), "unit is \"page\""},
  };
  for (const auto& [reader, words] : cases)
    EXPECT_THAT(Message(Error(reader)), HasSubstr(words));
}

TEST_F(TokensIndexTest, NoDocumentsAreNoDataset) {
  const std::string empty = dir_.Write("empty.tok", "");
  const absl::Status status = Error(Reader({empty}, "uint16"));
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("no documents in 1 file"));
}

TEST_F(TokensIndexTest, LimitsAreKept) {
  limits_.max_files = 3;
  EXPECT_TRUE(
      BuildIndex(Reader({WriteMegatron("a", {1, 2, 3})}), limits_).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(
      Error(Reader({WriteMegatron("b", {1, 2, 3, 4})}))));
  EXPECT_TRUE(absl::IsResourceExhausted(
      Error(Reader({WriteMegatron("c", {1, 2}), WriteMegatron("d", {1, 2})}))));
}

}  // namespace
}  // namespace leat::worker
