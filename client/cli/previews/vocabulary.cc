// SPDX-License-Identifier: Apache-2.0
#include "client/cli/previews/vocabulary.h"

#include <utility>

#include "client/cli/base/file.h"
#include "core/counted.h"
#include "core/status.h"
#include "nlohmann/json.hpp"

namespace leat::cli {
namespace {

// Parses without what is not needed: a BPE's merges are the most of its file.
absl::StatusOr<TokenizerJson> ParseFile(std::string_view text) {
  bool deep = false;
  const auto keep = [&](int depth, TokenizerJson::parse_event_t event,
                        TokenizerJson& parsed) {
    if (depth > Vocabulary::kMaxDepth) deep = true;
    if (deep) return false;
    return event != TokenizerJson::parse_event_t::key || parsed != "merges";
  };
  TokenizerJson json =
      TokenizerJson::parse(text, keep, /*allow_exceptions=*/false);
  if (deep)
    return InvalidArgument("it is nested over {} levels",
                           Vocabulary::kMaxDepth);
  if (!json.is_object() || !json.contains("model") ||
      !json["model"].is_object())
    return InvalidArgument(
        "want the JSON file of a tokenizer, which has a \"model\"");
  return json;
}

}  // namespace

absl::StatusOr<Vocabulary> Vocabulary::Load(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxFileBytes));
  if (text.size() > kMaxFileBytes)
    return InvalidArgument("{}: want a vocabulary of at most {} bytes", path,
                           kMaxFileBytes);
  return Parse(text, path);
}

absl::Status Vocabulary::Add(const std::string& token, uint64_t id) {
  if (id > kMaxId)
    return InvalidArgument("a token has the number {}: want at most {}", id,
                           kMaxId);
  if (token.size() > kMaxTokenBytes)
    return InvalidArgument("token {} has {} bytes: want at most {}", id,
                           token.size(), kMaxTokenBytes);
  if (id >= tokens_.size()) {
    tokens_.resize(id + 1);
    known_.resize(id + 1);
  }
  count_ += known_[id] ? 0 : 1;
  known_[id] = true;
  tokens_[id] = token;
  return absl::OkStatus();
}

absl::StatusOr<Vocabulary> Vocabulary::Parse(std::string_view text,
                                             std::string_view name) {
  absl::StatusOr<Vocabulary> made = FromText(text);
  if (!made.ok())
    return InvalidArgument("vocabulary {}: {}", name, Message(made.status()));
  return made;
}

absl::StatusOr<Vocabulary> Vocabulary::FromText(std::string_view text) {
  ASSIGN_OR_RETURN(const TokenizerJson json, ParseFile(text));
  Vocabulary made;
  const TokenizerJson none;
  const auto member = [&](const TokenizerJson& of,
                          const char* key) -> const TokenizerJson& {
    const auto found = of.find(key);
    return found == of.end() ? none : *found;
  };
  const TokenizerJson& tokens = member(json["model"], "vocab");
  if (tokens.is_object()) {
    for (const auto& [token, id] : tokens.items()) {
      if (!id.is_number_unsigned())
        return InvalidArgument(
            "a token whose number is {:.40}: want 0 or more",
            id.dump(-1, ' ', false, TokenizerJson::error_handler_t::replace));
      RETURN_IF_ERROR(made.Add(token, id.get<uint64_t>()));
    }
  } else if (tokens.is_array()) {  // Unigram: pairs of a token and its score
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (!tokens[i].is_array() || tokens[i].empty() ||
          !tokens[i][0].is_string())
        return InvalidArgument(
            "entry {} of \"vocab\": want a token and a score", i);
      RETURN_IF_ERROR(made.Add(tokens[i][0].get<std::string>(), i));
    }
  } else {
    return InvalidArgument("its model has no \"vocab\"");
  }
  for (const TokenizerJson& added : member(json, "added_tokens")) {
    const TokenizerJson& id = member(added, "id");
    const TokenizerJson& content = member(added, "content");
    if (!id.is_number_unsigned() || !content.is_string())
      return InvalidArgument(
          "one of \"added_tokens\" has no \"id\" or no \"content\"");
    RETURN_IF_ERROR(made.Add(content.get<std::string>(), id.get<uint64_t>()));
  }
  ASSIGN_OR_RETURN(made.decoder_,
                   TokenDecoder::Create(member(json, "decoder")));
  return made;
}

std::string Vocabulary::Decode(std::span<const int64_t> ids) const {
  TokenDecoder::Tokens tokens;
  size_t bytes = 0;
  for (const int64_t id : ids) {
    if (bytes >= kMaxTextBytes) break;
    const auto index = static_cast<uint64_t>(id);
    if (index < tokens_.size() && known_[index])
      tokens.push_back(tokens_[index]);
    else
      tokens.push_back(fmt::format("<id {}>", id));
    bytes += tokens.back().size();
  }
  const size_t left = ids.size() - tokens.size();
  std::string text = decoder_.Decode(std::move(tokens));
  if (left > 0) text += fmt::format(" [and {}]", Counted(left, "token"));
  return text;
}

}  // namespace leat::cli
