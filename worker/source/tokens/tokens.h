// SPDX-License-Identifier: Apache-2.0
//
// readers.tokens: documents of token files. Its output has an element for each
// token, of the type that the files have.
//
//   *.npy                    NumPy's, of one axis
//   others, with `dtype`     elements only, little-endian
//   *.bin, without `dtype`   Megatron's, with the .idx beside it (documents.h)
//
// A file that is no Megatron's is one document, or is cut behind each token
// `end`. Samples are in the order of the files (record_paths.h; of a directory:
// *.bin and *.npy) and of the documents in them. Files without documents are
// none; documents without tokens, which only Megatron's files have, are samples.
//
// The index has the lengths of all documents: 4.5 bytes per document in memory.
// Shards are uniform runs of documents, since there may be few large files.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/hash.h"
#include "core/pipeline/operators.h"
#include "worker/source/source.h"

namespace leat::worker {

struct TokenOptions {
  std::vector<std::string> files;
  std::string files_key;       // LongListKey of files, which stands for them
  std::optional<DType> dtype;  // of files that are no .npy
  std::optional<int64_t> end;
  bool sequences = false;  // of Megatron's files: each is a sample
};

// Returns the reader node's arguments. kInvalidArgument: names the argument.
absl::StatusOr<TokenOptions> TokenOptionsOf(const Node& reader);
// Returns the reader's files as the head of an index has them.
std::vector<std::string> FilesInHead(const TokenOptions& options);

// Begins the identity of a listing with everything that determines its samples:
// then add name, size, identity and number of documents of each file that has
// documents, and the identity of its .idx.
void BeginTokensHash(const TokenOptions& options, DType dtype, Sha256* hash);

// kNotFound: no such files, no documents in them, or no .idx. kDataLoss: an
// .idx or .npy that is malformed, or not of its data; a size that is no
// multiple of an element's. kInvalidArgument: arguments that do not fit a file.
// kFailedPrecondition: files of several types. Each names the file.
// kResourceExhausted: over max_files documents, or max_index_bytes. kCancelled.
absl::StatusOr<BuiltIndex> BuildTokensIndex(const Node& reader,
                                            const SourceLimits& limits);
absl::StatusOr<std::unique_ptr<Source>> OpenTokens(const Node& reader,
                                                   std::string_view blob,
                                                   const SourceLimits& limits);

}  // namespace leat::worker
