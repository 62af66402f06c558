// SPDX-License-Identifier: Apache-2.0
//
// JSON files of tokenizers: they are refused, or decode any numbers to UTF-8 of
// a bounded size. The file is the input's own text, or is made of its tokens and
// decoders, since few changes of a text leave it JSON.
#include "client/cli/previews/vocabulary.h"
#include "core/utf8.h"
#include "nlohmann/json.hpp"
#include "tests/fuzz/input.h"
#include "tests/fuzz/target.h"

namespace leat::vocabulary_fuzz {
namespace {

constexpr size_t kMaxIds = 64;
constexpr size_t kMaxParts = 40;  // tokens, and decoders
// A character of the bytes is U+FFFD, of three bytes, if it is no UTF-8.
constexpr size_t kMostBytes = 4 * cli::Vocabulary::kMaxTextBytes;

nlohmann::json Decoder(fuzz::Input* input) {
  switch (input->Byte() % 8) {
    case 0:
      return {{"type", "ByteLevel"}};
    case 1:
      return {{"type", "ByteFallback"}};
    case 2:
      return {{"type", "Fuse"}};
    case 3:
      return {{"type", "Metaspace"}, {"replacement", input->Text()}};
    case 4:
      return {{"type", "WordPiece"}, {"prefix", input->Text()}};
    case 5:
      return {{"type", "BPEDecoder"}, {"suffix", input->Text()}};
    case 6:
      return {{"type", "Replace"},
              {"pattern", {{"String", input->Text()}}},
              {"content", input->Text()}};
    default:
      return {{"type", "Strip"},
              {"content", input->Text()},
              {"start", input->Byte()},
              {"stop", input->Byte()}};
  }
}

std::string MadeOf(fuzz::Input* input) {
  nlohmann::json vocab = nlohmann::json::array(), added = vocab, steps = vocab;
  for (size_t i = input->Byte() % kMaxParts; i > 0; --i)
    vocab.push_back({input->Text(), 0.5});
  for (size_t i = input->Byte() % kMaxParts; i > 0; --i)
    added.push_back(
        {{"content", input->Text()}, {"id", input->Number<uint16_t>()}});
  for (size_t i = input->Byte() % kMaxParts; i > 0; --i)
    steps.push_back(Decoder(input));
  const nlohmann::json made = {
      {"model", {{"vocab", vocab}}},
      {"added_tokens", added},
      {"decoder", {{"type", "Sequence"}, {"decoders", steps}}}};
  return made.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void Run(std::string_view bytes) {
  fuzz::Input input(bytes);
  std::vector<int64_t> ids;
  for (size_t i = input.Byte() % kMaxIds; i > 0; --i)
    ids.push_back(input.Byte());
  ids.push_back(input.Number<int64_t>());
  const std::string text =
      input.Byte() % 2 == 0 ? std::string(input.Rest()) : MadeOf(&input);
  const auto vocabulary = cli::Vocabulary::Parse(text, "fuzz.json");
  if (!vocabulary.ok()) return;
  const std::string decoded = vocabulary->Decode(ids);
  fuzz::Require(IsUtf8(decoded) && decoded.size() <= kMostBytes);
  fuzz::Require(vocabulary->Decode({}).empty());
}

std::string Ids(int kind) {
  std::string ids = fuzz::PutByte(6);
  for (const char id : {0, 1, 2, 3, 4, 9}) ids += fuzz::PutByte(id);
  return ids + fuzz::PutNumber(int64_t{-1}) + fuzz::PutByte(kind);
}

// Tokens with the characters that decoders look for, and one decoder of each
// kind.
std::string MadeSeed() {
  std::string seed = Ids(1) + fuzz::PutByte(5);
  for (const char* token : {"\u2581so", "<0xC3>", "<0xA9>", "##able", "lo</w>"})
    seed += fuzz::PutText(token);
  seed += fuzz::PutByte(1) + fuzz::PutText("<|end|>") +
          fuzz::PutNumber(uint16_t{9}) + fuzz::PutByte(7);
  seed += fuzz::PutByte(6) + fuzz::PutText("o") + fuzz::PutText("oo");
  seed += fuzz::PutByte(1) + fuzz::PutByte(3) + fuzz::PutText("\u2581");
  seed += fuzz::PutByte(4) + fuzz::PutText("##");
  seed += fuzz::PutByte(5) + fuzz::PutText("</w>");
  seed += fuzz::PutByte(7) + fuzz::PutText(" ") + fuzz::PutByte(1) +
          fuzz::PutByte(1);
  return seed + fuzz::PutByte(0);
}

std::vector<std::string> Seeds() {
  std::vector<std::string> seeds = {MadeSeed()};
  for (const char* text :
       {R"({"model": {"type": "BPE", "vocab": {"Hello": 0, "Ġworld": 1, "Ã": 2,
            "©": 3}, "merges": [["a", "b"]]}, "decoder": {"type": "ByteLevel"},
            "added_tokens": [{"id": 4, "content": "<|end|>"}]})",
        R"({"model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0],
            ["▁so", -2.5]]}, "decoder": {"type": "Metaspace",
            "replacement": "▁", "prepend_scheme": "first"}})",
        R"({"model": {"vocab": {"un": 0, "##able": 1, ".": 2}},
            "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true}})",
        R"({"model": {"vocab": {"lo": 0, "w</w>": 1}},
            "decoder": {"type": "BPEDecoder", "suffix": "</w>"}})",
        R"({"model": {"vocab": {"▁a": 0, "<0xC3>": 1, "<0xA9>": 2}},
            "decoder": {"type": "Sequence", "decoders": [
              {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
              {"type": "ByteFallback"}, {"type": "Fuse"},
              {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}})"})
    seeds.push_back(Ids(0) + text);
  return seeds;
}

const fuzz::Target kTarget(
    {.name = "vocabulary", .run = Run, .seeds = Seeds, .runs = 3000});

}  // namespace
}  // namespace leat::vocabulary_fuzz
