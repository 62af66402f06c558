// SPDX-License-Identifier: Apache-2.0
//
// The documents of a token file, found when it is listed: by Megatron's index,
// or by the tokens that end them.
//
// Megatron's .idx, little-endian:
//
//   0   "MMIDIDX" and two bytes 0
//   9   version (uint64): 1
//   17  type of the elements (uint8): kMegatronTypes
//   18  number of sequences S (uint64)
//   26  number of document indices D (uint64): one more than documents
//   34  lengths in tokens (int32 × S)
//       positions in the .bin in bytes (int64 × S)
//       document indices (int64 × D): document i has the sequences
//         [index i, index i + 1); the first is 0 and the last is S
//       modes of sequences (int8 × S), of multimodal data only; not read
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/tensor/tensor.h"
#include "worker/source/storage/storage.h"

namespace leat::worker {

// Documents follow each other from `data_offset` on.
struct TokenFile {
  DType dtype = DType::kUint16;
  uint64_t data_offset = 0;
  std::vector<uint32_t> lengths;  // tokens of each document
  std::string index_identity;     // of the .idx; empty: there is none
};

struct DocumentBounds {
  uint64_t max_documents = 0;
  const std::atomic<bool>* cancelled = nullptr;  // may be nullptr
};

// Reads an .idx in pieces of bounded size. `sequences`: a sequence is a
// document by itself. `data_bytes`: the size of the .bin, which the sequences
// must fill. kDataLoss: malformed, cut off, or not of this .bin; says what was
// found and expected. kUnimplemented: another version, or elements of a type
// that tensors do not have. kResourceExhausted: over max_documents, or a
// document of over 2^32 - 1 tokens. kCancelled. Others as ReadAt.
absl::StatusOr<TokenFile> ReadMegatronIndex(const StorageFile& file,
                                            uint64_t data_bytes, bool sequences,
                                            const DocumentBounds& bounds);

// Finds the documents among `tokens` elements of `type` from `data_offset` on.
// Without `end` all of them are one document. Otherwise each ends with a token
// `end`, and what is behind the last of these is a document, too.
// kInvalidArgument: the type does not have the number `end`. kResourceExhausted,
// kCancelled: as above. REQUIRES: the elements are in the file.
absl::StatusOr<TokenFile> FindDocuments(const StorageFile& file, DType dtype,
                                        uint64_t data_offset, uint64_t tokens,
                                        std::optional<int64_t> end,
                                        const DocumentBounds& bounds);

}  // namespace leat::worker
