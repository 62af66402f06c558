// SPDX-License-Identifier: Apache-2.0
#include "client/cli/previews/token_decoder.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>

#include "core/status.h"
#include "core/utf8.h"
#include "fmt/ranges.h"

namespace leat::cli {
namespace {

using Tokens = TokenDecoder::Tokens;

constexpr std::string_view kReplacement = "\uFFFD";
constexpr size_t kMaxPartBytes = 64;  // of what a step looks for or inserts
constexpr uint64_t kMaxStripped = 64;

// Returns a text member of at most kMaxPartBytes, or `absent`.
absl::StatusOr<std::string> TextOf(const TokenizerJson& json, const char* name,
                                   std::string_view absent) {
  const auto found = json.find(name);
  if (found == json.end()) return std::string(absent);
  if (!found->is_string() ||
      found->get_ref<const std::string&>().size() > kMaxPartBytes)
    return InvalidArgument("\"{}\" of a decoder: want a text of up to {} bytes",
                           name, kMaxPartBytes);
  return found->get<std::string>();
}

// Does the same for a text that a step looks for, which is not empty.
absl::StatusOr<std::string> PartOf(const TokenizerJson& json, const char* name,
                                   std::string_view absent) {
  ASSIGN_OR_RETURN(std::string part, TextOf(json, name, absent));
  if (part.empty())
    return InvalidArgument("\"{}\" of a decoder is empty: want a text", name);
  return part;
}

bool FlagOf(const TokenizerJson& json, const char* name, bool absent) {
  const auto found = json.find(name);
  return found == json.end() || !found->is_boolean() ? absent
                                                     : found->get<bool>();
}

// Returns how many bytes a step may add.
size_t RoomIn(const Tokens& tokens) {
  size_t bytes = 0;
  for (const std::string& token : tokens) bytes += token.size();
  return TokenDecoder::kMaxTextBytes -
         std::min(bytes, TokenDecoder::kMaxTextBytes);
}

// Replaces `from` from the left on, and ceases where it would add more bytes
// than `room`, which it lessens by those that it adds. REQUIRES: `from` is not
// empty.
void ReplaceAll(std::string* text, std::string_view from, std::string_view to,
                size_t* room) {
  const size_t added = to.size() - std::min(to.size(), from.size());
  size_t found = text->find(from);
  if (found == std::string::npos) return;
  std::string replaced;
  size_t at = 0;
  for (; found != std::string::npos && added <= *room;
       found = text->find(from, at)) {
    *room -= added;
    replaced.append(*text, at, found - at).append(to);
    at = found + from.size();
  }
  *text = replaced.append(*text, at);
}

// Returns the code point of a character of UTF-8 with at most two bytes; -1:
// it has more.
int SmallCodePoint(std::string_view character) {
  const auto at = [&](size_t i) { return static_cast<uint8_t>(character[i]); };
  if (character.size() == 1) return at(0);
  if (character.size() == 2) return (at(0) & 0x1F) << 6 | (at(1) & 0x3F);
  return -1;
}

// Maps the characters that stand for bytes: those that can be seen stand for
// themselves, and 256, 257, ... for the others in their order.
std::array<int, 512> BytesOfCharacters() {
  std::array<int, 512> bytes{};
  bytes.fill(-1);
  size_t next = 256;
  for (int byte = 0; byte < 256; ++byte) {
    const bool seen = (byte >= 0x21 && byte <= 0x7E) ||
                      (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    bytes[seen ? static_cast<size_t>(byte) : next++] = byte;
  }
  return bytes;
}

// A token with a character that stands for no byte, such as an added one, is
// its own text.
std::string BytesOfToken(const std::string& token) {
  static const std::array<int, 512> kBytes = BytesOfCharacters();
  std::string bytes;
  for (std::string_view left = token; !left.empty();) {
    const size_t length = Utf8Length(left);
    const int point = length == 0 ? -1 : SmallCodePoint(left.substr(0, length));
    const int byte =
        point < 0 || point >= 512 ? -1 : kBytes[static_cast<size_t>(point)];
    if (byte < 0) return token;
    bytes += static_cast<char>(byte);
    left.remove_prefix(length);
  }
  return bytes;
}

void ByteLevel(Tokens* tokens) {
  std::string bytes;
  for (const std::string& token : *tokens) bytes += BytesOfToken(token);
  *tokens = {AsUtf8(bytes)};
}

std::optional<char> ByteOf(const std::string& token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>')
    return std::nullopt;
  uint8_t byte = 0;
  const char* const end = token.data() + 5;
  const auto [at, error] = std::from_chars(token.data() + 3, end, byte, 16);
  if (error != std::errc() || at != end) return std::nullopt;
  return static_cast<char>(byte);
}

// A run of bytes that is no UTF-8 has a U+FFFD for each byte.
void ByteFallback(Tokens* tokens) {
  Tokens joined;
  std::string run;
  const auto end_run = [&] {
    if (run.empty()) return;
    if (IsUtf8(run)) {
      joined.push_back(run);
    } else {
      for (size_t i = 0; i < run.size(); ++i) joined.emplace_back(kReplacement);
    }
    run.clear();
  };
  for (std::string& token : *tokens) {
    if (const std::optional<char> byte = ByteOf(token)) {
      run += *byte;
      continue;
    }
    end_run();
    joined.push_back(std::move(token));
  }
  end_run();
  *tokens = std::move(joined);
}

void Fuse(Tokens* tokens) {
  std::string all;
  for (const std::string& token : *tokens) all += token;
  *tokens = {std::move(all)};
}

// Removes the spaces that English texts do not have.
void CleanUp(std::string* token) {
  size_t none = 0;  // no text becomes longer
  for (const auto& [from, to] : {std::pair{" .", "."},
                                 {" ?", "?"},
                                 {" !", "!"},
                                 {" ,", ","},
                                 {" ' ", "'"},
                                 {" n't", "n't"},
                                 {" 'm", "'m"},
                                 {" do not", " don't"},
                                 {" 's", "'s"},
                                 {" 've", "'ve"},
                                 {" 're", "'re"}})
    ReplaceAll(token, from, to, &none);
}

absl::StatusOr<std::function<void(Tokens*)>> Metaspace(
    const TokenizerJson& decoder) {
  ASSIGN_OR_RETURN(const std::string space,
                   PartOf(decoder, "replacement", "\u2581"));
  ASSIGN_OR_RETURN(const std::string prepend,
                   TextOf(decoder, "prepend_scheme", "always"));
  const bool first =
      prepend != "never" && FlagOf(decoder, "add_prefix_space", true);
  return [space, first](Tokens* tokens) {
    size_t room = RoomIn(*tokens);
    for (size_t i = 0; i < tokens->size(); ++i)
      ReplaceAll(&(*tokens)[i], space, i == 0 && first ? "" : " ", &room);
  };
}

absl::StatusOr<std::function<void(Tokens*)>> WordPiece(
    const TokenizerJson& decoder) {
  ASSIGN_OR_RETURN(const std::string prefix, TextOf(decoder, "prefix", "##"));
  const bool clean = FlagOf(decoder, "cleanup", true);
  return [prefix, clean](Tokens* tokens) {
    for (size_t i = 0; i < tokens->size(); ++i) {
      std::string& token = (*tokens)[i];
      if (i > 0 && token.starts_with(prefix))
        token.erase(0, prefix.size());
      else if (i > 0)
        token.insert(0, " ");
      if (clean) CleanUp(&token);
    }
  };
}

absl::StatusOr<std::function<void(Tokens*)>> BpeDecoder(
    const TokenizerJson& decoder) {
  ASSIGN_OR_RETURN(const std::string suffix, PartOf(decoder, "suffix", "</w>"));
  return [suffix](Tokens* tokens) {
    size_t room = RoomIn(*tokens);
    for (size_t i = 0; i < tokens->size(); ++i)
      ReplaceAll(&(*tokens)[i], suffix, i + 1 == tokens->size() ? "" : " ",
                 &room);
  };
}

absl::StatusOr<std::function<void(Tokens*)>> Replace(
    const TokenizerJson& decoder) {
  const auto pattern = decoder.find("pattern");
  if (pattern == decoder.end() || !pattern->is_object() ||
      !pattern->contains("String"))
    return InvalidArgument(
        "a decoder Replace by a regular expression: want one by a text");
  ASSIGN_OR_RETURN(const std::string from, PartOf(*pattern, "String", ""));
  ASSIGN_OR_RETURN(const std::string to, TextOf(decoder, "content", ""));
  return [from, to](Tokens* tokens) {
    size_t room = RoomIn(*tokens);
    for (std::string& token : *tokens) ReplaceAll(&token, from, to, &room);
  };
}

absl::StatusOr<std::function<void(Tokens*)>> Strip(
    const TokenizerJson& decoder) {
  ASSIGN_OR_RETURN(const std::string content, TextOf(decoder, "content", " "));
  const auto count = [&](const char* name) {
    const auto found = decoder.find(name);
    return found != decoder.end() && found->is_number_unsigned()
               ? found->get<uint64_t>()
               : 0;
  };
  const uint64_t start = count("start"), stop = count("stop");
  if (content.empty() || start > kMaxStripped || stop > kMaxStripped)
    return InvalidArgument(
        "a decoder Strip of {} and {} times \"{}\": want a text, up to {} "
        "times",
        start, stop, content, kMaxStripped);
  return [content, start, stop](Tokens* tokens) {
    for (std::string& token : *tokens) {
      for (uint64_t i = 0; i < start && token.starts_with(content); ++i)
        token.erase(0, content.size());
      for (uint64_t i = 0; i < stop && token.ends_with(content); ++i)
        token.resize(token.size() - content.size());
    }
  };
}

// The first of these bytes that are no UTF-8: as many as could begin a
// character.
size_t BadLength(std::string_view text) {
  using std::string;
  const string three(text.substr(0, 3)), two(text.substr(0, 2));
  if (three.size() == 3 && Utf8Length(three + "\x80") == 4) return 3;
  if (two.size() == 2 &&
      (Utf8Length(two + "\x80") == 3 || Utf8Length(two + "\x80\x80") == 4))
    return 2;
  return 1;
}

}  // namespace

std::string AsUtf8(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const size_t length = Utf8Length(bytes);
    text += length == 0 ? kReplacement : bytes.substr(0, length);
    bytes.remove_prefix(length == 0 ? BadLength(bytes) : length);
  }
  return text;
}

absl::StatusOr<TokenDecoder> TokenDecoder::Create(
    const TokenizerJson& decoder) {
  TokenDecoder made;
  if (decoder.is_null()) return made;
  made.spaces_ = false;
  RETURN_IF_ERROR(made.Add(decoder));
  return made;
}

absl::Status TokenDecoder::Add(const TokenizerJson& decoder) {
  if (!decoder.is_object())
    return InvalidArgument("a decoder that is no object");
  if (steps_.size() >= kMaxSteps)
    return InvalidArgument("a decoder of over {} steps", kMaxSteps);
  ASSIGN_OR_RETURN(const std::string type, TextOf(decoder, "type", ""));
  if (type == "Sequence") {
    const auto parts = decoder.find("decoders");
    if (parts == decoder.end() || !parts->is_array())
      return InvalidArgument("a decoder Sequence without \"decoders\"");
    for (const TokenizerJson& part : *parts) RETURN_IF_ERROR(Add(part));
    return absl::OkStatus();
  }
  absl::StatusOr<Step> step = InvalidArgument(
      "a decoder of the type \"{}\": want ByteLevel, Metaspace, WordPiece, "
      "BPEDecoder, ByteFallback, Replace, Strip, Fuse or Sequence",
      type);
  if (type == "ByteLevel") step = ByteLevel;
  if (type == "ByteFallback") step = ByteFallback;
  if (type == "Fuse") step = Fuse;
  if (type == "Metaspace") step = Metaspace(decoder);
  if (type == "WordPiece") step = WordPiece(decoder);
  if (type == "BPEDecoder") step = BpeDecoder(decoder);
  if (type == "Replace") step = Replace(decoder);
  if (type == "Strip") step = Strip(decoder);
  RETURN_IF_ERROR(step.status());
  steps_.push_back(*std::move(step));
  return absl::OkStatus();
}

std::string TokenDecoder::Decode(Tokens tokens) const {
  if (spaces_) return AsUtf8(fmt::format("{}", fmt::join(tokens, " ")));
  for (const Step& step : steps_) step(&tokens);
  Fuse(&tokens);
  return AsUtf8(tokens.front());
}

}  // namespace leat::cli
