// SPDX-License-Identifier: Apache-2.0
#include "client/cli/previews/token_decoder.h"

#include <string>
#include <vector>

#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat::cli {
namespace {

using ::testing::HasSubstr;
using Tokens = TokenDecoder::Tokens;

std::string Joined(const std::string& json, const Tokens& tokens) {
  const auto decoder = TokenDecoder::Create(TokenizerJson::parse(json));
  EXPECT_TRUE(decoder.ok()) << decoder.status();
  return decoder.ok() ? decoder->Decode(tokens) : "";
}

std::string Sequence(int count, const std::string& step) {
  std::string steps = step;
  for (int i = 1; i < count; ++i) steps += ", " + step;
  return R"({"type": "Sequence", "decoders": [)" + steps + "]}";
}

TEST(TokenDecoder, SpacesAreBetweenTokensWithoutADecoder) {
  EXPECT_EQ(Joined("null", {"a", "b"}), "a b");
  EXPECT_EQ(TokenDecoder().Decode({"a", "b"}), "a b");
}

TEST(TokenDecoder, MetaspaceHasNoSpaceAtTheBeginning) {
  EXPECT_EQ(Joined(R"({"type": "Metaspace"})", {"▁a", "b▁c", "▁a"}), "ab c a");
  const std::string never =
      R"({"type": "Metaspace", "prepend_scheme": "never"})";
  EXPECT_EQ(Joined(never, {"▁a", "▁a"}), " a a");
  const std::string older =
      R"({"type": "Metaspace", "replacement": "_", "add_prefix_space": false})";
  EXPECT_EQ(Joined(older, {"_a", "_a"}), " a a");
}

TEST(TokenDecoder, WordPieceJoinsThePiecesOfAWord) {
  EXPECT_EQ(Joined(R"({"type": "WordPiece"})", {"un", "##able", ".", "##x"}),
            "unable.x");
  const std::string plain =
      R"({"type": "WordPiece", "prefix": "@", "cleanup": false})";
  EXPECT_EQ(Joined(plain, {"@un", "@able", "."}), "@unable .");
}

TEST(TokenDecoder, ASuffixEndsAWord) {
  EXPECT_EQ(Joined(R"({"type": "BPEDecoder"})", {"lo", "w</w>", "lo", "w</w>"}),
            "low low");
}

TEST(TokenDecoder, StepsFollowEachOther) {
  const std::string llama = R"({"type": "Sequence", "decoders": [
      {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
      {"type": "ByteFallback"}, {"type": "Fuse"},
      {"type": "Strip", "content": " ", "start": 1, "stop": 0}]})";
  EXPECT_EQ(Joined(llama, {"▁a", "<0xC3>", "<0xA9>", "b", "▁a"}), "aéb a");
  EXPECT_EQ(Joined(llama, {"<0xC3>", "<0xC3>", "b", "<0xZZ>"}),
            "\uFFFD\uFFFDb<0xZZ>");
  const std::string first = R"({"type": "Sequence", "decoders": [
      {"type": "ByteFallback"}, {"type": "Metaspace"}]})";
  EXPECT_EQ(Joined(first, {"▁a", "<0x62>"}), "ab") << "no token is added";
  const std::string strip =
      R"({"type": "Strip", "content": "x", "start": 1, "stop": 2})";
  EXPECT_EQ(Joined(strip, {"xxaxxx", "x"}), "xax");
}

TEST(TokenDecoder, UnknownDecodersAreRefused) {
  for (const char* decoder :
       {"7", R"({"type": 7})", R"({"type": "CTC"})", R"({"type": "Sequence"})",
        R"({"type": "Replace", "pattern": {"Regex": "a"}, "content": ""})",
        R"({"type": "Replace", "pattern": {"String": ""}, "content": ""})",
        R"({"type": "Metaspace", "replacement": ""})",
        R"({"type": "BPEDecoder", "suffix": ""})",
        R"({"type": "Strip", "content": "a", "start": 65, "stop": 0})"}) {
    const auto made = TokenDecoder::Create(TokenizerJson::parse(decoder));
    EXPECT_EQ(made.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(made.status().message()), HasSubstr("decoder"))
        << decoder;
  }
  const auto many = TokenDecoder::Create(
      TokenizerJson::parse(Sequence(33, R"({"type": "Fuse"})")));
  EXPECT_THAT(std::string(many.status().message()), HasSubstr("over 32 steps"));
}

TEST(TokenDecoder, StepsThatMakeTextLongerAreBounded) {
  const std::string step = fmt::format(
      R"({{"type": "Replace", "pattern": {{"String": "a"}},
          "content": "{}"}})",
      std::string(64, 'a'));
  EXPECT_LT(Joined(Sequence(30, step), {"a"}).size(), size_t{2} << 20);
  EXPECT_LT(Joined(Sequence(30, step), Tokens(100, "a")).size(),
            size_t{2} << 20);
}

TEST(TokenDecoder, BytesThatAreNoTextAreOneCharacterForEachThatTheyBegin) {
  EXPECT_EQ(AsUtf8("aé"), "aé");
  EXPECT_EQ(AsUtf8("\xC3"), "\uFFFD");
  EXPECT_EQ(AsUtf8("\xE2\x82x"), "\uFFFDx") << "a euro that is cut off";
  EXPECT_EQ(AsUtf8("\xF0\x9F\x98"), "\uFFFD");
  EXPECT_EQ(AsUtf8("\xF0\x9F\x98\xF0"), "\uFFFD\uFFFD");
  EXPECT_EQ(AsUtf8("\xFF\x80"), "\uFFFD\uFFFD");
}

}  // namespace
}  // namespace leat::cli
