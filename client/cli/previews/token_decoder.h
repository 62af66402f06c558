// SPDX-License-Identifier: Apache-2.0
//
// TokenDecoder joins the texts of tokens to one text, by the "decoder" of a
// tokenizer's JSON file:
//
//   ByteLevel     each character stands for a byte: "Ġ" for a space
//   Metaspace     "▁" is a space, and none at the beginning
//   WordPiece     a space before each token but those that begin with "##"
//   BPEDecoder    "</w>" ends a word
//   ByteFallback  "<0x0A>" is a byte
//   Replace, Strip, Fuse, Sequence   steps that Llama's files combine
//
// Without a decoder tokens are joined by spaces.
//
// Immutable; thread-safe.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace leat::cli {

// Sorted: members are found in a logarithm of their number.
using TokenizerJson = nlohmann::json;

class TokenDecoder {
 public:
  using Tokens = std::vector<std::string>;

  static constexpr size_t kMaxSteps = 32;
  // Steps cease to replace texts by longer ones where all tokens have so many.
  static constexpr size_t kMaxTextBytes = 1 << 20;

  // Joins by spaces.
  TokenDecoder() = default;
  // `decoder`: null, or an object with a "type". kInvalidArgument: another
  // type, a regular expression, an empty text to look for, or over kMaxSteps
  // steps.
  static absl::StatusOr<TokenDecoder> Create(const TokenizerJson& decoder);

  std::string Decode(Tokens tokens) const;

 private:
  using Step = std::function<void(Tokens*)>;
  absl::Status Add(const TokenizerJson& decoder);

  bool spaces_ = true;  // between tokens
  std::vector<Step> steps_;
};

// Returns `bytes` with U+FFFD in place of what is no UTF-8.
std::string AsUtf8(std::string_view bytes);

}  // namespace leat::cli
