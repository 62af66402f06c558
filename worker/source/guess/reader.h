// SPDX-License-Identifier: Apache-2.0
//
// GuessReader: derives the reader node of a dataset from its URI alone.
//
// The format follows from a file's first bytes, or from names: of the file, of
// a pattern's files, or of the files in a folder (format.h). The fields follow
// from one look into the first file: a tar archive's extensions, a tf.Example's
// features, a table's columns. Nothing is listed, so a look costs the same for
// any size.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/pipeline/graph.h"
#include "core/pipeline/operators.h"
#include "worker/source/record_paths.h"
#include "worker/source/source.h"

namespace leat::worker {

// The facts that the caller already knows.
struct KnownReader {
  std::string format;  // "webdataset"; empty: it is to be guessed
  // Arguments of the reader by name; a list's values one by one.
  std::map<std::string, std::vector<std::string>> args;
};

struct GuessedReader {
  Node node;  // complete: its arguments have their types, defaults are set
  std::vector<std::string> fields;  // a name for each output; may be empty
  // Empty if only the data determines them (OperatorInfo::stored_types).
  std::vector<ValueType> types;
  // Columns that were left out because no type fits, with the reason.
  std::vector<std::string> left_out;
};

// kInvalidArgument: no such format or argument, or a value that it does not
// take (names it). kNotFound: no such path. Others: as storage and the format's
// reader return for the first file.
absl::StatusOr<GuessedReader> GuessReader(const std::string& uri,
                                          const KnownReader& known,
                                          const SourceLimits& limits);

// Returns the files of a reader of large ones, from its `paths`, as its listing
// finds them; empty: another reader. Errors: ListPaths'.
absl::StatusOr<std::vector<ListedFile>> FilesOfReader(
    const Node& node, const SourceLimits& limits);

// --- Parts, by format -------------------------------------------------------

// Adds arguments that define the fields, unless the caller gave some.
absl::Status GuessFields(const std::vector<std::string>& paths,
                         const SourceLimits& limits, GuessedReader* guess);

}  // namespace leat::worker
