// SPDX-License-Identifier: Apache-2.0
//
// Sequences: rows of tokens as people look at them: which documents a row has,
// how full it is, and its text.
//
// A sequence is a field of whole numbers with one axis. Packed rows (fn.pack)
// have a second one of the same length, the segments, which tells the documents
// apart.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/base/environment.h"
#include "client/cli/base/fields.h"
#include "client/cli/previews/vocabulary.h"

namespace leat::cli {

// Elements of a row that belong together.
struct Segment {
  uint64_t begin = 0, size = 0;  // in the row
  bool padding = false;
  // The document, such as "web.bin: record 17, from element 5"; empty: not
  // known.
  std::string document;
  std::string text;  // of a vocabulary; else the first elements as numbers
};

struct SequenceRow {
  std::string caption;  // "row 3  sample 17  5 documents  99.9 % full"
  bool bad = false;
  uint64_t documents = 0;  // 0: it is not packed
  uint64_t filled = 0;     // elements that are no padding
  std::vector<Segment> segments;
};

struct Sequences {
  std::string title, detail;
  uint64_t length = 0;  // elements of a row
  std::vector<SequenceRow> rows;
  std::string note;  // why documents are not known; empty: they are
};

// Elements of a row whose text is made; the others are only counted.
inline constexpr uint64_t kMaxTextElements = 16'384;

// True if a sheet of these rows shows sequences: `field` is one, or it is empty
// and there are sequences, and no images.
bool ShowsSequences(const Rows& rows, std::string_view field);

// Asks `rows.record` where documents are stored, once for each packed row.
// `vocabulary` may be nullptr. kInvalidArgument: there is no row. REQUIRES:
// ShowsSequences.
absl::StatusOr<Sequences> SequencesOf(const Rows& rows, std::string_view field,
                                      const Vocabulary* vocabulary);

}  // namespace leat::cli
