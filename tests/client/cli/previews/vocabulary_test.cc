// SPDX-License-Identifier: Apache-2.0
//
// Real files, and the texts that `tokenizers` makes of them, are in
// tests/python/e2e/test_vocabulary.py.
#include "client/cli/previews/vocabulary.h"

#include <string>
#include <vector>

#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat::cli {
namespace {

using ::testing::HasSubstr;
using Ids = std::vector<int64_t>;

// Returns a file with tokens 0, 1, ... and this decoder.
std::string FileOf(const std::vector<std::string>& tokens,
                   const std::string& decoder, const std::string& more = "") {
  std::string vocab;
  for (size_t i = 0; i < tokens.size(); ++i)
    vocab += fmt::format("{}\"{}\": {}", i == 0 ? "" : ", ", tokens[i], i);
  return fmt::format(
      R"({{"model": {{"type": "BPE", "vocab": {{{}}}, "merges": [["a", "b"]]}},
          "decoder": {}{}}})",
      vocab, decoder, more);
}

std::string TextBy(const std::string& file, const Ids& ids) {
  const auto vocabulary = Vocabulary::Parse(file, "v.json");
  EXPECT_TRUE(vocabulary.ok()) << vocabulary.status();
  return vocabulary.ok() ? vocabulary->Decode(ids) : "";
}

std::string Refusal(const std::string& file) {
  const auto vocabulary = Vocabulary::Parse(file, "v.json");
  EXPECT_EQ(vocabulary.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(vocabulary.status().message());
}

TEST(Vocabulary, BytesAreCharactersThatCanBeSeen) {
  const std::string file = FileOf(
      {"Hello", "Ġworld", "Ċ", "Ã", "©", "<|end|>"}, R"({"type": "ByteLevel"})",
      R"(, "added_tokens": [{"id": 9, "content": "<a b>"}])");
  EXPECT_EQ(TextBy(file, {0, 1, 2}), "Hello world\n");
  EXPECT_EQ(TextBy(file, {3, 4}), "é") << "a character of two tokens";
  EXPECT_EQ(TextBy(file, {3, 0}), "\uFFFDHello");
  EXPECT_EQ(TextBy(file, {0, 9, 1}), "Hello<a b> world")
      << "an added token is no bytes";
  EXPECT_EQ(TextBy(file, {7, -1, 1'000'000'000'000}),
            "<id 7><id -1><id 1000000000000>");
  EXPECT_EQ(TextBy(file, {}), "");
}

TEST(Vocabulary, TokensOfAUnigramModelArePairs) {
  const std::string file = R"({"model": {"type": "Unigram", "unk_id": 0,
      "vocab": [["<unk>", 0.0], ["▁so", -2.5]]},
      "decoder": {"type": "Metaspace"}})";
  EXPECT_EQ(TextBy(file, {1, 1}), "so so");
  EXPECT_EQ(Vocabulary::Parse(file, "v")->size(), 2u);
}

TEST(Vocabulary, HostileFilesAreRefused) {
  EXPECT_THAT(Refusal("{"), HasSubstr("vocabulary v.json: want the JSON file"));
  EXPECT_THAT(Refusal("[]"), HasSubstr("\"model\""));
  EXPECT_THAT(Refusal(R"({"model": {}})"), HasSubstr("no \"vocab\""));
  EXPECT_THAT(Refusal(R"({"model": {"vocab": {"a": -1}}})"),
              HasSubstr("number is -1"));
  EXPECT_THAT(Refusal(R"({"model": {"vocab": {"a": 4194304}}})"),
              HasSubstr("number 4194304: want at most 4194303"));
  EXPECT_THAT(Refusal(R"({"model": {"vocab": {"a": 0.5}}})"),
              HasSubstr("number is 0.5"));
  EXPECT_THAT(Refusal(R"({"model": {"vocab": [["a", 1], 7]}})"),
              HasSubstr("entry 1"));
  EXPECT_THAT(Refusal(R"({"model": {"vocab": {}}, "added_tokens": [7]})"),
              HasSubstr("added_tokens"));
  EXPECT_THAT(Refusal(FileOf({std::string(5000, 'a')}, "null")),
              HasSubstr("5000 bytes: want at most 4096"));
  std::string deep = R"({"model": {"vocab": {}}, "x": )";
  deep += std::string(100'000, '[') + std::string(100'000, ']') + "}";
  EXPECT_THAT(Refusal(deep), HasSubstr("over 16 levels"));
  EXPECT_THAT(Refusal(FileOf({"a"}, "7")),
              HasSubstr("v.json: a decoder that is no object"));
}

TEST(Vocabulary, TokensOfATextThatIsTooLongAreCounted) {
  const std::string file = FileOf(
      {std::string(Vocabulary::kMaxTokenBytes, 'a')}, R"({"type": "Fuse"})");
  EXPECT_EQ(TextBy(file, Ids(258, 0)),
            std::string(Vocabulary::kMaxTextBytes, 'a') + " [and 2 tokens]");
}

TEST(Vocabulary, AFileThatIsNotThereIsNamed) {
  const auto vocabulary = Vocabulary::Load("/no/such.json");
  EXPECT_THAT(std::string(vocabulary.status().message()),
              HasSubstr("/no/such.json"));
}

}  // namespace
}  // namespace leat::cli
