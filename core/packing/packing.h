// SPDX-License-Identifier: Apache-2.0
//
// Packing says how documents become rows of one length.
//
// A document is a sequence of elements, such as tokens. There are two ways:
//
// * kCut: the documents follow one another through the whole dataset, and every
//   `length` elements are a row. No row has padding, but most rows begin and
//   end inside a document.
// * kFit: a document stands in one row, and a row holds several documents and
//   the padding that is left. Only a document longer than a row is cut, dropped
//   or an error, as `longer` says.
//
// For example documents of 5, 2 and 3 elements in rows of 4:
//
//     kCut: aaaa abbc                   (2 elements are left over)
//     kFit: aaaa a... bb.. ccc. becomes aaaa accc bb..
//
// These are values and pure functions; any thread may use them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace leat {

inline constexpr uint64_t kMaxPackedLength = 1 << 24;     // elements of a row
inline constexpr uint32_t kMaxPackedDocuments = 1 << 16;  // of a row
inline constexpr uint64_t kMaxDocumentElements = uint64_t{1} << 40;
// The pieces that one document may become.
inline constexpr uint64_t kMaxDocumentPieces = 1 << 20;

enum class PackHow : uint8_t { kCut = 0, kFit = 1 };

// Tells kFit how to treat a document that is longer than a row.
enum class PackLonger : uint8_t { kCut = 0, kDrop = 1, kError = 2 };

struct Packing {
  PackHow how = PackHow::kCut;
  uint64_t length = 0;  // elements of a row
  // kCut: a row begins with the last `overlap` elements of the row before it.
  // kFit: so does a piece of a document that was cut. 1 gives a row of inputs
  // and targets that are one element apart.
  uint64_t overlap = 0;
  PackLonger longer = PackLonger::kCut;
  uint32_t max_documents = 0;  // pieces in a row; 0: no bound. Only for kFit

  friend bool operator==(const Packing&, const Packing&) = default;
};

// A run of a document's elements that stands in a row.
struct Piece {
  uint64_t document = 0;
  uint64_t begin = 0;  // elements of the document before it
  uint64_t size = 0;   // elements; never 0

  friend bool operator==(const Piece&, const Piece&) = default;
};

// kInvalidArgument names the field, its value and what was expected.
absl::Status CheckPacking(const Packing& packing);

// Returns the text that names a packing in hashes, such as
// "pack(how=fit,length=4096,overlap=0,longer=cut,max_documents=0)". Equal texts
// mean equal rows.
std::string PackingText(const Packing& packing);

// Returns how many pieces kFit makes of a document of `elements` elements:
//
//     0 if it is empty, or too long and dropped
//     1 if elements ≤ length
//     1 + ⌈(elements - length) / (length - overlap)⌉ otherwise
//
// Piece p begins at p·(length - overlap). kInvalidArgument: the document is too
// long and `longer` is kError, or it would become over kMaxDocumentPieces.
absl::StatusOr<uint64_t> PiecesOf(const Packing& packing, uint64_t document,
                                  uint64_t elements);

}  // namespace leat
