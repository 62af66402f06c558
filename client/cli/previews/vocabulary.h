// SPDX-License-Identifier: Apache-2.0
//
// Vocabulary: the texts of tokens, from the JSON file of a tokenizer in the
// format of Hugging Face's `tokenizers`.
//
// It only decodes: a model's vocabulary (BPE, WordPiece, WordLevel, Unigram),
// the added tokens, and the decoders that are lists of simple steps. For
// example ids of "Hello", "Ġworld" become "Hello world" by the decoder
// ByteLevel, and those of "▁Hello", "▁world" do by Metaspace.
//
// Special tokens are shown. A number that no token has is shown as "<id 99>".
//
// Immutable; thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/previews/token_decoder.h"

namespace leat::cli {

class Vocabulary {
 public:
  static constexpr uint64_t kMaxFileBytes = 64 << 20;
  static constexpr uint64_t kMaxId = (1 << 22) - 1;  // of a token
  static constexpr size_t kMaxTokenBytes = 4096;
  static constexpr int kMaxDepth = 16;  // of the JSON
  // Tokens behind so many bytes of text are counted only.
  static constexpr size_t kMaxTextBytes = TokenDecoder::kMaxTextBytes;

  // kNotFound and others: as ReadFile. kInvalidArgument: too large, no such
  // JSON, no known model, a number or a token out of bounds, or a decoder that
  // is not known. Each names the file.
  static absl::StatusOr<Vocabulary> Load(const std::string& path);
  // `name`: the file's, for errors.
  static absl::StatusOr<Vocabulary> Parse(std::string_view json,
                                          std::string_view name);

  // Returns the text of a run of tokens; of one that is too long, what it begins
  // with, and how many tokens are left. It may have any characters, and nothing
  // in it is escaped; bytes that are no UTF-8 are U+FFFD.
  std::string Decode(std::span<const int64_t> ids) const;

  uint64_t size() const { return count_; }

 private:
  Vocabulary() = default;
  static absl::StatusOr<Vocabulary> FromText(std::string_view json);
  absl::Status Add(const std::string& token, uint64_t id);

  std::vector<std::string> tokens_;  // by number; empty: no token has it
  std::vector<bool> known_;
  uint64_t count_ = 0;
  TokenDecoder decoder_;
};

}  // namespace leat::cli
